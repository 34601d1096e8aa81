"""Person-detection curves (*pezzementi*): detection rate against false positives per image (FPPI).

A deployed detector keeps the sensitivity it was tuned to. So thresholds are fixed on the clean set, at
nine log-spaced FPPI and five IoU, and kept under every mutation; the average detection rate (ADR) is the
mean of the 45 rates, and the FPPI actually reached stands beside it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stormproof.core.errors import InvalidOption, InvalidTruth
from stormproof.core.sample import Floats
from stormproof.metrics.matching import FALSE, TRUE, judge_nrec
from stormproof.metrics.measure import Measure, Scored, measured
from stormproof.metrics.records import Detections, DetectionTruth, Predictions, lay_out

REFERENCE_FPPI = tuple(float(10 ** (k / 4)) for k in range(-12, -3))  # 10⁻³, 10⁻²·⁷⁵, …, 10⁻¹
IOUS = (0.3, 0.4, 0.5, 0.6, 0.7)
_POINTS = 40  # of a curve that is kept to be drawn


@dataclass(frozen=True, slots=True, eq=False)
class Roc:
    """A step curve, one point per distinct score from strict to lax: what is kept is `score ≥ threshold`."""

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


@dataclass(frozen=True, slots=True, eq=False)
class Sensitivities:
    """Score thresholds fixed on clean data: `thresholds[i, k]` for `ious[i]` and `fppi[k]`."""

    thresholds: Floats
    ious: tuple[float, ...] = IOUS
    fppi: tuple[float, ...] = REFERENCE_FPPI


@dataclass(frozen=True, slots=True, eq=False)
class DetectionRates:
    """What fixed sensitivities give on a set: rates and reached FPPI, IoU × sensitivity."""

    rates: Floats
    fppi: Floats

    @property
    def adr(self) -> float:
        """Average detection rate, a fraction: the mean over sensitivities and IoU."""
        return float(self.rates.mean())

    def normalised(self, baseline: DetectionRates) -> float:
        """ADR as a fraction of the same detector's on clean data; NaN if that is 0."""
        return self.adr / baseline.adr if baseline.adr > 0 else float("nan")


@dataclass(frozen=True, slots=True)
class Worsening:
    """One image's hardest-hit object: the FPPI a sensitivity must tolerate to find it, before and after."""

    id: str
    before: float
    after: float  # +∞: not found at any sensitivity

    @property
    def orders(self) -> float:
        """Orders of magnitude by which the required FPPI rose."""
        return float(np.log10(self.after / self.before))


def roc(truth: DetectionTruth, predictions: Predictions, *, iou: float = 0.5) -> Roc:
    """The curve of a set; a detection inside an ignore region counts for nothing.

    >>> from stormproof.core.sample import Instances, Prediction
    >>> truth = DetectionTruth.of([("a", Instances([[0, 0, 9, 9]], [0]))], ["person"])
    >>> said = Prediction([[30, 0, 39, 9], [0, 0, 9, 9]], [0.9, 0.8], [0, 0])
    >>> curve = roc(truth, {"a": said})
    >>> curve.detection_rate.tolist(), curve.fppi.tolist()
    ([0.0, 1.0], [1.0, 1.0])
    """
    found = lay_out(predictions, truth)
    people = int((~truth.excused).sum())
    if not people:
        raise InvalidTruth("The truth holds no object that counts, so there is no detection rate.")
    verdicts, _ = judge_nrec(truth, found, iou=iou)
    order = np.argsort(-found.scores, kind="stable")
    scores, sorted_verdicts = found.scores[order], verdicts[order]
    # Detections with one score come together at any threshold, so only the last of them is a point.
    points = np.flatnonzero(np.diff(scores, append=-np.inf))
    hits = np.cumsum(sorted_verdicts == TRUE)[points]
    errors = np.cumsum(sorted_verdicts == FALSE)[points]
    return Roc(scores[points], hits / people, errors / len(truth.ids))


