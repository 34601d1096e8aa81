"""An interval that is not known to be calibrated decides nothing, and is marked wherever it is printed."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from scipy.stats import binomtest

from stormproof.metrics.keypoints import OFFSET
from stormproof.metrics.metric import Measure, measures
from stormproof.metrics.optimism import class_optimism, set_optimisms
from stormproof.report.tables import summary_table
from stormproof.results.calibrated import MARK, doubt, footnote, mark
from stormproof.results.documents import as_dict
from stormproof.results.interval import WRONG, Interval, draws, interval_around
from stormproof.results.requirements import parse
from stormproof.results.scores import Replicates, Scores
from stormproof.results.verdicts import Outcome, exit_code, how_sure, judge, junit, markdown

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def study() -> ModuleType:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(ROOT / "studies" / "confidence")
        return importlib.import_module("interval_errors")


def test_measures_declare_what_the_simulation_found(study: ModuleType) -> None:
    rows = study.kept_rows()
    # Masks and oriented boxes are computed as boxes are.
    boxes = {n: each for n, each in measures().items() if not n.startswith(("mask ", "oriented "))}
    # Simulated boxes have the shapes of their objects; distances of joints were not simulated.
    assert {n for n in boxes if n not in rows and OFFSET not in n} == {"shape error"}
    assert {name: each.calibrated for name, each in boxes.items()} == {
        name: study.calibrated(rows.get(name, [])) for name in boxes
    }


@pytest.mark.parametrize("prefix", ["mask ", "oriented "])
def test_masks_and_oriented_boxes_are_calibrated_as_boxes_are(prefix: str) -> None:
    others = [name for name in measures() if name.startswith(prefix)]
    assert others
    assert all(
        measures()[name].calibrated == measures()[name.removeprefix(prefix)].calibrated for name in others
    )


def test_a_set_is_drawn_scored_and_asked_for_its_intervals(
    study: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    study.sets("street", 1, 50, range(2), 2, ["timings"])
    first, second = (json.loads(line)["found"] for line in capsys.readouterr().out.splitlines())
    true, estimate, low, high, *_ = first["model_ms|fog@5"]
    assert low < estimate < high
    assert (true, estimate) == (second["model_ms|fog@5"][0], pytest.approx(true, rel=0.2))


def test_the_page_shows_the_stored_table(study: ModuleType) -> None:
    assert "\n".join(study.lines_of_page()) in study.PAGE.read_text(encoding="utf-8")


def rows(study: ModuleType, **errors: tuple[int, int]) -> list[Any]:
    """100 sets of every cell; `errors` are those of some cells, as c8_50=(above, below)."""
    return [
        study.Row("AP", "clean", c, n, 100, *errors.get(f"c{c}_{n}", (2, 2)))
        for c in study.CLASSES for n in study.IMAGES
    ]  # fmt: skip


def test_a_cell_that_misses_too_often_needs_more_images_or_fewer_classes(study: ModuleType) -> None:
    assert study.calibrated(rows(study)) == ((80, 50),)
    assert study.calibrated(rows(study, c8_50=(0, 7))) == ((80, 50),)  # 7 of 100 may be chance
    assert study.calibrated(rows(study, c8_50=(0, 8))) == ((1, 50), (80, 100))
    assert study.calibrated(rows(study, c80_300=(30, 0))) == ((8, 50),)
    assert study.calibrated(rows(study, c1_300=(30, 0))) == ()
    assert study.calibrated(rows(study, c1_50=(9, 0), c80_100=(9, 0))) == ((8, 100), (80, 300))


def scores_of(measure: str, value: float, *, images: int = 400, classes: int = 8) -> Scores:
    """A run whose halves vary by 0.01 about the value of a measure, clean and in fog."""
    spread = np.random.default_rng(0).normal(value, 0.01, 200)
    drawn = draws(np.concatenate([[value], spread]), 0.0)
    texts = ("clean", "fog@3")
    return Scores(
        "model", "data", images, {measure: dict.fromkeys(texts, value)}, texts,
        classes=tuple(f"class {k}" for k in range(classes)),
        replicates=Replicates({measure: dict.fromkeys(texts, drawn)}, {}),
    )  # fmt: skip


def required(measure: str, threshold: float) -> Any:
    bound = "at_least" if measures()[measure].higher else "at_most"
    return parse({"id": "R1", "metric": measure, "condition": "fog@3", bound: threshold}, "here")


@pytest.mark.parametrize("threshold", [0.1, 0.9], ids=["missed", "met"])
def test_no_verdict_rests_on_an_interval_that_is_not_calibrated(threshold: float) -> None:
    (verdict,) = judge([required("LaACE0", threshold)], scores_of("LaACE0", 0.5, classes=80))
    assert verdict.outcome is Outcome.INCONCLUSIVE
    assert exit_code([verdict]) == 3
    assert "LaACE0 is" in verdict.doubt
    for text in (verdict.text, how_sure([verdict]), markdown("run", [verdict]), junit("run", [verdict])):
        assert verdict.doubt in text
    assert verdict.as_dict()["doubt"] == verdict.doubt


def test_verdicts_on_calibrated_measures_stand() -> None:
    scores = scores_of("AP", 0.5)
    outcomes = [judge([required("AP", t)], scores)[0].outcome for t in (0.4, 0.6)]
    assert outcomes == [Outcome.PASS, Outcome.FAIL]


def test_a_mean_over_conditions_is_refused_like_its_measure() -> None:
    asked = parse({"id": "R1", "metric": "mCE", "of": "LaACE0", "at_most": 0.9}, "here")
    (verdict,) = judge([asked], scores_of("LaACE0", 0.5, classes=80))
    assert (verdict.outcome, bool(verdict.doubt)) == (Outcome.INCONCLUSIVE, True)


def test_plugins_are_not_calibrated_unless_they_say_so() -> None:
    assert Measure("hits", "hits per image", "boxes").calibrated_from(1) is None
    sure = Measure("hits", "hits per image", "boxes", calibrated=((8, 100),))
    assert [sure.calibrated_from(classes) for classes in (1, 8, 9)] == [100, 100, None]


def test_doubtful_intervals_are_marked_in_tables_and_json() -> None:
    doubtful, sure = scores_of("LaACE0", 0.5, classes=80), scores_of("AP", 0.5)
    assert mark(doubtful, "LaACE0") == f"LaACE0 {MARK}"
    assert mark(sure, "AP") == "AP"
    assert footnote(sure, ["AP"]) == ""
    table = summary_table(doubtful)
    assert [row[0] for row in table.rows] == [f"LaACE0 {MARK}"]
    assert table.note.startswith(MARK)
    assert not summary_table(sure).note
    stated = json.loads(json.dumps(as_dict(doubtful)["intervals"]["not_calibrated"]))
    assert stated == {"LaACE0": doubt(doubtful, "LaACE0")}
    assert as_dict(sure)["intervals"]["not_calibrated"] == {}


@pytest.mark.parametrize(("hits", "trials"), [(0, 60), (1, 400), (3, 200), (57, 60), (60, 60)])
def test_the_interval_of_independent_trials_equals_clopper_pearson(hits: int, trials: int) -> None:
    share = hits / trials
    se = (share * (1 - share) / trials) ** 0.5
    found = Interval(share, share, share, se, images=10**9 if 0 < hits < trials else trials).of_share()
    exact = binomtest(hits, trials).proportion_ci(method="exact")
    assert (found.low, found.high) == pytest.approx((exact.low, exact.high), abs=1e-6)


def test_the_chance_of_a_share_agrees_with_its_interval() -> None:
    found = Interval(0.02, 0.0, 0.0, 0.008, optimism=0.004, images=300).of_share()
    assert found.chance_above(found.low) == pytest.approx(WRONG)
    assert found.chance_below(found.high) == pytest.approx(WRONG)
    assert found.chance_above(found.low - 0.001) < WRONG < found.chance_above(found.low + 0.001)


def test_rare_shares_reach_further_up_than_down() -> None:
    found = Interval(0.01, 0.0, 0.0, 0.005, images=400).of_share()
    assert found.high - found.estimate > 1.5 * (found.estimate - found.low)


def test_optimism_by_class_is_known_for_classes_that_one_image_shows() -> None:
    rng = np.random.default_rng(1)
    image = np.concatenate([np.arange(m) for m in (1, 4, 9, 16)])
    label = np.repeat(np.arange(4), (1, 4, 9, 16))
    weights = np.concatenate([np.ones((1, 16)), rng.integers(0, 2, (4000, 16))])
    shown = np.stack([weights[:, image[label == k]].sum(axis=1) for k in range(4)], axis=1)
    values = 0.5 + 0.2 / np.sqrt(np.where(shown > 0, shown, np.nan))
    found = class_optimism(values, image, label, weights, 0.5)
    assert found == pytest.approx(0.2 / np.sqrt([1, 4, 9, 16]), rel=0.05)


def test_frames_of_a_clip_count_once_in_the_optimism_of_a_class() -> None:
    rng = np.random.default_rng(2)
    clips = np.concatenate([np.ones((1, 8)), rng.integers(0, 2, (300, 8))])
    values = rng.random((301, 1))
    one = class_optimism(values, np.arange(8), np.zeros(8, int), clips, 0.5)
    frames = class_optimism(values, np.arange(24), np.zeros(24, int), np.repeat(clips, 3, axis=1), 0.5)
    assert frames == pytest.approx(one)


def test_a_bias_that_falls_with_the_root_of_images_is_larger_than_its_gap() -> None:
    values = np.array([0.5, 0.52, 0.54])
    assert set_optimisms({"E": values}, 1.0)["E"] == pytest.approx([0.03])
    assert set_optimisms({"E": values}, 0.5)["E"] == pytest.approx([0.03 / (2**0.5 - 1)])


def test_few_images_that_decide_a_measure_widen_its_interval() -> None:
    scores = scores_of("AP", 0.5)
    drawn = scores.replicates
    assert drawn is not None
    few = Scores(
        "model", "data", 400, scores.per_condition, scores.conditions,
        replicates=Replicates(drawn.per_condition, {}, {"AP": 5}),
    )  # fmt: skip
    narrow, wide = (each.interval("fog@3", "AP") for each in (scores, few))
    assert wide.images == 5
    assert wide.high == pytest.approx(interval_around(0.5, drawn.per_condition["AP"]["fog@3"], images=5).high)
    assert wide.half_width > 1.3 * narrow.half_width
