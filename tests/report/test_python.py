"""Reports, comparisons, verdicts and notebook tables from Python, as the command line has them."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from statistics import fmean

import pytest

import stormproof as sp
from helpers.hostile import SCRIPT
from helpers.toy_scores import toy_scores
from stormproof.core.errors import InvalidOption
from stormproof.report.comparison import compare_view
from stormproof.results import verdicts


def text_of(markup: str) -> str:
    """What a reader sees of HTML; a script in it would fail here."""
    said: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: object) -> None:
            assert tag in ("table", "caption", "thead", "tbody", "tr", "th", "td", "span", "p")

        def handle_data(self, data: str) -> None:
            said.append(data)

    Reader().feed(markup)
    return " ".join(said)


def test_makes_a_report_of_runs_folders_and_scores(runs: dict[str, Path], tmp_path: Path) -> None:
    page = sp.report([sp.Run(runs["boxes"]), str(runs["masks"])], out=tmp_path / "both.html", images=0)
    assert page == tmp_path / "both.html"
    assert len(json.loads(page.with_suffix(".json").read_text())["summary"]["rows"]) == 2
    alone = sp.report(sp.Run(runs["boxes"]).score(), out=tmp_path / "one.html", images=0)
    assert len(json.loads(alone.with_suffix(".json").read_text())["summary"]["rows"]) == 1


def test_a_comparison_says_what_the_command_says(runs: dict[str, Path], tmp_path: Path) -> None:
    a, b = sp.Run(runs["boxes"]), sp.Run(runs["masks"])
    found = sp.compare(a, b)
    same = compare_view(a.score(interval=True), b.score(interval=True))
    assert found.sentence == same.sentences[0]
    assert found.table.rows == same.summary.rows
    assert "clear" in found.table.columns
    assert "clear" not in sp.compare(a, b, interval=False).table.columns
    assert "fog" in text_of(found._repr_html_())
    assert found.save(tmp_path / "changes.html").is_file()
    pytest.importorskip("pandas", reason="needs pandas")
    assert list(found.to_frame().columns) == list(found.table.columns)
    with pytest.raises(InvalidOption, match="holds 3 runs"):
        sp.compare(runs["boxes"].parent, b)


def test_judges_requirements_in_python(
    runs: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "FEWEST", 2)  # a user's run needs more images
    asked = [
        {"id": "easy", "metric": "AP", "condition": "clean", "at_most_drop": 0.9},
        {"id": "hard", "metric": "AP50", "condition": "fog@3", "at_least": 0.99},
    ]
    run = sp.Run(runs["boxes"])
    found = sp.check(run, asked, against=str(runs["masks"]))
    assert [str(each.outcome) for each in found] == ["pass", "fail"]
    assert not found.passed
    assert sp.check(run, asked[:1], against=run).passed
    assert "AP50 under fog@3 at least 0.99" in text_of(found._repr_html_())
    (tmp_path / "asked.yaml").write_text(json.dumps({"requirements": asked[1:]}))
    assert [v.requirement.id for v in sp.check(run, tmp_path / "asked.yaml")] == ["hard"]
    with pytest.raises(InvalidOption, match="the list, requirement 1"):
        sp.check(run, [{"id": "x", "metric": "APP", "at_least": 0.5}])
    with pytest.raises(InvalidOption, match="nothing would be checked"):
        sp.check(run, [])


def test_takes_means_over_any_conditions() -> None:
    scores = toy_scores()
    fog = [scores.score("AP", f"fog@{s}") for s in (1, 2)]
    assert scores.mean(conditions="fog@1-2") == pytest.approx(fmean(fog))
    assert scores.mean("AP", conditions=["fog@1", "fog@2"]) == pytest.approx(fmean(fog))
    everything = [scores.score("AP", str(c)) for c in scores.corrupted]
    assert scores.mean() == scores["AP"].mean == pytest.approx(fmean(everything))
    with pytest.raises(InvalidOption, match="no score under frost@1"):
        scores.mean(conditions="frost@1")


def test_notebooks_show_tables_whatever_the_names(runs: dict[str, Path]) -> None:
    run = sp.Run(runs["boxes"])
    said = text_of(run._repr_html_())
    assert SCRIPT in said
    assert "complete" in said
    said = text_of(run.score()._repr_html_())
    assert "AP by corruption and severity (in %)" in said
    assert "fog" in said
