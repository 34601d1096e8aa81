"""The decision table: what it says of one run and of several, and what it does not claim."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.toy_scores import toy_scores
from stormproof.cli import app
from stormproof.core.errors import UnknownName
from stormproof.report.decision import decision
from stormproof.report.page import as_json, page
from stormproof.report.sentences import choose
from stormproof.report.terminal import tell_several
from stormproof.report.view import make_view
from stormproof.results.explained import explanation, explanations
from stormproof.results.scores import Replicates, Scores


def sure(scores: Scores, *, spread: float = 0.005, seed: int = 1) -> Scores:
    """The scores with halves that vary by `spread`, each condition by itself."""
    rng = np.random.default_rng(seed)
    drawn = {
        text: np.concatenate([[value, value], value + rng.normal(0, spread, 200)])
        for text, value in scores.per_condition["AP"].items()
    }
    return replace(scores, images=200, replicates=Replicates({"AP": drawn}, {}))


def lines(*runs: Scores) -> list[dict[str, object]]:
    table = decision(runs, "AP")
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


def test_one_run_has_its_numbers_and_nothing_to_be_compared_with() -> None:
    scores = toy_scores("net")
    (line,) = lines(scores)
    assert line["model"] == "net"
    assert line["clean"] == f"{100 * scores.score('AP'):.1f}"
    assert line["under corruption"] == f"{100 * scores.mean('AP'):.1f}"
    assert not any("against the first" in column for column in line)


def test_intervals_stand_in_brackets() -> None:
    (line,) = lines(sure(toy_scores("net")))
    assert str(line["clean"]).count(" – ") == 1
    assert str(line["kept"]).count("(") == 1


def test_a_difference_is_named_only_if_it_is_clear() -> None:
    first, better = sure(toy_scores("a", clean=0.4)), sure(toy_scores("b", clean=0.5), seed=2)
    assert str(lines(first, better)[1]["corrupted, against the first"]).startswith("better: +")
    assert str(lines(better, first)[1]["corrupted, against the first"]).startswith("worse: -")
    assert lines(better, first)[0]["corrupted, against the first"] == "the first"
    noisy = sure(toy_scores("b", clean=0.41), spread=0.2, seed=2)
    assert str(lines(first, noisy)[1]["corrupted, against the first"]).startswith("not clear: ")


def test_a_loss_on_clean_images_is_said_beside_a_gain_under_corruption() -> None:
    cells = {"clean": 0.3, "fog@1": 0.25, "fog@2": 0.25}
    strong = sure(
        replace(toy_scores("a"), per_condition={"AP": cells | {"clean": 0.5}}, conditions=tuple(cells))
    )
    steady = sure(replace(toy_scores("b"), per_condition={"AP": cells}, conditions=tuple(cells)), seed=2)
    line = lines(strong, steady)[1]
    assert str(line["clean, against the first"]).startswith("worse: -20.0 (")
    assert str(line["corrupted, against the first"]).startswith("not clear: ")


def test_without_intervals_a_difference_is_called_neither_better_nor_worse() -> None:
    table = decision([toy_scores("a", clean=0.4), toy_scores("b", clean=0.5)], "AP")
    assert table.rows[1][table.columns.index("clean, against the first")] == "+10.0"
    assert "differences without an interval may be chance" in table.note


def test_several_runs_of_one_model_keep_their_names_apart_in_the_terminal() -> None:
    runs = {name: toy_scores("net", folder=Path(name)) for name in ("before", "after")}
    ((tone, table),) = tell_several(runs, every_measure=False)
    assert tone == "table"
    assert len({row[0] for row in table.rows}) == 2
    *_, (_, listed) = tell_several(runs, every_measure=True)
    assert listed.title == "Models (in %)"


def test_runs_on_other_images_are_not_compared() -> None:
    first, other = toy_scores("a"), replace(toy_scores("b"), images=7)
    third = toy_scores("c")
    assert [line["corrupted, against the first"] for line in lines(first, other, third)][
        1
    ] == "not comparable"


def test_the_run_to_take_is_better_somewhere_and_worse_nowhere() -> None:
    def both(clean: float, corrupted: float, spread: float = 0.004) -> Scores:
        cells = {"clean": clean, "fog@1": corrupted, "snow@1": corrupted}
        made = replace(toy_scores(f"{clean}"), per_condition={"AP": cells}, conditions=tuple(cells))
        return sure(made, spread=spread, seed=int(1000 * clean))

    first = both(0.4, 0.2)
    taken, said = choose([first, both(0.5, 0.3)], "AP")
    assert (taken and taken.name, said) == (
        "0.5",
        "Take 0.5: clearly better on clean images and under corruption.",
    )
    taken, said = choose([first, both(0.5, 0.2)], "AP")
    assert said == "Take 0.5: clearly better on clean images, and not clearly worse under corruption."
    assert choose([first, both(0.5, 0.1)], "AP") == (
        None, "Neither is better in both: 0.5 on clean images and 0.4 under corruption.",
    )  # fmt: skip
    assert choose([first, both(0.41, 0.2, spread=0.2)], "AP") == (None, "")


def test_what_hurts_most_is_named_only_where_clear() -> None:
    cells = {"clean": 0.4} | {f"{name}@1": v for name, v in (("fog", 0.1), ("snow", 0.3), ("frost", 0.31))}
    scores = replace(toy_scores("net"), per_condition={"AP": cells}, conditions=tuple(cells))
    assert lines(sure(scores))[0]["hurt most by"] == "fog"
    assert lines(sure(scores, spread=0.3))[0]["hurt most by"] == "not clear; on these images fog, snow, frost"


def test_the_page_begins_with_the_table_and_shortens_long_names() -> None:
    long = "a-very-long-name-of-a-network-trained-for-ever-and-a-day"
    view = make_view([toy_scores(long), toy_scores("b")])
    text = page(view)
    assert text.index('data-table="decision"') < text.index('class="answer"')
    assert f'title="{long}"' in text
    assert "a-very-long-na…ver-and-a-day" in text
    assert '"decision"' not in as_json(view)


@pytest.mark.parametrize(
    "name", ["P", "mPC", "rPC", "rpc", "kept", "AP50", "hurt most by", "clean, against the first"]
)
def test_every_column_is_explained(name: str) -> None:
    assert explanation(name)


def test_explain_lists_all_and_suggests_three() -> None:
    shown = CliRunner().invoke(app, ["explain", "AP50"])
    assert shown.exit_code == 0
    assert "higher is better" in shown.stdout
    assert "AP50" in CliRunner().invoke(app, ["explain"]).stdout
    failed = CliRunner().invoke(app, ["explain", "AP5O"])
    assert isinstance(failed.exception, UnknownName)
    assert "Near it: AP50" in str(failed.exception)
    assert all(words for words in explanations().values())
