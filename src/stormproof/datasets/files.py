"""What all readers do with files: find them, parse them safely, pair them, say what is wrong with them."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element

from stormproof.errors import DatasetError

IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".ppm", ".pgm", ".tif", ".tiff"})


def locate(text: str | os.PathLike[str], near: Path | None = None) -> Path:
    """The file or folder `text`, as given or beside the dataset's root `near`; else say what is there."""
    given = Path(text).expanduser()
    candidates = [given] if near is None or given.is_absolute() else [given, near / given]
    for path in candidates:
        if path.exists():
            return path
    raise DatasetError(given, f"no such file or folder; {_nearest(candidates)}")


def folder(path: Path, purpose: str) -> Path:
    """`path`, which must be a folder that holds `purpose`."""
    if not path.is_dir():
        if path.exists():
            raise DatasetError(path, f"is a file; the folder of {purpose} is wanted.")
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


def list_files(root: Path, suffixes: Iterable[str] = IMAGE_SUFFIXES) -> list[Path]:
    """All files below `root` with one of the suffixes, hidden ones left out, in one fixed order."""
    wanted = frozenset(suffixes)
    found = (
        path for path in root.rglob("*")
        if path.suffix.lower() in wanted and not path.name.startswith(".") and path.is_file()
    )  # fmt: skip
    return sorted(found, key=lambda path: path.relative_to(root).as_posix())


def by_stem(paths: Iterable[Path], endings: Sequence[str] = ()) -> dict[str, Path]:
    """Files by name without suffix (and without the first of `endings` that fits); a name may occur once.

    >>> by_stem([Path("d/a_depth.png")], ["_depth"])["a"].name
    'a_depth.png'
    """
    found: dict[str, Path] = {}
    for path in paths:
        ending = next((e for e in endings if path.stem.endswith(e)), "")
        key = path.stem.removesuffix(ending)
        if key in found:
            raise DatasetError(path, f"is a second file for {key!r}, beside {found[key]}; keep one.")
        found[key] = path
    return found


def paired(
    images: Mapping[str, Path], labels: Mapping[str, Path], where: Path
) -> list[tuple[str, Path, Path]]:
    """Each name with its image and its label file; one without the other is an error."""
    problems = [DatasetError(images[name], "has no label file.") for name in images.keys() - labels.keys()]
    problems += [DatasetError(labels[name], "has no image.") for name in labels.keys() - images.keys()]
    raise_all(sorted(problems, key=str))
    if not images:
        raise DatasetError(where, "holds no images.")
    return [(name, images[name], labels[name]) for name in sorted(images)]


def read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise DatasetError(path, f"no such file; {_nearest([path])}") from None
    except UnicodeDecodeError as error:
        raise DatasetError(path, f"is not UTF-8 text (byte {error.start}).") from None
    except OSError as error:
        raise DatasetError(path, f"cannot be read: {error.strerror}.") from None


def read_json(path: Path) -> Any:
    return parse_json(read_text(path), path)


def parse_json(text: str | bytes, file: object) -> Any:
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        record = f"line {error.lineno} column {error.colno}"
        raise DatasetError(file, f"is not JSON: {error.msg}; the file may be cut short.", record) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise DatasetError(file, f"is not JSON: {error}.") from None


def read_yaml(path: Path) -> Any:
    import yaml

    try:
        return yaml.safe_load(read_text(path))
    except yaml.YAMLError as error:
        raise DatasetError(path, f"is not YAML: {str(error).splitlines()[0]}.") from None


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
    return root


def read_split(path: Path) -> list[str]:
    """The names in a split file: the first word of each line; further words (labels) are left alone."""
    return [line.split()[0] for line in read_text(path).splitlines() if line.strip()]


def unknown_split(split: str, found: Iterable[str], where: Path) -> DatasetError:
    names = sorted(found)
    near = get_close_matches(split, names, n=1)
    guess = f" Did you mean {near[0]!r}?" if near else ""
    listing = f"Splits found: {', '.join(names)}." if names else "No splits were found there."
    return DatasetError(where, f"no split {split!r}.{guess} {listing}")


def distinct(names: Iterable[str], file: object, kind: str) -> tuple[str, ...]:
    """The names as a tuple, each of which may occur once: `kind` is what they name."""
    listed = tuple(names)
    seen: set[str] = set()
    problems = []
    for name in listed:
        if name in seen:
            problems.append(DatasetError(file, f"{kind} {name!r} occurs twice; every {kind} must be unique."))
        seen.add(name)
    raise_all(problems)
    return listed


def class_names(names: Iterable[object], file: object) -> tuple[str, ...]:
    return distinct((str(name).strip() for name in names), file, "class name")


def raise_all(problems: Sequence[DatasetError]) -> None:
    """Raise the first problem, carrying the rest; nothing happens when there is none."""
    if problems:
        first = problems[0]
        raise DatasetError(first.file, first.problem, first.record, tuple(problems[1:]))


def expect_list(record: object, key: str, file: object) -> list[Any]:
    """`record[key]`, which must be a list of objects, as every JSON annotation file has some."""
    value = record.get(key) if isinstance(record, Mapping) else None
    if not isinstance(value, list):
        raise DatasetError(file, f"has no list {key!r}; is this the right kind of annotation file?")
    return value


def required(record: object, key: str, file: object, where: str) -> Any:
    """`record[key]`, which the format says must be there."""
    if not isinstance(record, Mapping) or key not in record:
        raise DatasetError(file, f"lacks {key!r}.", where)
    return record[key]


def file_name(record: object, file: object, where: str, key: str = "file_name") -> Path:
    """The path that a record gives, below some folder; one that leads out of the folder is refused."""
    name = required(record, key, file, where)
    path = Path(name) if isinstance(name, str) and name else None
    if path is None or path.is_absolute() or ".." in path.parts:
        raise DatasetError(file, f"{key} {name!r} must be a path below the images folder.", where)
    return path
