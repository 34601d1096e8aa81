"""What a run lacks: conditions that do not have every image."""

from __future__ import annotations

import shlex
from collections import Counter
from pathlib import Path

from stormproof.errors import IncompleteGrid
from stormproof.store.parts import held_cells, part_paths, read_failures
from stormproof.store.record import RunRecord


def missing_images(run: Path, record: RunRecord) -> dict[str, int]:
    """Conditions that lack images, with how many."""
    cells = (cell for path in part_paths(run) for cell in held_cells(path, record.key))
    held = Counter(text for index, text in cells if index < record.images)
    lacking = {text: record.images - held[text] for text in record.conditions}
    return {text: count for text, count in lacking.items() if count}


class IncompleteRun(IncompleteGrid):
    """Conditions of a run lack images; says how to finish it, and what failed if anything did."""

    def __init__(self, run: Path, record: RunRecord, lacking: dict[str, int], partly: str) -> None:
        missing = in_words(record, lacking)
        super().__init__(missing, len(record.conditions))
        failed = "".join("; {image} under {condition}: {error}".format_map(f) for f in read_failures(run)[:1])
        command = shlex.join(["stormproof", "run", "--config", str(run / "run.yaml")])
        partial = f", or {partly} the others with --partial" if len(missing) < len(record.conditions) else ""
        self.args = (
            f"{run}: {len(missing)} of {len(record.conditions)} conditions lack images: "
            f"{', '.join(missing)}{failed}. Finish it with '{command}'{partial}.",
        )


def in_words(record: RunRecord, lacking: dict[str, int]) -> tuple[str, ...]:
    """What is missing, in words.

    >>> from stormproof.store.record import DatasetRecord, ModelRecord
    >>> model = ModelRecord(spec="m", name="m", fingerprint="1")
    >>> data = DatasetRecord(spec="d", name="d", fingerprint="2", images=9)
    >>> run = RunRecord(model=model, dataset=data, seed=0, chunk=1, images=9, conditions=(), recipes={})
    >>> in_words(run, {"fog@3": 2})
    ('fog@3 (2 of 9 images)',)
    """
    return tuple(f"{text} ({count} of {record.images} images)" for text, count in lacking.items())
