"""Person-detection curves (*pezzementi*): detection rate against false positives per image (FPPI).

A deployed detector keeps the sensitivity it was tuned to. So thresholds are fixed on the clean images, at
nine log-spaced FPPI and five IoU, and kept under every mutation. The average detection rate (ADR) is the mean
of the 45 rates; the FPPI actually reached is reported with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from stormproof.core.errors import InvalidOption, InvalidTruth
from stormproof.core.kernels import kernel
from stormproof.core.sample import Floats, Ints
from stormproof.core.threads import cached, remember
from stormproof.metrics.matching import DROPPED, FALSE, TRUE, Verdicts, judge_nrec
from stormproof.metrics.metric import Calibrated, Measure, Scored, Weights, detail, metric, ratio, units_of
from stormproof.metrics.optimism import set_optimisms
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out

if TYPE_CHECKING:
    from stormproof.metrics.inputs import Objects

REFERENCE_FPPI = tuple(float(10 ** (k / 4)) for k in range(-12, -3))  # 10⁻³, 10⁻²·⁷⁵, …, 10⁻¹
IOUS = (0.3, 0.4, 0.5, 0.6, 0.7)
_CALIBRATED: dict[str, Calibrated] = {
    "ADR": ((80, 300),),
    "FPPI": ((80, 50),),
}
_POWER = 0.5  # of the number of images, with which the bias of sensitivities fixed on few images falls
_POINTS = 40  # of a curve that is stored for a figure
_LOST = 3  # images of each condition that are stored


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """A step curve with one point per distinct score, from strict to lax; at a point, detections with
    score ≥ threshold are kept."""

    thresholds: Floats
    detection_rate: Floats
    fppi: Floats

    def threshold_at(self, fppi: float) -> float:
        """The laxest threshold whose FPPI does not exceed `fppi`; +∞ if even the strictest does."""
        within = np.searchsorted(self.fppi, fppi, side="right")
        return float(self.thresholds[within - 1]) if within else float("inf")

    def at(self, threshold: float) -> tuple[float, float]:
        """(detection rate, FPPI) of the detections scored `threshold` or more."""
        kept = np.searchsorted(-self.thresholds, -threshold, side="right")
        return (float(self.detection_rate[kept - 1]), float(self.fppi[kept - 1])) if kept else (0.0, 0.0)


@dataclass(frozen=True, eq=False)
class People:
    """The people of one condition and the detections of people: a truth with this one class."""

    truth: DetectionTruth
    found: Detections

    @property
    def shown(self) -> bool:
        """Whether any person counts; a condition may move all people out of their images."""
        return not bool(self.truth.excused.all())

    @cached
    def judged(self) -> dict[float, tuple[Verdicts, Ints]]:
        """At each of the five IoU: the verdict on each detection, and the person that it found."""
        return {iou: judge_nrec(self.truth, self.found, iou=iou) for iou in IOUS}

    @cached
    def falling(self) -> list[tuple[Ints, Floats, Verdicts]]:
        """Images, scores and verdicts of the detections that count, by falling score, for each of the IoU.

        Those in ignored regions are not points of the curve, so they set no threshold.
        """
        by_iou, order = [], self.found.order
        for verdicts, _ in self.judged.values():
            kept = order[verdicts[order] != DROPPED]
            by_iou.append((self.found.image[kept], self.found.scores[kept], verdicts[kept]))
        return by_iou

    @cached
    def curve(self) -> Roc:
        """Detection rate against FPPI at IoU 0.5."""
        return _curve(self.truth, self.found, self.judged[0.5][0])

    def required_fppi(self, curve: Roc) -> Floats:
        """For each person, the FPPI at the threshold that just finds them at IoU 0.5; +∞ if none does.

        The FPPI of a score is read from `curve`. Less than one false positive in the whole set counts as one.
        """
        _, hits = self.judged[0.5]
        required, finders = np.full(len(self.truth), np.inf), np.flatnonzero(hits >= 0)
        kept = np.searchsorted(-curve.thresholds, -self.found.scores[finders], side="right")
        reached = np.concatenate([[0.0], curve.fppi])[kept]
        required[hits[finders]] = np.maximum(reached, 1 / len(self.truth.ids))
        return required

    def finder(self, person: int) -> int | None:
        """The detection that finds a person at IoU 0.5, as its row."""
        rows = np.flatnonzero(self.judged[0.5][1] == person)
        return int(rows[0]) if len(rows) else None

    def sensitivities(self, weights: Weights) -> Floats:
        """Score thresholds by replicate, IoU and reference FPPI; +∞ if even the strictest exceeds that FPPI.

        It takes a thousand images to tell 10⁻³ false positives per image from none.
        """
        return remember(self, "_sensitivities", weights, lambda: self._fix_sensitivities(weights))

    def _fix_sensitivities(self, weights: Weights) -> Floats:
        out = np.full((len(weights), len(IOUS), len(REFERENCE_FPPI)), np.inf)
        images, levels = weights.sum(axis=1, dtype=np.float64), np.array(REFERENCE_FPPI)
        for k, (image, score, verdict) in enumerate(self.falling):
            _thresholds(image, score, verdict == FALSE, weights, images, levels, out[:, k])
        return out

    def of_images(self, chosen: Ints) -> People:
        """The people of the chosen images, renumbered."""
        return People(self.truth.of_images(chosen), self.found.of_images(chosen))

    def rates(self, weights: Weights, thresholds: Floats) -> tuple[Floats, Floats]:
        """Detection rate and FPPI at the thresholds, by replicate, IoU and sensitivity."""
        hits, errors = np.zeros(thresholds.shape), np.zeros(thresholds.shape)
        for k, (image, score, verdict) in enumerate(self.falling):
            _weight_above(image, score, verdict == TRUE, weights, thresholds[:, k], hits[:, k])
            _weight_above(image, score, verdict == FALSE, weights, thresholds[:, k], errors[:, k])
        people = weights[:, self.truth.image[~self.truth.excused]].sum(axis=1, dtype=np.float64)
        images = weights.sum(axis=1, dtype=np.float64)
        return ratio(hits, people[:, None, None]), ratio(errors, images[:, None, None])


@kernel
def _thresholds(image: Any, score: Any, false: Any, weights: Any, images: Any, levels: Any, out: Any) -> None:
    for r in range(len(weights)):
        errors, present = 0.0, 0.0
        for i in range(len(image)):
            present += weights[r, image[i]]
            if false[i]:
                errors += weights[r, image[i]]
            last = i + 1 == len(image) or score[i + 1] != score[i]  # thresholds never separate equal scores
            if not last or present == 0:  # a detection of weight 0 sets no threshold
                continue
            present = 0.0
            rate = errors / images[r]
            if rate > levels[-1]:
                break
            for k in range(len(levels)):
                if rate <= levels[k]:
                    out[r, k] = score[i]


@kernel
def _weight_above(image: Any, score: Any, chosen: Any, weights: Any, thresholds: Any, out: Any) -> None:
    """The total weight of the chosen detections at or above each threshold; thresholds and scores fall."""
    for r in range(len(weights)):
        total, i = 0.0, 0
        for k in range(thresholds.shape[1]):
            while i < len(image) and score[i] >= thresholds[r, k]:
                if chosen[i]:
                    total += weights[r, image[i]]
                i += 1
            out[r, k] = total


@dataclass(frozen=True, slots=True)
class Worsening:
    """An image's worst-affected person: the FPPI that must be tolerated to find them, before and after."""

    id: str
    before: float
    after: float  # +∞ if they are not found at any sensitivity
    person: int = -1  # their row in the truth

    @property
    def orders(self) -> float:
        """Orders of magnitude by which the required FPPI rose."""
        return float(np.log10(self.after / self.before))


