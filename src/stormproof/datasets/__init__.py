"""Datasets: one file per format, with its reader and its writer.

A reader is a function marked `@READERS.declare("kind")`, a writer a `Writer` in `WRITERS`;
docs/adding/dataset.md adds one.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, cast

from stormproof.core.errors import DatasetError, InvalidOption, StormproofError, UnknownName
from stormproof.core.loading import load_attribute
from stormproof.core.spec import OBJECT, Spec
from stormproof.datasets.chosen import with_chosen
from stormproof.datasets.context import attach_context, with_sequences
from stormproof.datasets.dataset import READERS, Dataset, missing_members, open_object, with_pixel_rules
from stormproof.datasets.groups import with_groups
from stormproof.datasets.writing import WRITERS, Writer

__all__ = ["READERS", "SUFFIXES", "WRITERS", "Dataset", "Writer", "find_writer", "full_spec", "read_dataset"]
# The options that every kind takes: pixels are read first, then files beside the dataset.
_WRAPPERS: tuple[Callable[..., Dataset], ...] = (
    with_pixel_rules,
    with_groups,
    attach_context,
    with_sequences,
    with_chosen,
)


def find_writer(name: str) -> Writer:
    """The writer of a format.

    >>> find_writer("yolo").lacks.__name__
    'lacks_objects'
    """
    return WRITERS.find(name)


def read_dataset(text: str) -> Dataset:
    """Open the dataset that a spec string names.

    `READERS` holds the kinds; `package.module:attribute` names a dataset in Python, or a function that makes
    one. Every kind also takes the options of `with_pixel_rules` (exif, alpha, bits, decode), of
    `attach_context` (depth, disparity, calib, right and so on), of `with_sequences` (sequences), of
    `with_groups` (groups) and of `with_chosen` (only).
    """
    spec = Spec.parse(full_spec(text))
    opener = _find_opener(spec)
    own, *others = spec.arguments(opener, *_WRAPPERS)
    try:
        dataset = opener(spec.main, **own)
    except OSError as error:  # a name too long for any file, a folder that may not be read
        if isinstance(error, StormproofError) or not opener.__module__.startswith("stormproof."):
            raise
        raise DatasetError(f"{text!r:.200}", f"cannot be opened: {error.strerror or error}.") from error
    if missing_members(dataset):
        kind, members = type(dataset).__name__, ", ".join(missing_members(dataset))
        raise InvalidOption(f"{text!r} is not a dataset: {kind} has no {members}.")
    for wrapper, options in zip(_WRAPPERS, others, strict=True):
        if options:
            dataset = wrapper(dataset, **options)
    return cast(Dataset, dataset)


# Entries that reveal a folder's format, and the kind that reads it.
_MARKS = {
    "JPEGImages": "voc", "Annotations": "voc", "leftImg8bit": "cityscapes", "image_2": "kitti",
    "training/image_2": "kitti", "testannot": "camvid", "valannot": "camvid", "data.yaml": "yolo",
}  # fmt: skip
# Kinds of files, by suffix.
SUFFIXES = {
    ".json": "coco", ".yaml": "yolo", ".yml": "yolo", ".tar": "tar",
    ".jpg": "images", ".jpeg": "images", ".png": "images",
}  # fmt: skip


def full_spec(text: str) -> str:
    """The spec with the kind of a bare file, `coco:val.json` for `val.json`; all other specs as they are.

    A bare folder may be of several kinds: it is refused, and the likely spec suggested.

    >>> full_spec("val.json,images=val2017"), full_spec("yolo:data.yaml")
    ('coco:val.json,images=val2017', 'yolo:data.yaml')
    """
    main, comma, rest = text.strip().partition(",")
    if ":" in main.removeprefix("C:"):
        return text
    path = Path(main).expanduser()
    if path.is_dir():
        kind = next((kind for mark, kind in _MARKS.items() if (path / mark).exists()), "images")
    else:
        kind = SUFFIXES.get(path.suffix.lower(), "")
        if kind == "coco" and "panoptic" in path.stem:
            kind = "panoptic"
    full = f"{kind}:{main}{comma}{rest}" if kind else text
    if kind and path.is_dir():
        what = f"{text!r} names a folder but not its kind"
        raise InvalidOption(f"{what}; write {full} (kinds: {', '.join(READERS)}).")
    return full


def _find_opener(spec: Spec) -> Callable[..., Any]:
    """The function that opens a kind of dataset."""
    if spec.kind == OBJECT:
        return open_object
    if "." in spec.kind:
        return _attribute_opener(load_attribute(f"{spec.kind}:{spec.main}"))
    if spec.kind not in READERS:  # a list of all kinds would import every reader
        hint = f"Kinds: {', '.join(READERS)}; one of your own needs --plugin FILE, or its package installed."
        raise UnknownName(READERS.point.kind, spec.kind, READERS, hint)
    return READERS[spec.kind]


def _attribute_opener(attribute: Any) -> Callable[..., Any]:
    """An opener for a dataset object, or for a function or class that makes one; it ignores `main`."""
    if not callable(attribute) or (not isinstance(attribute, type) and not missing_members(attribute)):
        return lambda main: attribute

    @wraps(attribute, updated=())
    def opener(main: str, **options: Any) -> Any:
        try:
            inspect.signature(attribute).bind(**options)
        except TypeError as error:
            raise InvalidOption(
                f"Cannot call {attribute!r}: {error}; options must be keyword-only."
            ) from None
        return attribute(**options)

    return opener
