"""mPC from shares of the images, held against the whole: what each correction does, and the interval."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from helpers.crowds import crowded_set
from stormproof.core.condition import Condition
from stormproof.core.sample import Prediction
from stormproof.engine.work import Quota
from stormproof.metrics.inputs import Objects
from stormproof.metrics.metric import measures, metrics_of
from stormproof.metrics.records import Detections
from stormproof.results.estimate import Estimate, EstimatedCondition, estimate, next_share, score
from stormproof.results.interval import Interval, unseen_share
from stormproof.results.sets import sets_of

IMAGES, SIZE = 200, 8
CONDITIONS = tuple(f"{name}@{s}" for name in ("fog", "snow", "contrast") for s in range(1, 6))
AP = measures()["AP"]
METRIC = next(each for each in metrics_of("boxes") if AP in each.measures)


@pytest.fixture(scope="module")
def cells() -> dict[str, EstimatedCondition]:
    """Detections that become fewer and less sure with severity, some earlier than others, image by image."""
    rng = np.random.default_rng(3)
    truth, found = crowded_set(IMAGES, rng)
    hard = rng.choice([0.0, 1.0], IMAGES)[found.image]
    luck, doubt = rng.random(len(hard)), rng.normal(0, 1, len(hard))

    def under(severity: int) -> EstimatedCondition:
        kept = luck > hard * (0.4 + 0.12 * severity)
        unsure = np.clip(found.scores + (0.1 + 0.1 * severity * hard) * doubt, 0, 1)
        some = replace(
            found, image=found.image[kept], boxes=found.boxes[kept], scores=unsure[kept],
            labels=found.labels[kept], sides=found.sides[kept],
        )  # fmt: skip
        return EstimatedCondition(Objects(truth, some), METRIC, AP)

    return {"clean": under(0)} | {text: under(int(text[-1])) for text in CONDITIONS}


def shares_of(size: int, seed: int) -> dict[str, np.ndarray]:
    quota = Quota.of(size, IMAGES, map(Condition.parse, CONDITIONS), seed)
    return {t: np.array([i for i in range(IMAGES) if quota.wants(i, t)]) for t in CONDITIONS}


def estimated(cells: dict[str, EstimatedCondition], size: int, seed: int) -> Estimate:
    weights = np.random.default_rng(seed).poisson(1, (30, IMAGES))
    corrupted = {text: cells[text] for text in CONDITIONS}
    return estimate(
        cells["clean"], corrupted, shares_of(size, seed),
        over=sets_of(CONDITIONS)[0], images=IMAGES, weights=weights,
    )  # fmt: skip


def test_corrects_most_of_the_bias_of_few_images_and_the_interval_holds(
    cells: dict[str, EstimatedCondition],
) -> None:
    every, one = np.arange(IMAGES), np.ones((1, IMAGES))
    true = {text: score(cells[text], every, one) for text in CONDITIONS}
    plain, errors, covered = [], [], []
    for seed in range(12):
        shares = shares_of(SIZE, seed)
        for name, found in estimated(cells, SIZE, seed).by_corruption.items():
            texts = [f"{name}@{s}" for s in range(1, 6)]
            whole = np.mean([true[text] for text in texts])
            raw = np.mean([score(cells[text], shares[text], one[:, shares[text]]) for text in texts])
            plain.append(raw - whole)
            errors.append(found.estimate - whole)
            covered.append(found.low <= whole <= found.high)
    assert np.mean(plain) > 0.04  # as they are, scores on so few images are too high,
    assert abs(np.mean(errors)) < 0.2 * np.mean(plain)
    assert np.std(errors) < 0.85 * np.std(plain)  # and as noisy as the shares are uneven
    assert np.mean(covered) > 0.8  # of 36 that are not independent


def test_the_whole_set_needs_no_correction(cells: dict[str, EstimatedCondition]) -> None:
    every, one = np.arange(IMAGES), np.ones((1, IMAGES))
    found = estimated(cells, IMAGES, seed=0)
    for name in ("fog", "snow", "contrast"):
        true = np.mean([score(cells[f"{name}@{s}"], every, one)[0] for s in range(1, 6)])
        assert found.by_corruption[name].estimate == pytest.approx(true, abs=1e-12)
        assert found.by_corruption[name].half_width == 0
    assert found.inferences == 1


def test_a_score_of_zero_is_not_corrected_by_the_clean_score(cells: dict[str, EstimatedCondition]) -> None:
    """Nothing is found in fog: 0 on every share, however hard the clean images of a share are."""
    truth = cells["clean"].content.truth
    nothing = EstimatedCondition(
        Objects(truth, Detections.of(dict.fromkeys(truth.ids, Prediction()), truth)), METRIC, AP
    )
    blind = cells | {text: nothing for text in CONDITIONS if text.startswith("fog")}
    for seed in range(3):
        assert estimated(blind, SIZE, seed).by_corruption["fog"].estimate == pytest.approx(0, abs=1e-12)


def test_a_tighter_interval_needs_a_larger_share(cells: dict[str, EstimatedCondition]) -> None:
    few, more = (estimated(cells, size, seed=1) for size in (SIZE, 3 * SIZE))
    assert more.mpc.half_width < few.mpc.half_width
    wanted = few.mpc.half_width / 2
    assert SIZE < next_share(few, wanted) < IMAGES
    assert next_share(few, few.mpc.half_width) == SIZE
    unknown = replace(few, mpc=Interval(0.2, np.nan, np.nan, np.nan))
    assert next_share(unknown, wanted) == 2 * SIZE


def test_equal_shares_do_not_end_a_run_early(cells: dict[str, EstimatedCondition]) -> None:
    """Nothing is found under any condition: 8 images of each show no spread, but say little about 200."""
    truth = cells["clean"].content.truth
    nothing = EstimatedCondition(
        Objects(truth, Detections.of(dict.fromkeys(truth.ids, Prediction()), truth)), METRIC, AP
    )
    found = estimated({"clean": cells["clean"]} | dict.fromkeys(CONDITIONS, nothing), SIZE, seed=0)
    seen = SIZE * len(CONDITIONS)
    assert found.mpc.estimate == pytest.approx(0, abs=1e-12)
    assert found.mpc.reach == pytest.approx((1 - SIZE / IMAGES) * unseen_share(seen), rel=0.01)
    assert found.by_corruption["fog"].reach > 2 * found.mpc.reach
    assert next_share(found, 0.001) > SIZE


def test_the_interval_is_as_wide_as_the_spread_of_estimates(cells: dict[str, EstimatedCondition]) -> None:
    """With images used equally often, hard ones cancel: drawn together, they doubled the standard error."""
    found = [estimated(cells, 40, seed).mpc for seed in range(5)]
    error = np.std([one.estimate for one in found], ddof=1)
    assert 0.4 * error < np.mean([one.se for one in found]) < 2.5 * error
