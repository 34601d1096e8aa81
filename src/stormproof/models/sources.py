"""The source files that a model in Python consists of: its own, and the modules beside it that it imports.

They are found in the text, without running anything, so that every process finds the same ones. Installed
packages are not among them: `run.json` records the versions of those that matter.
"""

from __future__ import annotations

import ast
import sys
import sysconfig
from collections.abc import Iterator, Sequence
from pathlib import Path

from stormproof.core.errors import StormproofError
from stormproof.core.files import read_text

_INSTALLED = ("site-packages", "dist-packages")
_OURS = (Path(__file__).resolve().parents[1], Path(sysconfig.get_path("stdlib")).resolve())
_MOST = 1000  # files: a model is not a whole framework


def source_files(file: Path, module: str = "") -> tuple[Path, ...]:
    """`file`, then every file below its folder that it imports, directly or through others, in order of path.

    `module` is the dotted name of `file` if it belongs to a package: the folder is then the package's parent.
    """
    given, file = file, file.resolve()
    depth = module.count(".") + (file.name == "__init__.py")
    folder = file.parents[depth] if depth < len(file.parents) else file.parent
    if is_installed(file):
        return (given,)
    places = dict.fromkeys(Path(entry).resolve() for entry in sys.path if entry)
    # A script may have added folders below its own to import from.
    roots = [folder, *(p for p in places if folder in p.parents and not is_installed(p))]
    seen, waiting = {file}, [file]
    while waiting and len(seen) < _MOST:
        for path in _imported_files(waiting.pop(), roots):
            if path not in seen and not is_installed(path):
                seen.add(path)
                waiting.append(path)
    return (given, *sorted(seen - {file}))


def is_installed(path: Path) -> bool:
    """Whether a file belongs to an installed package, to Python or to Stormproof."""
    return any(part in _INSTALLED for part in path.parts) or any(path.is_relative_to(one) for one in _OURS)


def _imported_files(file: Path, roots: Sequence[Path]) -> Iterator[Path]:
    """The files that the import statements of a file name, wherever they stand in it."""
    try:
        tree = ast.parse(read_text(file))
    except (StormproofError, SyntaxError, ValueError, RecursionError):  # Python itself would not load it
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for name in node.names:
                yield from _resolve(name.name.split("."), roots)
        elif isinstance(node, ast.ImportFrom):
            inside = node.module.split(".") if node.module else []
            places = [file.parents[node.level - 1]] if 0 < node.level <= len(file.parents) else roots
            for name in node.names:  # each may be a module of its own
                yield from _resolve([*inside, name.name], places)


def _resolve(names: Sequence[str], roots: Sequence[Path]) -> Iterator[Path]:
    """The files of a dotted name: packages on the way, and the module; nothing if it is not below `roots`."""
    for root in roots:
        place, hits = root, list[Path]()
        for name in names:
            place = place / name
            hits += filter(Path.is_file, (place / "__init__.py", place.with_name(f"{name}.py")))
        if hits:
            yield from hits
            return
