"""Interactions: what composed conditions cost beyond their parts, said only where it is more than chance."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption
from stormproof.metrics.grid import Grid
from stormproof.report.sections import Scope
from stormproof.report.sections.together import together
from stormproof.results.documents import as_dict
from stormproof.results.interaction import interaction_table, interactions, lacking_parts, worse_together
from stormproof.results.interval import draws
from stormproof.results.requirements import read_requirements
from stormproof.results.scores import Replicates, Scores
from stormproof.results.sets import chosen_set, sets_of
from stormproof.results.weights import half_weights

IMAGES = 200
HALVES = half_weights([f"{k}.png" for k in range(IMAGES)]).astype(float)
SINGLE = tuple(f"{name}@3" for name in ("fog", "snow", "defocus_blur", "pixelate", "contrast", "frost"))
PAIRS = tuple(f"{a}+{b}" for a, b in combinations(SINGLE, 2))


def _scores(images: dict[str, Any], measure: str = "mIoU") -> Scores:
    """Scores that are means of a number per image, with their halves."""
    cells = {text: float(values.mean()) for text, values in images.items()}
    drawn = {
        text: draws(np.r_[cells[text], HALVES @ values / HALVES.sum(axis=1)])
        for text, values in images.items()
    }
    return Scores(
        "net", "street", IMAGES, {measure: cells}, tuple(cells), replicates=Replicates({measure: drawn}, {}),
        metric=measure,
    )  # fmt: skip


def _street(rng: np.random.Generator, **more: float) -> dict[str, Any]:
    """Each corruption takes its points, more from some images than from others; pairs take both, plus
    `more`, give or take an image's own luck."""
    hard = rng.normal(0.75, 0.08, IMAGES)
    taken = {text: rng.gamma(2.0, 0.02, IMAGES) for text in SINGLE}
    luck = {text: rng.normal(0, 0.03, IMAGES) for text in ("clean", *SINGLE, *PAIRS)}
    images = {"clean": hard, **{text: hard - lost for text, lost in taken.items()}}
    for pair in PAIRS:
        images[pair] = hard - sum(taken[part] for part in pair.split("+")) - more.get(pair, 0.0)
    return {text: values + luck[text] for text, values in images.items()}


def test_says_what_a_pair_costs_beyond_the_sum_and_the_product_of_its_parts() -> None:
    cells = {"AP": {"clean": 0.5, "fog@3": 0.4, "snow@3": 0.3, "fog@3+snow@3": 0.1}}
    one = interactions(Scores("m", "d", 100, cells, tuple(cells["AP"])), "AP")["fog@3+snow@3"]
    assert one.cost.estimate == pytest.approx(0.4)
    assert one.predicted("sum") == pytest.approx(0.1 + 0.2)
    assert one.predicted("product") == pytest.approx(0.5 - 0.5 * 0.8 * 0.6)
    assert one.beyond["sum"].estimate == pytest.approx(0.1)
    assert one.beyond["product"].estimate == pytest.approx(0.14)


def test_a_chain_of_three_is_compared_with_all_its_parts() -> None:
    cells = {"clean": 0.8, "fog@3": 0.7, "snow@3": 0.6, "contrast@3": 0.4, "fog@3+snow@3+contrast@3": 0.05}
    one = interactions(Scores("m", "d", 100, {"AP": cells}, tuple(cells)), "AP")["fog@3+snow@3+contrast@3"]
    assert one.beyond["sum"].estimate == pytest.approx(0.75 - (0.1 + 0.2 + 0.4))
    assert one.beyond["product"].estimate == pytest.approx(0.8 * (7 / 8) * (6 / 8) * (4 / 8) - 0.05)


def test_an_error_rises_where_a_score_falls() -> None:
    """E and 1 − E have the same interactions."""
    right = {"clean": 0.8, "fog@3": 0.7, "snow@3": 0.6, "fog@3+snow@3": 0.4}
    wrong = {text: 1 - value for text, value in right.items()}
    of_score, of_error = (
        interactions(Scores("m", "d", 100, {name: cells}, tuple(cells)), name)["fog@3+snow@3"]
        for name, cells in (("AP", right), ("E", wrong))
    )
    for by in ("sum", "product"):
        assert of_error.beyond[by].estimate == pytest.approx(of_score.beyond[by].estimate)
    assert of_error.cost.estimate == pytest.approx(0.4)


def test_parts_are_found_by_their_numbers() -> None:
    cells = {"AP": {"clean": 0.5, "haze[beta=0.012]": 0.4, "snow@3": 0.3, "haze@2+snow@3": 0.2}}
    scores = Scores("m", "d", 100, cells, tuple(cells["AP"]))
    assert interactions(scores, "AP")["haze@2+snow@3"].parts == ("haze[beta=0.012]", "snow@3")


def test_names_the_parts_that_were_not_run() -> None:
    cells = {"AP": {"clean": 0.5, "fog@3": 0.4, "fog@3+snow@3": 0.2}}
    scores = Scores("m", "d", 100, cells, tuple(cells["AP"]))
    assert interactions(scores, "AP") == {}
    assert lacking_parts(scores, "AP") == ["snow@3"]
    assert "snow@3" in worse_together(scores, "AP")


