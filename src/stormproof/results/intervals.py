"""The entry points: intervals of a run's scores, and differences between two runs.

    scores, replicates = score_run(run), resample(run)
    intervals(scores, replicates).aggregates["AP"]["mPC"]      # Interval
    differences((scores, replicates), (others, theirs))        # AP: mPC, by_corruption/fog … → Difference

Names of aggregates are flat: 'P', 'mPC', 'rPC', 'by_corruption/fog', 'by_severity/3', 'CD/fog'. Values are
fractions, as scores are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, counted
from stormproof.core.sample import Floats
from stormproof.results.grids import SLASH, aggregated, beside, flat
from stormproof.results.interval import FEW, NEW_IMAGES, Difference, Interval, around, paired
from stormproof.results.papers import averaged_grid
from stormproof.results.resample import Replicates
from stormproof.results.score import Scores

Known = tuple[Scores, Replicates]


@dataclass(frozen=True, slots=True)
class Intervals:
    """95 % intervals by measure; `target` says what they are intervals of.

    `images` are those they come from; `left_out`, those that could not be read, are none of them.
    """

    images: int
    replicates: int
    cells: Mapping[str, Mapping[str, Interval]]  # measure → condition
    aggregates: Mapping[str, Mapping[str, Interval]]  # measure → flat name
    per_class: Mapping[str, Mapping[str, Mapping[str, Interval]]]  # measure → condition → class
    target: str = NEW_IMAGES
    left_out: tuple[str, ...] = ()

    @property
    def warning(self) -> str | None:
        """How little is known from few images, in words; None from enough of them."""
        return few_images(self.images)

    def as_dict(self) -> dict[str, Any]:
        """As JSON has it."""
        plain: dict[str, Any] = {
            "target": self.target, "level": 0.95, "images": self.images, "replicates": self.replicates,
            "left_out": list(self.left_out), "warning": self.warning,
        }  # fmt: skip
        for kind in ("cells", "aggregates", "per_class"):
            plain[kind] = _plain(getattr(self, kind))
        return plain


def few_images(images: int) -> str | None:
    """A warning where a set is too small for its intervals to be trusted."""
    if images >= FEW:
        return None
    return (
        f"{images} images are few: average precision is too high on so few, and these intervals cover less "
        f"than they say (docs/confidence.md). Use {FEW} at least, better 1,000."
    )


def intervals(scores: Scores, replicates: Replicates, reference: Known | None = None) -> Intervals:
    """Intervals of every score that has replicates; beside a `reference`, of CD, rCD and gains, too."""
    if reference is not None:
        require_pair((scores, replicates), reference)
    cells = {
        measure: {text: around(scores.by_measure[measure][text], values) for text, values in found.items()}
        for measure, found in replicates.by_measure.items()
    }
    totals: dict[str, dict[str, Interval]] = {}
    for measure, every in replicates.by_measure.items():
        found = {text: values for text, values in every.items() if text in scores.aggregated}
        known = flat(scores.aggregates.get(measure, {}))
        spread = aggregated(measure, _covered(scores, found)) if known else {}
        if reference is not None and measure in reference[1].by_measure:
            spread |= _beside(found, reference[1].by_measure[measure])
        totals[measure] = {name: around(known[name], spread[name]) for name in known if name in spread}
    left_out, every_image = replicates.left_out, replicates.record.images
    return Intervals(
        every_image - len(left_out), _count(replicates), cells, totals, _per_class(scores, replicates),
        left_out=left_out,
    )  # fmt: skip


def _covered(scores: Scores, cells: Mapping[str, Floats]) -> dict[str, Floats]:
    """The cells that a run's aggregates are over: those of its first set, as its benchmark averages them."""
    conditions = scores.sets[0][0].conditions if scores.sets else tuple(cells)
    grid = averaged_grid(dict.fromkeys(cells, 0.0), conditions, scores.record)
    kept = {"clean", *map(str, grid.expected)}
    return {text: values for text, values in cells.items() if text in kept}


