"""Files: find them, read them safely, write them so that they appear whole or not at all.

A file that cannot be found or read is an error of whoever asked for it: `error=ModelError` for a model's
file, `error=InvalidOption` for one that an option names, and `DatasetError` unless said otherwise.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import IO, Any
from uuid import uuid4
from xml.etree.ElementTree import Element

from stormproof.core.errors import DatasetError, OutputError, StormproofError

Error = type[StormproofError]

_TEMPORARY = re.compile(r"\.(.*\.)?[0-9a-f]{12}\.tmp")  # as `whole_file` names them
MAX_YAML = 1 << 20  # characters, and values with all aliases written out
_FIX = "check that the folder exists, is writable and has space"


def _problem(error: Error, file: object, what: str, record: str = "") -> StormproofError:
    if issubclass(error, DatasetError):
        return error(file, what, record)
    return error(f"{file}{', ' + record if record else ''}: {what}")


def expand(text: str | os.PathLike[str], *, error: Error = DatasetError) -> Path:
    """A path as given, with `~` for a home folder; one that no file system takes is refused."""
    path = Path(text)
    try:
        path = path.expanduser()
        path.stat()  # which says what is wrong, where Path.exists() passes over a zero byte
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return path
    except (RuntimeError, ValueError, OSError) as cause:  # no such user; a zero byte; too long a name
        reason = getattr(cause, "strerror", None) or cause
        raise _problem(error, f"{str(text)!r:.200}", f"is not a path ({reason}).") from None
    return path


def is_file(path: Path) -> bool:
    """Whether there is such a file; a name that no file system takes names none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def locate(text: str | os.PathLike[str], near: Path | None = None, *, error: Error = DatasetError) -> Path:
    """The file or folder `text`, as given or inside the folder `near`; if neither exists, a near name."""
    given = expand(text, error=error)
    candidates = [given] if near is None or given.is_absolute() else [given, near / given]
    for path in candidates:
        if path.exists():
            return path
    raise _problem(error, given, f"no such file or folder; {_nearest(candidates)}")


def folder(path: Path, purpose: str) -> Path:
    """`path`, which must be a folder that holds `purpose`."""
    if not path.is_dir():
        if path.exists():
            raise DatasetError(path, f"is a file; give the folder of {purpose}.")
        raise DatasetError(path, f"no such folder of {purpose}; {_nearest([path])}")
    return path


def first_folder(candidates: Iterable[Path], purpose: str) -> Path:
    """The first of the places a format may keep `purpose` in."""
    places = list(candidates)
    for path in places:
        if path.is_dir():
            return path
    looked = ", ".join(str(path) for path in places)
    raise DatasetError(places[0], f"no folder of {purpose}; looked for {looked}; {_nearest(places[:1])}")


def _nearest(candidates: Sequence[Path]) -> str:
    """A hint: the closest name beside the first missing part of each path."""
    for path in candidates:
        parent, name = path.parent, path.name
        while not parent.is_dir() and parent != parent.parent:
            parent, name = parent.parent, parent.name
        beside = sorted(entry.name for entry in parent.iterdir()) if parent.is_dir() else []
        near = get_close_matches(name, beside, n=1, cutoff=0.5)
        if near:
            return f"did you mean {parent / near[0]}?"
    return "check the path."


def list_files(root: Path, suffixes: Iterable[str]) -> list[Path]:
    """All files below `root` with one of the suffixes, hidden ones left out, in one fixed order."""
    wanted = frozenset(suffixes)
    found = (
        path for path in root.rglob("*")
        if path.suffix.lower() in wanted and not path.name.startswith(".") and path.is_file()
    )  # fmt: skip
    return sorted(found, key=lambda path: path.relative_to(root).as_posix())


def read_text(path: Path, *, error: Error = DatasetError) -> str:
    """A text file in UTF-8; a byte order mark is left out."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise _problem(error, path, f"no such file; {_nearest([path])}") from None
    except UnicodeDecodeError as cause:
        raise _problem(error, path, f"is not UTF-8 text (byte {cause.start}).") from None
    except OSError as cause:
        raise _problem(error, path, f"cannot be read: {cause.strerror}.") from None


def sha256(path: Path) -> str:
    """The hash of a file's bytes, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_lines(path: Path, *, error: Error = DatasetError) -> list[str]:
    """The lines of a text file that hold anything, without the space around them."""
    return [line.strip() for line in read_text(path, error=error).splitlines() if line.strip()]


