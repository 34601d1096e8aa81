"""What a run lacks: conditions that do not have every image."""

from __future__ import annotations

import shlex
from pathlib import Path

from stormproof.core.errors import IncompleteGrid
from stormproof.results.store.parts import held_cells, part_paths, read_failures
from stormproof.results.store.record import RunRecord


def missing_images(run: Path, record: RunRecord) -> dict[str, int]:
    """Conditions that lack images, with how many."""
    held: dict[str, set[int]] = {text: set() for text in record.conditions}
    for path in part_paths(run):
        for index, text in held_cells(path, record.key):
            if index < record.images and text in held:
                held[text].add(index)
    out = unreadable_images(run, record).keys()
    lacking = {text: record.images - len(out) - len(found - out) for text, found in held.items()}
    return {text: count for text, count in lacking.items() if count}


def unreadable_images(run: Path, record: RunRecord) -> dict[int, str]:
    """Images that could not be read, by index: they are left out of every condition alike."""
    failed = (row for row in read_failures(run) if row["kind"] == "image")
    return {int(row["index"]): str(row["image"]) for row in failed if int(row["index"]) < record.images}


def readable_images(run: Path, record: RunRecord) -> list[int]:
    """The images that scores are of, by index: all but those that could not be read."""
    out = unreadable_images(run, record)
    return [index for index in range(record.images) if index not in out]


class IncompleteRun(IncompleteGrid):
    """Conditions of a run lack images; says how to finish it, and what failed if anything did."""

    def __init__(self, run: Path, record: RunRecord, lacking: dict[str, int], partly: str) -> None:
        missing = in_words(record, lacking)
        super().__init__(missing, len(record.conditions))
        failed = "".join("; {image} under {condition}: {error}".format_map(f) for f in read_failures(run)[:1])
        command = shlex.join(["stormproof", "run", "--config", str(run / "run.yaml")])
        if record.quota is not None:
            failed += f"; it is an estimate from {record.quota} images a condition, to be completed"
        partial = f", or {partly} the others with --partial" if len(missing) < len(record.conditions) else ""
        self.args = (
            f"{run}: {len(missing)} of {len(record.conditions)} conditions lack images: "
            f"{', '.join(missing)}{failed}. Finish it with '{command}'{partial}.",
        )


def in_words(record: RunRecord, lacking: dict[str, int]) -> tuple[str, ...]:
    """What is missing, in words.

    >>> from stormproof.results.store.record import DatasetRecord, ModelRecord
    >>> model = ModelRecord(spec="m", name="m", fingerprint="1")
    >>> data = DatasetRecord(spec="d", name="d", fingerprint="2", images=9)
    >>> run = RunRecord(model=model, dataset=data, seed=0, chunk=1, images=9, conditions=(), recipes={})
    >>> in_words(run, {"fog@3": 2})
    ('fog@3 (2 of 9 images)',)
    """
    return tuple(f"{text} ({count} of {record.images} images)" for text, count in lacking.items())
