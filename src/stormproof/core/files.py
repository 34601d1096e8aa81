"""Files: finds them, reads them safely, writes them atomically.

`error` is the class raised for a file that cannot be found or read: `ModelError` for a model's file,
`InvalidOption` for one that an option names, `DatasetError` by default.
"""

from __future__ import annotations

import gc
import hashlib
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from difflib import get_close_matches
from io import BufferedReader, BytesIO
from json import JSONDecodeError, loads  # here: a model's code may put others in their place
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from uuid import uuid4
from xml.etree.ElementTree import Element

from stormproof.core.errors import DatasetError, OutputError, StormproofError
from stormproof.core.text import indented_json

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import numpy.typing as npt

Error = type[StormproofError]

_TEMPORARY = re.compile(r"\.(.*\.)?[0-9a-f]{12}\.tmp")  # as `whole_file` names them
MAX_YAML = 1 << 20  # characters, and values with all aliases written out
LARGEST = 8 << 30  # bytes of a file that is read whole; twice the largest public annotations
_KINDS = {
    stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe", stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device", stat.S_IFBLK: "a device",
}  # fmt: skip
_FIX = "check that the folder exists, is writable and has space"


def file_problem(error: Error, file: object, what: str, record: str = "") -> StormproofError:
    """An error of this class about a file; `record` says where in it."""
    if issubclass(error, DatasetError):
        return error(file, what, record)
    return error(f"{file}{', ' + record if record else ''}: {what}")


def expand(text: str | os.PathLike[str], *, error: Error = DatasetError) -> Path:
    """A path with `~` expanded; names that no file system accepts are refused."""
    path = Path(text)
    try:
        path = path.expanduser()
        path.stat()  # Path.exists() would ignore a zero byte
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return path
    except (RuntimeError, ValueError, OSError) as cause:  # no such user, a zero byte, a name too long
        reason = getattr(cause, "strerror", None) or cause
        raise file_problem(error, f"{str(text)!r:.200}", f"is not a path ({reason}).") from None
    return path


