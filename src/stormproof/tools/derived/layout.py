"""Layouts of public datasets, written from samples: COCO, YOLO, VOC, Cityscapes, CamVid, plain images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from stormproof.core.sample import Sample
from stormproof.core.spec import Spec
from stormproof.world.writers.format import Job, Record


@dataclass(frozen=True, slots=True)
class Target(Job):
    """Where and how a dataset is written, and the names it has for things."""

    classes: tuple[str, ...] = ()
    semantic_classes: tuple[str, ...] = ()
    category_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Layout:
    """`write` puts one sample on disk, in any process; `finish` adds what concerns all of them."""

    name: str
    write: Callable[[Target, str, Sample], tuple[Path, Record]]
    finish: Callable[[Target, Sequence[Record]], None]
    spec: Callable[[Target], Spec]  # how Stormproof opens the result
    lacks: Callable[[Target], str]  # why a dataset cannot be written so; "" if it can


def nothing(target: Target, records: Sequence[Record]) -> None:
    """For layouts without a file about all images."""


def no_objects(target: Target) -> str:
    return "" if target.classes else "the dataset has no boxes"


def semantic_labels(sample: Sample, void: int) -> npt.NDArray[np.uint8]:
    """The semantic map with `void` where there is no truth."""
    assert sample.truth.semantic is not None
    labels = sample.truth.semantic.labels
    return np.where(labels == sample.truth.semantic.ignore, void, labels).astype(np.uint8)
