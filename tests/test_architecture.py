"""The house plan, enforced: who may import whom, what recipes may touch, how large a module may be, and that
tests mirror the source."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import NamedTuple

import stormproof
from stormproof import extend

SOURCE = Path(__file__).resolve().parents[1] / "src" / "stormproof"
MODULES = {path.relative_to(SOURCE).as_posix(): path for path in sorted(SOURCE.rglob("*.py"))}

# Each package may import those before it, never those after; the leaves at the end do not import each other.
TRUNK = (
    "core", "imaging", "corruptions", "datasets", "models", "metrics", "results", "engine", "tools", "report",
    "cli", "extend.py", "__main__.py",
)  # fmt: skip
LEAVES = ("depth", "explore", "integrations", "style", "world")
MOST_LINES = 500
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef)
NOT_FOR_RECIPES = ("cv2", "numba", "scipy", "skimage", "torch", "PIL")
SETS = ("stormproof.imaging.cpu", "stormproof.imaging.gpu")
# Folders of tests that belong to no room: of several rooms together, of other folders of the repository, and
# helpers and programs, which are no tests.
TESTS = Path(__file__).parent
OTHER_TESTS = {
    "browser",
    "conformance",
    "e2e",
    "fuzz",
    "golden",
    "helpers",
    "programs",
    "studies",
    "trainings",
}


class ModuleText(NamedTuple):
    """What the tests below ask of a file."""

    imports: frozenset[str]  # every module that it imports when it is loaded or run
    words: str  # its names and texts, one a line, without comments and docstrings


@cache
def parsed(path: Path) -> ModuleText:
    """A file is parsed once, but its tree is not kept: the garbage collector would look through all of them
    during every later test."""
    imports: set[str] = set()
    words: set[object] = set()
    docstrings: set[int] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imports |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imports |= {f"{node.module}.{alias.name}" for alias in node.names}
        if isinstance(node, DOCUMENTED) and node.body and isinstance(node.body[0], ast.Expr):
            docstrings.add(id(node.body[0].value))  # before the walk comes to it
        if id(node) not in docstrings:
            words |= {getattr(node, key, None) for key in ("id", "attr", "arg", "name", "module", "value")}
    return ModuleText(frozenset(imports), "\n".join(word for word in words if isinstance(word, str)))


def may_import(importer: str, imported: str) -> bool:
    if imported not in (*TRUNK, *LEAVES) or importer == imported:
        return True
    if importer in LEAVES:
        return imported in TRUNK
    return imported in TRUNK and TRUNK.index(imported) < TRUNK.index(importer)


def test_imports_point_one_way() -> None:
    packages = {name: name.partition("/")[0] for name in MODULES if name != "__init__.py"}
    assert {*packages.values()} == {*TRUNK, *LEAVES}
    wrong = [
        f"{name} imports {module}"
        for name, package in packages.items()
        for module in sorted(parsed(MODULES[name]).imports)
        if module.startswith("stormproof.") and not may_import(package, module.split(".")[1])
    ]
    assert not wrong, "\n".join(wrong)


def test_modules_are_small_and_recipes_use_only_primitives() -> None:
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in MODULES.items()}
    wrong = [f"{name} has {count} lines" for name, count in lines.items() if count > MOST_LINES]
    wrong += [
        f"{name} imports {module}"
        for name, path in MODULES.items()
        if name.startswith("corruptions/") and name != "corruptions/on_device.py"
        for module in sorted(parsed(path).imports)
        if module.split(".")[0] in NOT_FOR_RECIPES or module.startswith(SETS)
    ]
    assert not wrong, "\n".join(wrong)


def test_tests_mirror_the_source() -> None:
    folders = {path.name for path in TESTS.iterdir() if path.is_dir() and path.name != "__pycache__"}
    rooms = {path.name for path in SOURCE.iterdir() if (path / "__init__.py").is_file()}
    assert folders == rooms | OTHER_TESTS


def test_helpers_of_tests_are_in_one_folder() -> None:
    """A room's folder has tests and fixtures only, and no module imports a module of tests."""
    modules = [path for path in TESTS.rglob("*.py") if path.relative_to(TESTS).parts[0] not in OTHER_TESTS]
    assert [path.name for path in modules if not re.match(r"(test_\w+|conftest)\.py", path.name)] == []
    borrowing = re.compile(r"^(from|import) (\w+\.test_|\w+\.conftest|conftest)", re.MULTILINE)
    assert [path.name for path in TESTS.rglob("*.py") if borrowing.search(path.read_text("utf-8"))] == []