def is_file(path: Path) -> bool:
    """Whether there is such a file; False for names that no file system accepts."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def locate(text: str | os.PathLike[str], near: Path | None = None, *, error: Error = DatasetError) -> Path:
    """The file or folder `text`, as given or inside the folder `near`; the error suggests a similar name."""
    given = expand(text, error=error)
    candidates = [given] if near is None or given.is_absolute() else [given, near / given]
    for path in candidates:
        if path.exists():
            if not path.is_dir():
                _require_file(path, path.stat(), error)
            return path
    raise file_problem(error, given, f"no such file or folder; {_nearest(candidates)}")


def folder(path: Path, purpose: str) -> Path:
    """`path`, which must be a folder; `purpose` is what it holds, for the error."""
    if not path.is_dir():
        if path.exists():
            raise DatasetError(path, f"is a file; give the folder of {purpose}.")
        raise DatasetError(path, f"no such folder of {purpose}; {_nearest([path])}")
    return path


def first_folder(candidates: Iterable[Path], purpose: str) -> Path:
    """The first of some folders that exists; `purpose` is what it holds, for the error."""
    places = list(candidates)
    for path in places:
        if path.is_dir():
            return path
    looked = ", ".join(str(path) for path in places)
    raise DatasetError(places[0], f"no folder of {purpose}; looked for {looked}; {_nearest(places[:1])}")


def _nearest(candidates: Sequence[Path]) -> str:
    """A hint: the most similar name beside the first missing part of each path."""
    for path in candidates:
        parent, name = path.parent, path.name
        while not parent.is_dir() and parent != parent.parent:
            parent, name = parent.parent, parent.name
        if parent == parent.parent:
            continue  # an entry directly below / is not what the user meant
        beside = sorted(entry.name for entry in parent.iterdir()) if parent.is_dir() else []
        near = get_close_matches(name, beside, n=1, cutoff=0.5)
        if near:
            return f"did you mean {parent / near[0]}?"
    return "check the path."


def list_files(root: Path, suffixes: Iterable[str]) -> list[Path]:
    """All files below `root` with one of the suffixes, sorted; hidden files are left out."""
    wanted = frozenset(suffixes)
    paths = (
        path for path in root.rglob("*")
        if path.suffix.lower() in wanted and not path.name.startswith(".") and path.is_file()
    )  # fmt: skip
    return sorted(paths, key=lambda path: path.relative_to(root).as_posix())


def _require_file(path: Path, status: os.stat_result, error: Error) -> None:
    """Refuse a device, a pipe or a socket: reading one may never end."""
    if not stat.S_ISREG(status.st_mode):
        kind = _KINDS.get(stat.S_IFMT(status.st_mode), "not a file")
        raise file_problem(error, path, f"is {kind}; give a file.")


@contextmanager
def open_regular(
    path: Path, *, at_most: int | None = None, error: Error = DatasetError
) -> Iterator[BufferedReader]:
    """Open a regular file of at most `at_most` bytes for reading; refuse anything else by its kind."""
    try:
        _require_file(path, path.stat(), error)  # before it is opened, which a device may act on
        # A pipe that takes the file's place in between must not block.
        handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    except FileNotFoundError:
        raise file_problem(error, path, f"no such file; {_nearest([path])}") from None
    except (OSError, ValueError) as cause:  # a zero byte in its name is a ValueError
        if isinstance(cause, StormproofError):
            raise
        raise file_problem(error, path, f"cannot be read: {getattr(cause, 'strerror', cause)}.") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        _require_file(path, status, error)
        if at_most is not None and status.st_size > at_most:
            raise file_problem(error, path, f"has {status.st_size:,} bytes; at most {at_most:,} are read.")
        yield file


def read_bytes(path: Path, *, at_most: int = LARGEST, error: Error = DatasetError) -> bytes:
    """The content of a regular file of at most `at_most` bytes."""
    with open_regular(path, at_most=at_most, error=error) as file:
        try:
            content = file.read(os.fstat(file.fileno()).st_size + 1) or b""
            while len(content) <= at_most and (more := file.read(1 << 20)):  # of a file without a size
                content += more
        except OSError as cause:
            raise file_problem(error, path, f"cannot be read: {cause.strerror}.") from None
    if len(content) > at_most:
        raise file_problem(error, path, f"has more than {at_most:,} bytes, the most that is read.")
    return content


def read_text(path: Path, *, at_most: int = LARGEST, error: Error = DatasetError) -> str:
    """The content of a UTF-8 file, without a byte order mark; lines end in a newline only."""
    try:
        text = read_bytes(path, at_most=at_most, error=error).decode("utf-8-sig")
        return text.replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError as cause:
        raise file_problem(error, path, f"is not UTF-8 text (byte {cause.start}).") from None


def sha256(path: Path, *, error: Error = DatasetError) -> str:
    """The hash of a file's bytes, in hexadecimal."""
    with open_regular(path, error=error) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_lines(path: Path, *, error: Error = DatasetError) -> list[str]:
    """The lines of a text file, stripped, without empty ones."""
    return [line.strip() for line in read_text(path, error=error).splitlines() if line.strip()]


def read_json(path: Path, *, at_most: int = LARGEST, error: Error = DatasetError) -> Any:
    return parse_json(read_text(path, at_most=at_most, error=error), path, error=error)


def parse_json(text: str | bytes, file: object, *, error: Error = DatasetError) -> Any:
    """The content of a JSON document; `file` names it in errors."""
    collects = gc.isenabled()
    gc.disable()  # reading makes no garbage, and collecting would take half the time
    try:
        return loads(text)
    except JSONDecodeError as cause:
        what = f"is not JSON: {cause.msg}; the file may be cut short."
        raise file_problem(error, file, what, f"line {cause.lineno} column {cause.colno}") from None
    except (ValueError, RecursionError) as cause:  # not UTF-8, numbers of thousands of digits, deep nesting
        raise file_problem(error, file, f"is not JSON: {cause}.") from None
    finally:
        if collects:
            gc.enable()


