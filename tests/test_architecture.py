"""The house plan, enforced: who may import whom, what recipes may touch, how big a room may get."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import stormproof

SOURCE = Path(__file__).resolve().parents[1] / "src" / "stormproof"
MODULES = sorted(SOURCE.rglob("*.py"))

# Each room may import from those listed before it, never from those after; leaves come last.
ORDER = (
    "core", "imaging", "corruptions", "datasets", "models", "metrics", "results", "engine", "tools", "report",
    "cli", "__main__", "batches", "depth", "style", "world",
)  # fmt: skip
RECIPES = sorted((SOURCE / "corruptions").rglob("*.py"))


def imports(path: Path) -> set[str]:
    """Every module a file imports when it is loaded or run."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def room(path: Path) -> str:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return parts[0]


def test_every_room_is_in_the_plan() -> None:
    assert {room(m) for m in MODULES} - {"__init__"} <= set(ORDER)


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(SOURCE)))
def test_imports_point_one_way(module: Path) -> None:
    own = room(module)
    if own == "__init__":
        return
    for name in imports(module):
        parts = name.split(".")
        if parts[0] == "stormproof" and len(parts) > 1 and parts[1] in ORDER:
            assert ORDER.index(parts[1]) <= ORDER.index(own), f"{own} must not import {name}"


@pytest.mark.parametrize("recipe", RECIPES, ids=lambda m: m.stem)
def test_recipes_use_only_primitives_and_arrays(recipe: Path) -> None:
    roots = {name.split(".")[0] for name in imports(recipe)}
    assert not roots & {"cv2", "numba", "scipy", "skimage", "torch", "PIL"}
    assert not any(
        name.startswith(("stormproof.imaging.cpu", "stormproof.imaging.gpu")) for name in imports(recipe)
    )


@pytest.mark.parametrize("module", MODULES, ids=lambda m: str(m.relative_to(SOURCE)))
def test_rooms_stay_small(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) <= 300


def test_the_package_offers_its_public_names_and_nothing_else() -> None:
    assert sorted(dir(stormproof)) == sorted(["__version__", *stormproof.__all__])
    assert all(getattr(stormproof, name) is not None for name in stormproof.__all__)
    assert set(stormproof._HOMES) == set(stormproof.__all__)


def test_importing_the_package_loads_nothing_heavy() -> None:
    heavy = ["torch", "numba", "cv2", "scipy", "numpy", "pyarrow", "transformers", "onnxruntime", "ray"]
    code = f"import sys, stormproof; print([m for m in {heavy!r} if m in sys.modules])"
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
    code = f"import sys, stormproof.world; print([m for m in {heavy!r} if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
