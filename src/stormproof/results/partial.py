"""Runs that estimate mPC from part of the grid: as many images a condition as a precision needs."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
from scipy import sparse

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Floats, Ints
from stormproof.datasets.dataset import Dataset
from stormproof.engine.config import RunConfig
from stormproof.engine.plan import Plan, make_plan
from stormproof.engine.run import Summary
from stormproof.metrics.coco import MASKS
from stormproof.metrics.cocomatching import match_boxes, match_masks
from stormproof.models.classes import match_classes
from stormproof.results.classes import chosen_classes, chosen_labels
from stormproof.results.estimate import Boxes, Cell, Estimate, estimate, next_share
from stormproof.results.grids import linear_coefficients
from stormproof.results.interval import THIS_SET
from stormproof.results.maps import map_numbers
from stormproof.results.measures import named
from stormproof.results.reading import RunRows
from stormproof.results.resample import confusions_of
from stormproof.results.sets import mean_name
from stormproof.results.store.completeness import IncompleteRun, missing_images, readable_images
from stormproof.results.store.contents import has_values
from stormproof.results.store.parts import held_cells, part_paths
from stormproof.results.store.record import RECORD, RunRecord, read_record
from stormproof.results.store.reopen import dataset_of
from stormproof.results.store.seal import read_sealed, write_sealed
from stormproof.results.tables import finite
from stormproof.results.truths import Truths, met
from stormproof.results.weights import REPLICATES, poisson_weights

ESTIMATE = "estimate.json"
_FEWEST, _SHARE = 8, 0.02  # a condition begins with so many images, or with this part of them
Do = Callable[[Plan], Summary]


@dataclass(frozen=True, slots=True, eq=False)
class Maps:
    """A cell of label maps."""

    confusions: sparse.csr_array
    classes: int
    kept: tuple[int, ...]
    fading: ClassVar[float] = 0.0

    def parts(self, images: Ints, weights: npt.NDArray[Any]) -> Floats:
        return map_numbers(self.confusions[images], weights, self.classes, self.kept)[1]


def run_to_precision(config: RunConfig, do: Do) -> tuple[Summary, Estimate | None]:
    """Run until the interval of mPC is within ± the precision, or the grid is full.

    `do` executes a plan. No estimate comes back where cells failed, or the grid became full.
    """
    if config.shard != "1/1":
        raise InvalidOption(
            f"--precision decides how much to run as it goes; leave out --shard {config.shard}."
        )
    size = _held(Path(config.out)) or 0
    while True:
        plan = make_plan(config, quota=size or None)
        images = plan.work.images
        if not size:
            size = first_share(images)
            continue
        summary = do(plan)
        if summary.failed or size >= images:
            return summary, None
        found = estimate_run(plan.work.out)
        if 100 * found.mpc.half_width <= config.precision:
            return summary, found
        size = next_share(found, config.precision / 100)


def first_share(images: int) -> int:
    """How many images a condition begins with."""
    return min(images, max(_FEWEST, round(_SHARE * images)))


def estimate_run(run: Path, *, data: str | None = None, replicates: int = REPLICATES) -> Estimate:
    """The estimate from whatever cells a run holds, clean ones in full; it is kept in the run folder."""
    record = read_record(run)
    dataset = dataset_of(record, data)
    readable = readable_images(run, record)
    shares = _shares(run, record, readable)
    lacking = missing_images(run, record)
    if "clean" in lacking or any(not len(share) for share in shares.values()):
        raise IncompleteRun(run, record, lacking, "score")
    measure, cells = cells_of(run, record, dataset)
    clean = cells.pop("clean")
    weights = poisson_weights([dataset.ids[i] for i in readable], replicates=replicates)
    chosen = coefficients(tuple(cells))
    found = estimate(
        clean, cells, shares, images=len(readable), weights=weights, coefficients=chosen
    )  # fmt: skip
    write_sealed(run / ESTIMATE, finite(as_dict(record, measure, found)))
    return found


def coefficients(conditions: tuple[str, ...]) -> dict[str, Floats]:
    """The weight of each corrupted condition in mPC and in the mean of its corruption."""
    rows = linear_coefficients(("clean", *conditions))
    return {k: row[1:] for k, row in rows.items() if k == "mPC" or k.startswith("by_corruption/")}


def as_dict(record: RunRecord, measure: str, found: Estimate) -> dict[str, Any]:
    """As JSON has it; the first key keeps it apart from scores of full grids."""
    plain = asdict(found)
    return {
        "estimate": True, "target": THIS_SET, "model": record.model.name, "dataset": record.dataset.name,
        "measure": measure, "mean": mean_name(record.conditions, record.benchmark), **plain,
    }  # fmt: skip


def read_estimate(run: Path) -> dict[str, Any] | None:
    """What `estimate_run` kept, where a run is an estimate."""
    path = run / ESTIMATE
    if read_record(run).quota is None or not path.exists():
        return None
    return read_sealed(path, shlex.join(["stormproof", "score", str(run)]))


def _held(run: Path) -> int | None:
    return read_record(run).quota if (run / RECORD).exists() else None


def _shares(run: Path, record: RunRecord, readable: list[int]) -> dict[str, Ints]:
    """The images that each corrupted condition was run on, numbered among the readable ones."""
    found: dict[str, list[int]] = {text: [] for text in record.conditions if text != "clean"}
    place = {index: k for k, index in enumerate(readable)}
    for path in part_paths(run):
        for index, text in held_cells(path, record.key):
            if text in found and index in place:
                found[text].append(place[index])
    return {text: np.array(indices, np.int64) for text, indices in found.items()}


def cells_of(run: Path, record: RunRecord, dataset: Dataset) -> tuple[str, dict[str, Cell]]:
    """The measure that is estimated, and the run's conditions ready to be scored on any of their images."""
    rows = RunRows(run, record)
    truths = Truths.of_run(run, record, dataset)
    if record.metric == "mIoU" or (record.metric is None and has_values(run, "confusion_pixels")):
        match = match_classes(record.model.semantic_classes, dataset.semantic_classes)
        chosen = chosen_classes(record.model.semantic_classes, dataset.semantic_classes, None)
        kept, count = chosen_labels(match.dataset, chosen), len(match.dataset)
        return "mIoU", {text: Maps(found, count, kept) for text, found in confusions_of(rows, record, match)}
    masks = has_values(rows.run, "masks") and truths.has_masks and record.metric is None
    measure = record.metric or (f"{MASKS}AP" if masks else "AP")
    if measure not in ("AP", f"{MASKS}AP", "AP50"):
        raise InvalidOption(
            f"{measure} cannot be estimated from part of a grid (AP, AP50, mask AP and mIoU can); "
            "run without --precision."
        )
    return measure, dict(_detections(rows, record, truths, measure))


def _detections(rows: RunRows, record: RunRecord, truths: Truths, measure: str) -> Iterator[tuple[str, Cell]]:
    masks = measure.startswith(MASKS)
    for text, truth, found in met(rows, record, truths, record.conditions, masks=masks):
        said = named(found, truth)
        matches = match_masks(truth, said) if masks else match_boxes(truth, said)
        yield text, Boxes(matches, thresholds=1 if measure == "AP50" else 10)
