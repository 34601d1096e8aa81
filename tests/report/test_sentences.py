"""Sentences about scores made by hand: who is best, what hurts most, and in which direction."""

from __future__ import annotations

import re

import numpy as np

from helpers.toy_scores import toy_scores
from stormproof.report.sentences import comparable, sentence, verdict
from stormproof.report.view import make_view
from stormproof.results.scores import Replicates, Scores


def scored(name: str, clean: float, measure: str = "AP", *, seed: int = 0, **means: float) -> Scores:
    """Scores at severity 3 of each corruption, with halves that vary by a fiftieth of a point."""
    row = {"clean": clean, **{f"{each}@3": value for each, value in means.items()}}
    rng = np.random.default_rng(seed)
    drawn = {text: value + np.r_[0, 0, rng.normal(0, 0.0002, 200)] for text, value in row.items()}
    return toy_scores(
        name, per_condition={measure: row}, conditions=tuple(row), replicates=Replicates({measure: drawn}, {})
    )


def test_the_lowest_score_hurts_most_and_the_highest_least() -> None:
    scores = scored("net", 0.5, fog=0.45, snow=0.1, frost=0.3, contrast=0.25)
    assert "Snow hurts most (20 % left), fog least (90 % left)." in sentence(scores, "AP")


def test_the_highest_error_hurts_most_and_the_lowest_least() -> None:
    scores = scored("net", 0.2, "E", fog=0.3, snow=0.7, frost=0.4, contrast=0.5)
    assert "snow hurts most (70.0 %), fog least (30.0 %)." in sentence(scores, "E").lower()


def test_half_of_the_clean_score_is_not_below_half() -> None:
    row = {"clean": 0.5, "fog@1": 0.25, "fog@2": 0.2, "snow@1": 0.3, "snow@2": 0.25}
    said = sentence(toy_scores(per_condition={"AP": row}, conditions=tuple(row)), "AP")
    assert said.endswith("falls below half of its clean score under fog from severity 2.")


def test_scores_along_a_strength_run_from_the_lowest_to_the_highest() -> None:
    row = {"clean": 0.5, "style[alpha=0.2]": 0.4, "style[alpha=0.6]": 0.1, "style[alpha=1]": 0.2}
    said = sentence(toy_scores(per_condition={"AP": row}, conditions=tuple(row)), "AP")
    ends = re.search(r"from ([\d.]+) \((.*?)\) to ([\d.]+) \((.*?)\) under 3 conditions", said)
    assert ends is not None, said
    assert ends.groups() == ("10.0", "style[alpha=0.6]", "40.0", "style[alpha=0.2]")


def percent(said: str) -> list[float]:
    return [float(number) for number in re.findall(r"[-+]?\d+(?:\.\d+)?", said)]


def test_the_best_run_and_the_steadiest_may_be_two() -> None:
    """Strong scores higher under corruption and keeps half; steady scores lower and keeps 80 %."""
    strong = scored("strong", 0.8, fog=0.5, snow=0.3)
    steady = scored("steady", 0.4, seed=1, fog=0.35, snow=0.29)
    said = verdict([steady, strong], "AP")
    first, second = said.split(" steady keeps more of its clean score: ")
    assert first.startswith(
        "Take strong: clearly better on clean images and under corruption. "
        "strong scores higher than steady under corruption: AP 40.0 against 32.0, +8.0 (95 %: +"
    )
    assert second.startswith("80 % against 50 %, +30 (95 %: +")
    *_, low, high = percent(second)
    assert 25 < low <= 30 <= high < 35


def test_the_verdict_on_two_says_what_it_costs_on_clean_images() -> None:
    strong, steady = (
        scored("strong", 0.5, fog=0.3, snow=0.2),
        scored("steady", 0.4, seed=1, fog=0.3, snow=0.2),
    )
    said = verdict([steady, strong], "AP")
    assert "under corruption" in said
    assert " On clean images, strong scores higher: 50.0 against 40.0, +10.0 (95 %: +" in said
    assert "No clear difference on clean images: " in verdict(
        [strong, scored("b", 0.5, fog=0.1, snow=0.2)], "AP"
    )


def test_the_best_of_several_is_called_the_highest_under_corruption() -> None:
    runs = [scored(name, 0.5, seed=k, fog=0.1 * k, snow=0.1 * k) for k, name in enumerate("abc", 1)]
    said = verdict(runs, "AP")
    assert said.startswith(
        "Of 3 comparable runs, c scores highest under corruption: AP 30.0 against 20.0 of b"
    )


def test_the_lower_of_two_errors_is_the_better() -> None:
    worse, better = (
        scored("worse", 0.2, "E", fog=0.5, snow=0.5),
        scored("better", 0.2, "E", fog=0.4, snow=0.4),
    )
    said = verdict([worse, better], "E")
    assert said.startswith(
        "Take better: clearly better under corruption, and not clearly worse on clean images."
    )
    assert "better has a lower error than worse under corruption: E 40.0 against 50.0, -10.0" in said


def test_the_weak_points_are_those_of_the_best_run() -> None:
    runs = [scored("low", 0.5, fog=0.1, snow=0.3), scored("high", 0.5, fog=0.4, snow=0.2)]
    assert make_view(runs).weak_points.startswith("Snow hurts high most (40 % left)")


def test_an_estimate_is_printed_with_both_ends_of_its_interval() -> None:
    estimate = {"measure": "AP", "inferences": 0.25, "mpc": {"low": 0.28, "estimate": 0.3, "high": 0.33}}
    (notice,) = [text for text in make_view([toy_scores(estimate=estimate)]).notices if "Estimated" in text]
    assert "(25.0 % of the inferences). Estimated mPC of AP: 30.0 (95 %: 28.0 to 33.0)" in notice


def test_runs_on_other_images_than_most_are_not_compared() -> None:
    runs = [toy_scores("a", dataset="other"), toy_scores("b"), toy_scores("c")]
    ranked, reasons = comparable(runs, "AP")
    assert [scores.name for scores in ranked] == ["b", "c"]
    assert reasons == {"a": "it was run on other images"}


def test_a_printed_difference_is_that_of_the_printed_numbers() -> None:
    """Of shares 61.6 and 50.4 % the difference is 11.2, but whoever reads 62 and 50 finds 12."""
    first, second = (
        scored("first", 0.5, fog=0.308, snow=0.308),
        scored("second", 0.5, fog=0.252, snow=0.252, seed=1),
    )
    said = verdict([first, second], "AP")
    assert "first keeps more of its clean score: 62 % against 50 %, +12 (95 %: +" in said
    runs = [scored("a", 0.50246, fog=0.40044), scored("b", 0.40057, fog=0.30056, seed=1)]
    said = verdict(runs, "AP")
    pairs = re.findall(r"([\d.]+) against ([\d.]+), ([+-][\d.]+)", said)
    assert len(pairs) == 2
    assert all(f"{float(one) - float(other):+.1f}" == by for one, other, by in pairs), said
    table = make_view(runs, measure="AP").decision
    assert table is not None
    lines = [dict(zip(table.columns, row, strict=True)) for row in table.rows]
    clean = [float(str(line["clean"]).split()[0]) for line in lines]
    assert f" {clean[1] - clean[0]:+.1f} " in str(lines[1]["clean, against the first"])
