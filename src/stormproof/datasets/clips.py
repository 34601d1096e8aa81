"""Clips of any dataset: a CSV file that says to which sequence an image belongs, and when it was taken."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from stormproof.core.errors import DatasetError, first_few
from stormproof.core.files import locate, read_bytes
from stormproof.core.randomness import Frame
from stormproof.core.sample import Sample, Truth
from stormproof.core.wrapper import Wrapper
from stormproof.datasets.annotations import raise_all
from stormproof.datasets.dataset import Dataset, fingerprint_of, frames_identity, in_clip

_HEADER = ["id", "sequence", "time"]


def with_sequences(dataset: Dataset, *, sequences: str | None = None) -> Dataset:
    """The dataset as clips. `sequences` is a CSV file with the columns id, sequence and time in seconds.

    Images that the file does not list stay single images.
    """
    if sequences is None:
        return dataset
    path = locate(sequences, getattr(dataset, "root", None))
    frames = read_sequences(path)
    known = set(dataset.ids)
    strangers = [repr(name) for name in frames if name not in known]
    if strangers:
        fix = f"ids of this dataset look like {dataset.ids[0]!r}"
        raise DatasetError(path, f"lists images that {dataset.name} lacks: {first_few(strangers)}; {fix}.")
    return DatasetInClips(dataset, {name: frames[name] for name in dataset.ids if name in frames})


def read_sequences(path: Path) -> dict[str, Frame]:
    """The frames that a CSV file lists, by image id."""
    try:
        text = read_bytes(path, error=DatasetError).decode("utf-8-sig")
        rows = [[value.strip() for value in row] for row in csv.reader(io.StringIO(text), strict=True)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise DatasetError(path, f"is not a CSV file in UTF-8: {error}.") from None
    first = rows[0] if rows else []
    if first != _HEADER:
        raise DatasetError(path, f"needs the first line {','.join(_HEADER)!r}, not {','.join(first)!r:.80}.")
    frames: dict[str, Frame] = {}
    problems = []
    for line, row in enumerate(rows[1:], 2):
        if not row:
            continue
        frame = _frame(row)
        if frame is None:
            problem = f"{','.join(row)!r:.80} must be an image id, a sequence and a time in seconds."
            problems.append(DatasetError(path, problem, f"line {line}"))
        elif frame.id in frames:
            problems.append(DatasetError(path, f"lists {frame.id!r} a second time.", f"line {line}"))
        else:
            frames[frame.id] = frame
    raise_all(problems)
    return frames


def _frame(row: Sequence[str]) -> Frame | None:
    try:
        name, sequence, seconds = row
        time = float(seconds)
    except ValueError:
        return None
    return Frame(name, sequence, time) if name and sequence and math.isfinite(time) else None


@dataclass(frozen=True, eq=False)
class DatasetInClips(Wrapper):
    """A dataset whose images, or some of them, are frames of clips."""

    dataset: Dataset
    listed: Mapping[str, Frame]

    @property
    def _inner(self) -> Dataset:
        return self.dataset

    @property
    def frames(self) -> Mapping[str, Frame]:
        return self.listed

    @property
    def ids(self) -> Sequence[str]:
        return self.dataset.ids

    @property
    def images(self) -> Any:
        return getattr(self.dataset, "images", None)

    @cached_property
    def fingerprint(self) -> str:
        identity = [self.dataset.fingerprint, frames_identity(self.frames)]
        return fingerprint_of(json.dumps(identity).encode(), ())

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Sample:
        return in_clip(self.dataset[index], self.frames)

    def truth(self, index: int) -> Truth:
        return self.dataset.truth(index)

    def size(self, index: int) -> tuple[int, int]:
        return self.dataset.size(index)

    def context_files(self, index: int) -> tuple[Path, ...]:
        """The files behind a sample's context, whose content belongs to the sample's."""
        files = getattr(self.dataset, "context_files", None)
        return () if files is None else files(index)