def fix_sensitivities(
    truth: DetectionTruth,
    clean: Predictions,
    *,
    ious: tuple[float, ...] = IOUS,
    fppi: tuple[float, ...] = REFERENCE_FPPI,
) -> Sensitivities:
    """Thresholds that reach the reference FPPI on clean data, per IoU. 10⁻³ needs a thousand images."""
    found = lay_out(clean, truth)
    curves = [roc(truth, found, iou=level) for level in ious]
    thresholds = np.array([[curve.threshold_at(rate) for rate in fppi] for curve in curves])
    return Sensitivities(thresholds, ious, fppi)


def detection_rates(
    truth: DetectionTruth, predictions: Predictions, sensitivities: Sensitivities
) -> DetectionRates:
    """Rates and reached FPPI at sensitivities fixed on clean data (*pezzementi*, section II-A)."""
    found = lay_out(predictions, truth)
    curves = [roc(truth, found, iou=level) for level in sensitivities.ious]
    reached = np.array(
        [
            [curve.at(threshold) for threshold in row]
            for curve, row in zip(curves, sensitivities.thresholds.tolist(), strict=True)
        ]
    )
    return DetectionRates(reached[:, :, 0], reached[:, :, 1])


@measured(
    "people",
    Measure("ADR", "average detection rate of people at sensitivities fixed on clean images", "people"),
    Measure("FPPI", "false positives per image at those sensitivities, mean", "people", False, False, False),
)
def _score_people(truth: DetectionTruth, found: Detections, sensitivities: Sensitivities) -> Scored:
    rates = detection_rates(truth, found, sensitivities)
    numbers = {"ADR": rates.adr, "FPPI": float(rates.fppi.mean())}
    return Scored(numbers, curves={"ROC": _drawn(roc(truth, found), rates, sensitivities)})


def _drawn(curve: Roc, rates: DetectionRates, sensitivities: Sensitivities) -> dict[str, list[float]]:
    """A curve at IoU 0.5 in few points, and where the fixed sensitivities lead on it."""
    spread = np.unique(np.linspace(0, len(curve.fppi) - 1, min(_POINTS, len(curve.fppi))).round().astype(int))
    at = sensitivities.ious.index(0.5)
    return {
        "fppi": curve.fppi[spread].tolist(), "rate": curve.detection_rate[spread].tolist(),
        "marks_fppi": rates.fppi[at].tolist(), "marks_rate": rates.rates[at].tolist(),
    }  # fmt: skip


def worst_images(
    truth: DetectionTruth, clean: Predictions, mutated: Predictions, *, count: int = 10, iou: float = 0.5
) -> list[Worsening]:
    """Images whose required FPPI to still find an object rises most (*pezzementi*, Fig. 6), worst first.

    A score's FPPI is read off the clean curve, where sensitivities are fixed. Rates below one false
    positive in the whole set cannot be told apart and count as that. Only objects found when clean enter.
    """
    if count < 1:
        raise InvalidOption(f"count is {count}; ask for at least one image.")
    before, after = lay_out(clean, truth), lay_out(mutated, truth)
    curve = roc(truth, before, iou=iou)
    required = [_required_fppi(truth, found, curve, iou) for found in (before, after)]
    rows = [
        Worsening(truth.owner(i), float(required[0][i]), float(required[1][i]))
        for i in np.flatnonzero(np.isfinite(required[0])).tolist()
    ]
    hardest: dict[str, Worsening] = {}
    for row in sorted(rows, key=lambda r: (-r.orders, r.before, r.id)):
        hardest.setdefault(row.id, row)
    return list(hardest.values())[:count]


def _required_fppi(truth: DetectionTruth, found: Detections, curve: Roc, iou: float) -> Floats:
    """Per truth the FPPI of the threshold at which it is found; +∞ if it never is."""
    _, hits = judge_nrec(truth, found, iou=iou)
    required = np.full(len(truth), np.inf)
    floor = 1 / len(truth.ids)
    for i in np.flatnonzero(hits >= 0).tolist():
        required[hits[i]] = max(curve.at(float(found.scores[i]))[1], floor)
    return required