def differences(a: Known, b: Known) -> dict[str, dict[str, Difference]]:
    """a − b by measure: of P, mPC and rPC, of each corruption (Holm over corruptions) and of each cell.

    Both runs are of the same images, weighted alike. Cells are named by their condition and corrected over
    all of them; 'P', 'mPC' and 'rPC' are each looked at alone.
    """
    require_pair(a, b)
    found: dict[str, dict[str, Difference]] = {}
    for measure in a[1].by_measure:
        if measure in b[1].by_measure:
            found[measure] = _measure_differences(measure, a, b)
    return found


def _measure_differences(measure: str, a: Known, b: Known) -> dict[str, Difference]:
    ours, theirs = a[1].by_measure[measure], b[1].by_measure[measure]
    common = [text for text in ours if text in theirs]
    scores = [{text: of[0].by_measure[measure][text] for text in common} for of in (a, b)]
    cells = {text: ours[text] - theirs[text] for text in common}
    estimates = {text: scores[0][text] - scores[1][text] for text in common}
    result = paired(estimates, cells)
    spread = [aggregated(measure, {text: of[text] for text in common}) for of in (ours, theirs)]
    point = [aggregated(measure, {t: np.array([s]) for t, s in of.items()}) for of in scores]
    names = [name for name in spread[0] if name in spread[1]]
    families: dict[str, list[str]] = {}
    for name in names:
        families.setdefault(name.split(SLASH)[0] if SLASH in name else name, []).append(name)
    for family in families.values():
        result |= paired(
            {name: float(point[0][name][0] - point[1][name][0]) for name in family},
            {name: spread[0][name] - spread[1][name] for name in family},
        )
    return result


def require_pair(a: Known, b: Known) -> None:
    """Refuse two runs that are not of the same images, weighted alike: their scores cannot be paired."""
    ours, theirs = a[1].record, b[1].record
    if ours.dataset.fingerprint != theirs.dataset.fingerprint or ours.images != theirs.images:
        raise InvalidOption(
            f"{ours.model.name} was run on {ours.images} images of {ours.dataset.name}, {theirs.model.name} "
            f"on {theirs.images} of {theirs.dataset.name}; a paired difference needs the same images."
        )
    odd = sorted({*a[1].left_out} ^ {*b[1].left_out})
    if odd:
        raise InvalidOption(
            f"{counted(len(odd), 'image')} could be read in one run and not in the other "
            f"({', '.join(odd[:3])}); a paired difference needs the same images. Each run's own command "
            "tries the images it lacks again."
        )
    if _count(a[1]) != _count(b[1]):
        raise InvalidOption(
            f"{_count(a[1])} replicates of one run, {_count(b[1])} of the other; resample both alike."
        )


def _beside(found: Mapping[str, Floats], reference: Mapping[str, Floats]) -> dict[str, Floats]:
    common = {text: values for text, values in found.items() if text in reference}
    theirs = {text: reference[text] for text in common}
    result = beside(common, theirs)
    mine, other = aggregated("AP", common), aggregated("AP", theirs)
    return result | {f"delta_{name}": mine[name] - other[name] for name in ("P", "mPC") if name in mine}


def _per_class(scores: Scores, replicates: Replicates) -> dict[str, dict[str, dict[str, Interval]]]:
    return {
        measure: {
            text: {
                name: around(scores.per_class[measure][text].get(name, np.nan), values[:, k])
                for k, name in enumerate(replicates.classes[measure])
            }
            for text, values in by_condition.items()
        }
        for measure, by_condition in replicates.per_class.items()
        if measure in scores.per_class
    }


def _count(replicates: Replicates) -> int:
    return next(len(values) for found in replicates.by_measure.values() for values in found.values())


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    return value.as_dict() if isinstance(value, Interval) else value