def read_yaml(path: Path, *, error: Error = DatasetError, as_text: bool = False) -> Any:
    """The content of a YAML file; only plain values are read, never Python objects.

    `as_text` reads every value as it is written, for names: YAML takes on and no for truth values, 010 for 8.
    Aliases are followed up to a limit: a few lines of them can expand to more values than fit in memory.
    """
    import yaml

    text = read_text(path, at_most=4 * MAX_YAML, error=error)
    if len(text) > MAX_YAML:
        raise file_problem(error, path, f"has {len(text):,} characters; a YAML file may have {MAX_YAML:,}.")
    try:
        kind = "BaseLoader" if as_text else "SafeLoader"
        content = yaml.load(text, getattr(yaml, f"C{kind}", getattr(yaml, kind)))
    except (yaml.YAMLError, ValueError, TypeError, RecursionError, AttributeError) as cause:
        raise file_problem(error, path, f"is not YAML: {' '.join(str(cause).split())}.") from None
    try:
        size = _values(content, {})
    except RecursionError:
        raise file_problem(error, path, "its lists and mappings are nested too deeply.") from None
    if size > MAX_YAML:
        raise file_problem(error, path, "its aliases (*name) expand to too many values; write them out.")
    return content


def _values(content: object, known: dict[int, float]) -> float:
    """The number of values in a document with its aliases expanded; infinite if one contains itself."""
    if not isinstance(content, dict | list):
        return 1
    if id(content) not in known:
        known[id(content)] = float("inf")  # until its content has been counted
        inside = content.values() if isinstance(content, dict) else content
        known[id(content)] = 1 + sum(_values(value, known) for value in inside)
    return known[id(content)]


def read_xml(path: Path) -> Element:
    """The root element; entity definitions are refused, since a small file could expand to gigabytes."""
    from defusedxml.common import DefusedXmlException
    from defusedxml.ElementTree import ParseError, fromstring

    try:
        root: Element = fromstring(read_text(path))
    except ParseError as error:
        raise DatasetError(path, f"is not XML: {error}; the file may be cut short.") from None
    except DefusedXmlException as error:
        name = getattr(error, "name", "")
        raise DatasetError(path, f"defines the XML entity {name!r}; entities are refused.") from None
    except (ValueError, LookupError, RecursionError) as error:  # such as an unknown encoding
        raise DatasetError(path, f"is not XML: {error}.") from None
    return root


def read_npy(path: Path) -> npt.NDArray[Any]:
    """Read the array in a .npy file; arrays of Python objects are refused."""
    with open_regular(path, at_most=LARGEST) as file:
        try:
            return _array(file, path.stat().st_size)
        except Exception as cause:  # the readers of headers and archives fail in many ways
            raise DatasetError(path, f"cannot be read as NPY: {cause}.") from None


def read_npz(path: Path, *names: str, error: Error = DatasetError) -> tuple[npt.NDArray[Any], ...]:
    """Read the named arrays in an .npz file."""
    with open_regular(path, at_most=LARGEST, error=error) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                return tuple(_member(archive, f"{name}.npy") for name in names)
        except Exception as cause:  # the readers of headers and archives fail in many ways
            raise file_problem(error, path, f"cannot be read as NPZ: {cause}.") from None


def _member(archive: zipfile.ZipFile, name: str) -> npt.NDArray[Any]:
    size = archive.getinfo(name).file_size
    if size > LARGEST:
        raise ValueError(f"{name} has {size:,} bytes; at most {LARGEST:,} are read")
    with archive.open(name) as packed:
        return _array(BytesIO(packed.read(size)), size)


def _array(file: IO[bytes], size: int) -> npt.NDArray[Any]:
    """Read an array from a file of `size` bytes, which must match the shape and type in its header.

    A header may state any shape, and pickled objects would run code.
    """
    from numpy.lib import format as npy  # here: the command line's help does not need NumPy

    readers = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
    version = npy.read_magic(file)
    if version not in readers:
        raise ValueError(f"unknown format version {version[0]}.{version[1]}")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject or dtype.names is not None:
        raise ValueError(f"it holds {dtype}, not numbers")
    stated, left = math.prod(shape) * dtype.itemsize, size - file.tell()
    if min(shape, default=0) < 0 or stated != left:
        raise ValueError(f"its header states {shape} of {dtype}, but {left:,} bytes follow")
    file.seek(0)
    array: npt.NDArray[Any] = npy.read_array(file, allow_pickle=False)
    return array