def test_without_interactions_a_sentence_is_printed_in_at_most_one_family_of_twenty() -> None:
    """15 pairs whose parts add up: 5 % of families may have a sentence; without correction it is 30 %."""
    rng, sets = np.random.default_rng(3), 150
    said = uncorrected = 0
    for _ in range(sets):
        scores = _scores(_street(rng))
        found = interactions(scores, "mIoU")
        said += any(one.worse("sum") for one in found.values())
        assert any(one.worse("sum") for one in found.values()) == (
            " more than " in worse_together(scores, "mIoU")
        )
        uncorrected += any(one.beyond["sum"].estimate > 1.96 * one.beyond["sum"].se for one in found.values())
    assert said / sets <= 0.05
    assert uncorrected / sets > 0.15


def test_reports_a_pair_that_is_worse_together_with_its_interval() -> None:
    found = [_scores(_street(np.random.default_rng(k), **{"fog@3+snow@3": 0.12})) for k in range(20)]
    for scores in found:
        one = interactions(scores, "mIoU")["fog@3+snow@3"]
        assert one.worse("sum")
        words = worse_together(scores, "mIoU")
        assert words.startswith("fog@3+snow@3 costs ")
        over = one.beyond["sum"]
        assert f"({100 * over.low:.1f} to {100 * over.high:.1f})" in words
    held = [interactions(s, "mIoU")["fog@3+snow@3"].beyond["sum"] for s in found]
    assert all(each.low < 0.12 < each.high for each in held)


def test_few_images_or_no_intervals_decide_nothing() -> None:
    images = _street(np.random.default_rng(1), **{"fog@3+snow@3": 0.3})
    scores = _scores(images)
    bare = Scores("net", "street", IMAGES, scores.per_condition, scores.conditions)
    assert "--interval" in worse_together(bare, "mIoU")
    few = Scores("net", "street", 40, scores.per_condition, scores.conditions, replicates=scores.replicates)
    assert "40 images are too few" in worse_together(few, "mIoU")
    assert " *" not in "".join(str(row) for row in interaction_table(few, "mIoU").rows)
    assert " *" in "".join(str(row) for row in interaction_table(scores, "mIoU").rows)


def test_the_report_has_a_section_only_for_composed_conditions() -> None:
    scores = _scores(_street(np.random.default_rng(1), **{"fog@3+snow@3": 0.2}))
    made = together(Scope([scores], "mIoU", scores))
    assert made is not None
    assert made.title == "What is worse together"
    assert "fog@3+snow@3 costs" in made.text
    assert {row["x"] for row in made.figures[0].rows} <= {*PAIRS}
    assert len(made.tables[0].rows) == len(PAIRS)
    alone = {"mIoU": dict.fromkeys(("clean", *SINGLE), 0.5)}
    single = Scores("net", "street", IMAGES, alone, tuple(alone["mIoU"]))
    assert together(Scope([single], "mIoU", single)) is None
    assert as_dict(scores)["interactions"]["fog@3+snow@3"]["beyond"]["sum"]["worse"]
    assert as_dict(single)["interactions"] == {}


# Composed conditions never enter a mean over single corruptions


def test_composed_conditions_are_a_set_of_their_own() -> None:
    from stormproof.corruptions import SUITES

    suite = [str(condition) for condition in SUITES["imagenet-c"]]
    sets = sets_of(("clean", *suite, "fog@3+snow@3", "contrast@2+fog@1"))
    assert [(each.name, len(each.conditions), each.whole) for each in sets] == [
        ("imagenet-c", 75, True), ("", 2, False),
    ]  # fmt: skip
    assert sets[1].mean_name == "mean over 2 composed conditions"
    cells = dict.fromkeys(suite, 0.5) | {"clean": 0.8, "fog@3+snow@3": 0.0, "contrast@2+fog@1": 0.0}
    scores = Scores("m", "d", 100, {"AP": cells}, tuple(cells))
    assert scores.mpc == pytest.approx(0.5)
    assert scores["AP"].rpc == pytest.approx(0.625)
    assert "fog@3+snow@3" not in scores.by_corruption("AP")
    assert {str(c) for c in scores.grid("AP").expected} == {*suite}


@pytest.mark.parametrize("name", ["common-pairs", "weather-at-night"])
def test_a_suite_of_composed_conditions_has_no_mpc(name: str) -> None:
    from stormproof.corruptions import SUITES

    held = ["clean", *map(str, SUITES[name])]
    assert not any(each.whole for each in sets_of(held))
    scores = Scores("m", "d", 100, {"AP": dict.fromkeys(held, 0.5)}, tuple(held))
    with pytest.raises(InvalidOption, match="whole benchmark"):
        _ = scores.mpc
    with pytest.raises(InvalidOption, match="composed"):
        read_requirements([{"id": "R1", "metric": "mPC", "suite": name, "at_least": 0.3}])
    found = read_requirements([{"id": "R1", "metric": "AP", "condition": held[-1], "at_least": 0.3}])
    assert found[0].condition == held[-1]


def test_a_grid_without_named_conditions_leaves_composed_ones_out() -> None:
    cells = {"clean": 0.8, **{f"fog@{s}": 0.4 for s in range(1, 6)}, "fog@1+snow@1": 0.0}
    assert {c.corruption for c in Grid.of(cells).expected} == {"fog"}
    assert chosen_set("fog@1,fog@1+snow@1", cells).mean_name == "mean over 2 conditions"  # asked for by name