def read_json(path: Path, *, error: Error = DatasetError) -> Any:
    return parse_json(read_text(path, error=error), path, error=error)


def parse_json(text: str | bytes, file: object, *, error: Error = DatasetError) -> Any:
    """What a JSON document holds; `file` names it in errors."""
    try:
        with _no_collection():
            return json.loads(text)
    except json.JSONDecodeError as cause:
        place = f"line {cause.lineno} column {cause.colno}"
        raise _problem(error, file, f"is not JSON: {cause.msg}; the file may be cut short.", place) from None
    except (ValueError, RecursionError) as cause:  # not UTF-8, numbers of thousands of digits, deep nesting
        raise _problem(error, file, f"is not JSON: {cause}.") from None


@contextmanager
def _no_collection() -> Iterator[None]:
    """Without looking for garbage, which a document being read has none of: half the time of a large one."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()


def read_yaml(path: Path, *, error: Error = DatasetError) -> Any:
    """What a YAML file holds; only plain values are read, never Python objects.

    Aliases are followed, but not without end: a few lines of them can stand for more values than fit
    any memory.
    """
    import yaml

    text = read_text(path, error=error)
    if len(text) > MAX_YAML:
        raise _problem(error, path, f"has {len(text):,} characters; a YAML file may have {MAX_YAML:,}.")
    try:
        content = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError) as cause:
        raise _problem(error, path, f"is not YAML: {' '.join(str(cause).split())}.") from None
    if _values(content, {}) > MAX_YAML:
        raise _problem(error, path, "its aliases (*name) stand for too many values; write them out.")
    return content


def _values(content: object, known: dict[int, float]) -> float:
    """How many values a document holds with its aliases written out; infinity where one holds itself."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in known:
        known[id(content)] = float("inf")  # until all that is inside has been counted
        inside = content.values() if isinstance(content, dict) else content
        known[id(content)] = 1 + sum(_values(value, known) for value in inside)
    return known[id(content)]


def read_xml(path: Path) -> Element:
    """The root element; entity definitions are refused, so that no small file grows into gigabytes."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        root: Element = fromstring(read_text(path))
    except ParseError as error:
        raise DatasetError(path, f"is not XML: {error}; the file may be cut short.") from None
    except DefusedXmlException as error:
        name = getattr(error, "name", "")
        raise DatasetError(path, f"defines the XML entity {name!r}; entities are refused.") from None
    except (
        ValueError,
        LookupError,
        RecursionError,
    ) as error:  # an encoding that does not exist, and the like
        raise DatasetError(path, f"is not XML: {error}.") from None
    return root


@contextmanager
def whole_file(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """A file to write; it takes its name when the block ends without an error.

    A durable file also survives a power failure, at the price of waiting for the disk. Its temporary name
    begins with its own, so that `sweep` finds what a killed process left.
    """
    own = f"{path.name}." if durable else ""  # a name of full length leaves no room for more
    temporary = path.with_name(f".{own}{uuid4().hex[:12]}.tmp")
    try:
        with temporary.open("x+b") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        temporary.replace(path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"Cannot write {path}: {error.strerror or error}; {_FIX}.") from error
    finally:
        _remove(temporary)


def sweep(path: Path) -> None:
    """Remove the temporary files that killed writers of `path` left behind."""
    for stale in path.parent.glob(f".{path.name}.*.tmp"):
        _remove(stale)


def sweep_below(folder: Path) -> None:
    """Remove the temporary files that killed writers left anywhere below a folder that is ours alone."""
    for stale in folder.rglob(".*.tmp"):
        if _TEMPORARY.fullmatch(stale.name):
            _remove(stale)


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, whole or not at all."""
    with whole_file(path) as file:
        file.write(text.encode())


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON, whole or not at all."""
    write_text(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def make_folder(path: Path) -> Path:
    """The folder, made if it is not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot make {path}: {error.strerror or error}; {_FIX}.") from error
    return path


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:  # a folder that went read-only must not hide the error that matters
        return


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return  # Windows cannot open a folder; its rename is durable by itself
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