def test_the_package_offers_its_public_names_and_nothing_else() -> None:
    assert sorted(dir(stormproof)) == sorted(["__version__", *stormproof.__all__])
    assert all(getattr(stormproof, name) is not None for name in stormproof.__all__)
    assert set(stormproof._HOMES) == set(stormproof.__all__)


def test_what_pages_teach_plugins_to_import_is_public() -> None:
    assert [name for name in extend.__all__ if getattr(extend, name, None) is None] == []
    pages = (SOURCE.parents[1] / "docs" / "adding").glob("*.md")
    text = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    taught = re.findall(r"^\+?from (stormproof\S*) import ([\w, ]+)$", text, re.MULTILINE)
    names = {name.strip() for _, several in taught for name in several.split(",")}
    assert len(names) > 30
    assert names <= {*extend.__all__, *stormproof.__all__}


def test_importing_the_package_and_its_command_line_loads_nothing_heavy() -> None:
    heavy = ["torch", "numba", "cv2", "scipy", "numpy", "pyarrow", "transformers", "onnxruntime", "ray"]
    code = f"import sys, stormproof.cli; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_corrupting_loads_no_framework() -> None:
    code = (
        "import sys, numpy as np; from stormproof import corrupt;"
        "corrupt(np.zeros((32, 32, 3), np.uint8), 1, 'fog');"
        "print([m for m in ('torch', 'onnxruntime', 'transformers', 'tensorflow') if m in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_the_street_is_rendered_by_numpy_and_numba_alone() -> None:
    """A machine that only renders scenes to train on needs nothing else."""
    heavy = ["torch", "cv2", "scipy.special", "pydantic", "pyarrow", "PIL"]  # Numba itself looks for SciPy
    code = f"import sys, stormproof.world.samples; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# The files of each task, and the others that know of it.
TASKS = {
    "key points": (
        r"key_?points?|kpt_|\bsigmas\b|\bjoints?\b|_joints|\bpose\b|_pose",
        ("metrics/keypoints.py", "metrics/points.py", "metrics/oks.py", "core/joints.py",
         "models/families/pose.py", "models/vitpose.py", "world/joints.py"),
        ("datasets/coco.py", "world/dataset.py", "world/models/people.py"),
    ),
    "oriented boxes": (
        r"oriented|\bobb\b|\brbox\b|rotated_|xyxyxyxy",
        ("metrics/oriented.py", "metrics/corners.py", "core/oriented.py", "datasets/dota.py",
         "models/families/oriented.py"),
        ("datasets/yolo.py", "models/candidates.py"),
    ),
    "panoptic maps": (
        r"panoptic",
        ("metrics/panoptic.py", "datasets/panoptic.py", "models/panoptic.py", "core/sample.py"),
        ("cli/export.py", "cli/inspect_model.py", "datasets/__init__.py", "engine/checks.py",
         "explore/desk.py", "metrics/metric.py", "models/classes.py",
         "models/huggingface.py", "models/predictions.py", "models/results.py", "results/store/export.py",
         "world/commands.py", "world/formats.py"),
    ),
    "LVIS": (
        r"federated|lvis",
        ("metrics/lvis.py", "datasets/lvis.py", "core/federated.py"),
        ("core/wrapper.py", "datasets/coco.py", "datasets/dataset.py", "results/truths.py",
         "metrics/records.py", "metrics/cocomatching.py", "metrics/inputs.py", "metrics/metric.py"),
    ),
}  # fmt: skip
# Other meanings of the same words: VOC's pose tag, blurs of several σ, joints between slabs, filters.
OTHERWISE = ("datasets/voc.py", "imaging/", "metrics/pyramid.py", "world/facade.py", "world/looks.py")


def test_a_task_is_known_to_its_own_files_and_few_others() -> None:
    known = {name: parsed(path).words for name, path in MODULES.items() if not name.startswith(OTHERWISE)}
    for task, (pattern, own, others) in TASKS.items():
        knowing = [name for name, text in known.items() if re.search(pattern, text, re.IGNORECASE)]
        assert knowing == sorted((*own, *others)), task