def roc(truth: DetectionTruth, predictions: Predictions, *, iou: float = 0.5) -> Roc:
    """The curve of a set; a detection inside an ignored region does not count.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 9]], [0]))], ["person"])
    >>> curve = roc(truth, {"a": Prediction([[30, 0, 39, 9], [0, 0, 9, 9]], [0.9, 0.8], [0, 0])})
    >>> curve.detection_rate.tolist(), curve.fppi.tolist()
    ([0.0, 1.0], [1.0, 1.0])
    """
    detections = lay_out(predictions, truth)
    return _curve(truth, detections, judge_nrec(truth, detections, iou=iou)[0])


def _curve(truth: DetectionTruth, detections: Detections, verdicts: Verdicts) -> Roc:
    people = int((~truth.excused).sum())
    if not people:
        raise InvalidTruth("There is no object to find, so the detection rate is undefined.")
    kept = detections.order[verdicts[detections.order] != DROPPED]
    scores, verdicts = detections.scores[kept], verdicts[kept]
    # A threshold never separates equal scores, so only the last detection of each score is a point.
    points = np.flatnonzero(np.diff(scores, append=-np.inf))
    hits, errors = np.cumsum(verdicts == TRUE)[points], np.cumsum(verdicts == FALSE)[points]
    return Roc(scores[points], hits / people, errors / len(truth.ids))