@contextmanager
def whole_file(path: Path, *, durable: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing under a temporary name, and rename it when the block ends without an error.

    A durable file also survives a power failure, at the cost of waiting for the disk. Its temporary name
    begins with its own, so that what a killed process left behind is removed when it is next written.
    """
    own = ""  # a name of the maximum length leaves no room
    if durable:
        own = f"{path.name}."
        sweep(path)
    temporary = path.with_name(f".{own}{uuid4().hex[:12]}.tmp")
    try:
        with _open_locked(temporary) as file:
            yield file
            file.flush()
            if durable:
                os.fsync(file.fileno())
            if fcntl is not None:  # while the lock is held: without it, the file counts as left behind
                temporary.replace(path)
        if fcntl is None:  # Windows does not rename an open file
            temporary.replace(path)
        if durable:
            _sync_folder(path.parent)
    except OSError as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"Cannot write {path}: {error.strerror or error}; {_FIX}.") from error
    finally:
        with suppress(OSError):  # a folder that became read-only must not hide the first error
            temporary.unlink(missing_ok=True)


def _open_locked(path: Path) -> IO[bytes]:
    """A new file, locked for as long as it is open: that is how a sweep knows that its writer lives."""
    while True:
        file = path.open("x+b")
        if fcntl is None:
            return file
        with suppress(OSError):  # a file system without locks
            fcntl.flock(file, fcntl.LOCK_EX)
        with suppress(FileNotFoundError):  # swept between its creation and its lock
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                return file
        file.close()


def sweep(path: Path) -> None:
    """Remove the temporary files that killed writers of `path` left behind."""
    with suppress(OSError):  # no such folder
        for stale in path.parent.iterdir():
            if stale.name.startswith(f".{path.name}.") and _TEMPORARY.fullmatch(stale.name):
                _remove_abandoned(stale)


def sweep_below(folder: Path) -> None:
    """Remove the temporary files that killed writers left below a folder."""
    for stale in folder.rglob(".*.tmp"):
        if _TEMPORARY.fullmatch(stale.name):
            _remove_abandoned(stale)


def _remove_abandoned(path: Path) -> None:
    """Remove a temporary file unless its writer lives, or nobody can tell."""
    with suppress(OSError):
        if fcntl is None:
            path.unlink()  # Windows does not remove a file that is open
            return
        with path.open("r+b") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), path.stat()):  # its writer may have begun a new one
                path.unlink()


def write_text(path: Path, text: str) -> None:
    """Write a text file in UTF-8, atomically."""
    with whole_file(path) as file:
        file.write(text.encode())


def append_text(path: Path, text: str) -> None:
    """Add to the end of a text file in UTF-8; the file is made if there is none."""
    try:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise OutputError(f"Cannot write {path}: {error.strerror or error}; {_FIX}.") from error


def write_json(path: Path, content: Any) -> None:
    """Write indented JSON, atomically."""
    write_text(path, indented_json(content) + "\n")


def make_folder(path: Path) -> Path:
    """Create a folder, if needed, and return it.

    It is not created directly below `/`, where a missing folder means a typing error or an unmounted disk.
    """
    missing = [folder for folder in (path.absolute(), *path.absolute().parents) if not folder.exists()]
    if missing and str(missing[-1].parent) == "/":
        fix = f"check the path, or create {missing[-1]} first"
        raise OutputError(f"Cannot create {path}: {missing[-1]} does not exist; {fix}.")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(f"Cannot create {path}: {error.strerror or error}; {_FIX}.") from error
    return path


def refuse_link(path: Path) -> Path:
    """`path`, a folder to write to; refused if it is a link, which could lead out of its parent folder."""
    if path.is_symlink():
        raise OutputError(f"Cannot write to {path}: it is a link to {path.readlink()}; give another folder.")
    return path


def _sync_folder(path: Path) -> None:
    if os.name != "posix":
        return  # Windows cannot open a folder; its renames are durable
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
