"""How the pixels of a dataset's files are read: options that every kind of dataset takes."""

from __future__ import annotations

from dataclasses import fields, is_dataclass, replace
from typing import Any, get_args, get_type_hints

from stormproof.core.errors import InvalidOption
from stormproof.core.imagefile import PixelRules, require_nvjpeg
from stormproof.datasets.dataset import Dataset

_CHOICES = {name: get_args(kind) for name, kind in get_type_hints(PixelRules).items()}


def with_pixel_rules(
    dataset: Dataset,
    *,
    exif: str | None = None,
    alpha: str | None = None,
    bits: int | None = None,
    decode: str | None = None,
) -> Dataset:
    """`dataset` with its image files read by declared rules; docs/datasets.md says what each does."""
    given = {"exif": exif, "alpha": alpha, "bits": bits, "decode": decode}
    rules = {name: value for name, value in given.items() if value is not None}
    for name, value in rules.items():
        if value not in _CHOICES[name]:
            raise InvalidOption(f"{name}={value}: choose one of {', '.join(map(str, _CHOICES[name]))}.")
    if not _takes_rules(dataset):
        raise InvalidOption(
            f"{', '.join(rules)}: {dataset.name} has no image files to be read by such rules."
        )
    if decode == "nvjpeg":
        require_nvjpeg()
        if exif == "apply":
            raise InvalidOption("exif=apply: nvJPEG does not turn images; leave decode=nvjpeg out.")
    ruled: Dataset = _ruled(dataset, PixelRules(**rules))  # type: ignore[arg-type]  # checked above
    return ruled


def _takes_rules(value: object) -> bool:
    return is_dataclass(value) and "rules" in {field.name for field in fields(value)}


def _ruled(dataset: Any, rules: PixelRules) -> Any:
    """A copy with the rules, in its labels too where they look at image files."""
    labels: Any = getattr(dataset, "labels", None)
    inner = {"labels": replace(labels, rules=rules)} if _takes_rules(labels) else {}
    return replace(dataset, rules=rules, **inner)