@metric(
    "people",
    Measure("ADR", "average detection rate of people at sensitivities fixed on clean images", "people"),
    Measure("FPPI", "false positives per image at those sensitivities, mean", "people", False, False, False),
    calibrated=_CALIBRATED,
)
def _people(objects: Objects, weights: Weights) -> Scored:
    """Every replicate fixes its sensitivities on its own clean images."""
    assert objects.people is not None
    assert objects.clean is not None
    rates, fppi = objects.people.rates(weights, objects.clean.sensitivities(weights))
    numbers = {"ADR": rates.mean(axis=(1, 2)), "FPPI": fppi.mean(axis=(1, 2))}
    shown = objects.people.truth
    people = units_of(weights, shown.image[~shown.excused])
    return Scored(numbers, optimism=set_optimisms(numbers, _POWER), units={"ADR": people})


@detail("roc", "people")
def _roc(objects: Objects, weights: Weights) -> dict[str, list[float]]:
    """For a figure: at most 40 points of the curve at IoU 0.5, and marks at the clean sensitivities.

    The first row of `weights` must be ones.
    """
    people, clean = objects.people, objects.clean
    assert people is not None
    assert clean is not None
    curve, thresholds = people.curve, clean.sensitivities(weights)
    rates, fppi = (of_iou[0, IOUS.index(0.5)] for of_iou in people.rates(weights[:1], thresholds[:1]))
    spread = np.unique(np.linspace(0, len(curve.fppi) - 1, min(_POINTS, len(curve.fppi))).round().astype(int))
    return {
        "fppi": curve.fppi[spread].tolist(), "rate": curve.detection_rate[spread].tolist(),
        "marks_fppi": fppi.tolist(), "marks_rate": rates.tolist(),
    }  # fmt: skip


@detail("lost", "people")
def _losing_images(objects: Objects, weights: Weights) -> list[dict[str, Any]] | None:
    """The images that lose a person, unless the condition moves labels."""
    people, clean = objects.people, objects.clean
    assert people is not None
    assert clean is not None
    if objects.is_clean or not np.array_equal(people.truth.boxes, clean.truth.boxes):
        return None
    worst = worst_people(clean, people, count=_LOST)
    return [{"id": one.id, "before": one.before, "after": one.after} for one in worst]


def worst_people(clean: People, mutated: People, *, count: int = 10) -> list[Worsening]:
    """The images in which the FPPI needed to find a person rises most (*pezzementi*, Fig. 6), worst first.

    The FPPI of a score is read from the clean curve, on which sensitivities are fixed. Less than one false
    positive in the whole set counts as one. Only people who are found on the clean images are included, and
    those whom no sensitivity of the paper finds there (more than one false positive in ten images) come last.
    """
    if count < 1:
        raise InvalidOption(f"count is {count}; ask for at least one image.")
    if not np.array_equal(clean.truth.image, mutated.truth.image):
        raise InvalidOption(
            f"The condition moves labels: it has {len(mutated.truth)} people, the clean images have "
            f"{len(clean.truth)}. Compare with a condition that leaves labels in place."
        )
    before, after = (people.required_fppi(clean.curve).tolist() for people in (clean, mutated))
    rows = [
        Worsening(clean.truth.owner(i), before[i], after[i], i)
        for i in np.flatnonzero(np.isfinite(before)).tolist()
    ]
    hardest: dict[str, Worsening] = {}
    for row in sorted(rows, key=lambda r: (r.before > REFERENCE_FPPI[-1], -r.orders, r.before, r.id)):
        hardest.setdefault(row.id, row)
    return list(hardest.values())[:count]
