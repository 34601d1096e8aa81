"""Figures for papers, comparisons, and the commands."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.hostile import MARKDOWN, SCRIPT
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from helpers.toy_scores import toy_scores
from stormproof.cli import app
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.report.charts import place_on_circle
from stormproof.report.comparison import change_table, changes_of, image_table, ranks, verdict
from stormproof.report.elements import Axis, Figure, Kind
from stormproof.report.figures import sheets, write_figures
from stormproof.report.sources import published_scores, run_scores
from stormproof.report.view import make_view
from stormproof.results.run import Run
from stormproof.results.worst import ImageErrors


def call(*words: str) -> Any:
    return CliRunner().invoke(app, [*words], catch_exceptions=False)


def test_drawing_a_figure_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    view = make_view([toy_scores(MARKDOWN, tags={"a": "1"}), toy_scores("b", clean=0.5)])
    first = write_figures(view, tmp_path / "one", formats=("svg",))
    second = write_figures(view, tmp_path / "two", formats=("svg",))
    assert [p.name for p in first] == [p.name for p in second]
    assert all(a.read_bytes() == b.read_bytes() for a, b in zip(first, second, strict=True))
    names = {path.stem for path in first}
    assert {"corruptions", "cd-clean", "cd-corruptions", "table-summary"} <= names


def test_draws_the_figures_of_the_papers(tmp_path: Path) -> None:
    some = published_scores("pezzementi")[:3]
    names = {path.name for path in write_figures(make_view(some), tmp_path, formats=("svg",))}
    assert "prediction.svg" in names
    assert "weights.svg" in names  # what is picked on the page stands side by side in one file


def test_a_figure_with_very_many_panels_becomes_several_files() -> None:
    rows = [{"x": 0.0, "y": 1.0, "panel": f"{k // 2}"} for k in range(100)]
    figure = Figure("alpha", "", Kind.LINES, Axis("x"), Axis("y"), rows, panel="panel")
    found = sheets(figure)
    assert [(sheet.id, len(sheet.rows)) for sheet in found] == [
        ("alpha", 48),
        ("alpha-2", 48),
        ("alpha-3", 4),
    ]
    assert [row for sheet in found for row in sheet.rows] == rows


def test_figures_of_published_scores_need_no_run_folder(tmp_path: Path) -> None:
    names = [f"published:michaelis/pascal_voc/detection/{training}" for training in ("standard", "combined")]
    said = call("figures", *names, "--format", "svg", "--out", str(tmp_path))
    assert said.exit_code == 0, said.output
    assert "impulse_noise" in (tmp_path / "rmse.svg").read_text()


def test_detection_rates_are_drawn_with_their_marks(tmp_path: Path) -> None:
    marks = {"marks_fppi": [0.1] * 9, "marks_rate": [0.2] * 9}  # one for each sensitivity
    curve = {"fppi": [0.1, 1.0], "rate": [0.2, 0.6], **marks}
    made = toy_scores(details={"roc": {"clean": curve, "fog@5": curve}})
    view = make_view(
        [replace(made, per_condition={**made.per_condition, "ADR": {"clean": 0.5, "fog@5": 0.4}})]
    )
    written = {path.name: path for path in write_figures(view, tmp_path, formats=("svg",))}
    assert [name for name in written if name.startswith("roc")] == ["roc.svg"]
    assert all(words in written["roc.svg"].read_text() for words in ("clean", "fog, 5"))


def test_comparison_counts_what_got_better_and_worse() -> None:
    before, after = toy_scores("old"), toy_scores("new", clean=0.5)
    worse = {**after.per_condition["AP"], **{f"snow@{s}": 0.1 for s in range(1, 6)}}
    changed = replace(after, per_condition={"AP": worse})
    changes = changes_of(before, changed, "AP")
    assert verdict(before, changed, "AP", changes) == (
        "From old to new, AP changes by +10.0 on clean images and by -1.0 under corruption: "
        "1 of 2 corruptions got better (fog), 1 worse (snow). "
        "old keeps more of its clean score: 70 % against 54 %, +16."
    )
    table = change_table(before, changed, "AP", changes)
    names = ["clean", "mean", "snow", "fog"]  # worst change first
    assert [row[0] for row in table.rows] == names
    assert ranks({"a": 0.3, "b": 0.1, "c": 0.2}, higher=False) == {"a": 1, "c": 2, "b": 3}


def test_images_that_changed_most_come_first() -> None:
    first = ImageErrors(("a", "b"), {"clean": np.array([0.1, 0.2]), "fog@1": np.array([0.1, 0.2])})
    second = ImageErrors(("a", "b"), {"clean": np.array([0.1, 0.3]), "fog@1": np.array([0.1, math.nan])})
    rows = image_table(toy_scores("x"), toy_scores("y"), first, second).rows
    assert rows[0][0] == "b"
    assert rows[0][1] == pytest.approx(10.0)  # over the one condition where both are known
    assert rows[1][1] == 0.0


def test_a_radar_is_closed() -> None:
    rows = place_on_circle([{"x": name, "y": 1.0, "series": "m"} for name in ("a", "b", "c")])
    mine = [row for row in rows if row.get("series") == "m"]
    assert len(mine) == 4
    assert (mine[0]["px"], mine[0]["py"]) == (mine[-1]["px"], mine[-1]["py"])
    assert mine[0]["py"] == pytest.approx(1.0)  # the first spoke points up


def test_runs_store_image_quality_and_image_errors(runs: dict[str, Path]) -> None:
    found = run_scores(Run(runs["boxes"]))
    assert found.details["quality"]["clean"]["rmse"] == 0
    assert (
        found.details["quality"]["gaussian_noise@1"]["rmse"]
        < found.details["quality"]["gaussian_noise@5"]["rmse"]
    )
    assert (
        found.details["quality"]["gaussian_noise@1"]["snr"]
        > found.details["quality"]["gaussian_noise@5"]["snr"]
    )
    errors = run_scores(Run(runs["maps"])).image_errors
    assert errors is not None
    assert len(errors.ids) == 3
    assert ((errors.by_condition["clean"] >= 0) & (errors.by_condition["clean"] <= 1)).all()


def test_the_commands_of_the_report_work(runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "report.html"
    done = call("report", str(runs["boxes"]), str(runs["masks"]), "--images", "1", "--out", str(out))
    assert done.exit_code == 0
    assert json.loads(out.with_suffix(".json").read_text())["version"] == 1
    shown = call("show", str(runs["boxes"])).output
    assert "gaussian_noise" in shown
    assert SCRIPT in shown.replace("\n", "")
    page = tmp_path / "compare.html"
    done = call("compare", str(runs["boxes"]), str(runs["masks"]), "--measure", "AP", "--out", str(page))
    assert "AP (%) by corruption, and its change in points" in done.output
    assert page.exists()
    grouped = ("--format", "svg", "--measure", "AP", "--group-by", "backbone")
    where = ("--out", str(tmp_path / "figures"))
    done = call("figures", str(runs["boxes"]), str(runs["masks"]), *grouped, *where)
    assert done.exit_code == 0
    assert (tmp_path / "figures" / "corruptions.svg").exists()


def test_every_source_makes_a_page(runs: dict[str, Path], tmp_path: Path) -> None:
    """A folder of runs, a submission, a paper's table, and all of them in one page."""
    entry = tmp_path / "boxes.json"
    assert call("submit", str(runs["boxes"]), "--out", str(entry)).exit_code == 0
    folder = str(runs["boxes"].parent)
    for sources in ([folder], [str(entry)], ["published:liu"], [folder, str(entry), "published:liu"]):
        out = tmp_path / "page.html"
        assert call("report", *sources, "--images", "0", "--out", str(out)).exit_code == 0
        assert all(call("show", source).exit_code == 0 for source in sources)
    assert call("compare", str(entry), str(runs["boxes"])).exit_code == 0


def test_a_model_that_finds_nothing_has_a_page(tmp_path: Path) -> None:
    """When the clean score is 0, one needs the page most."""
    scene = write_scene(tmp_path / "scene", images=2)
    words = {"model": f"{MODELS}:corner_boxes", "data": scene, "conditions": ["fog"], "engine": "local"}
    run(make_config({**words, "out": str(tmp_path / "run")}))
    out = tmp_path / "page.html"
    assert call("report", str(tmp_path / "run"), "--out", str(out)).exit_code == 0
    said = "scores 0.00 AP on clean images, so there is nothing left to lose"
    assert said in out.read_text()
    assert said in call("show", str(tmp_path / "run")).output
    assert call("compare", str(tmp_path / "run"), str(tmp_path / "run"), "--interval").exit_code == 0
    where = ("--format", "svg", "--out", str(tmp_path / "figures"))
    assert call("figures", str(tmp_path / "run"), *where).exit_code == 0


def test_a_run_on_one_clean_image_is_shown_by_its_score(tmp_path: Path) -> None:
    scene = write_scene(tmp_path / "scene", images=1)
    words = {"model": f"{MODELS}:contrast_boxes", "data": scene, "conditions": ["clean"], "engine": "local"}
    run(make_config({**words, "out": str(tmp_path / "run")}))
    shown = " ".join(call("show", str(tmp_path / "run")).output.split())
    assert "left of clean" not in shown
    assert "Under corruption" not in shown
    assert f"{100 * Run(tmp_path / 'run').score().p:.1f}" in shown
    assert "1 image" in shown
    assert "1 images" not in shown
    printed = call("score", str(tmp_path / "run")).output
    assert f"{100 * Run(tmp_path / 'run').score().p:.1f}" in printed
    assert "severity" not in printed


def test_refuses_wrong_options(runs: dict[str, Path]) -> None:
    for words in (("--images", "-1"), ("--budget", "0"), ("--measure", "AP51"), ("--reference", "nobody")):
        done = CliRunner().invoke(app, ["report", str(runs["boxes"]), *words])
        assert done.exit_code != 0
        assert words[1] in str(done.exception)


def test_refuses_to_write_numbers_over_their_page(tmp_path: Path) -> None:
    for words in (("report", "published:liu"), ("compare", "published:kamann/ICNet", "published:liu/FRC")):
        done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / "page.json")])
        assert "page.json is where the page's numbers go; name the page page.html" in str(done.exception)
    assert not list(tmp_path.iterdir())


def test_intervals_are_shown_where_they_are_known(runs: dict[str, Path]) -> None:
    summary = make_view([run_scores(Run(runs["masks"]), interval=True)], measure="AP").summary
    line = dict(zip(summary.columns, summary.rows[0], strict=True))
    low, high = (float(end) for end in str(line["95 % of P"]).split(" – "))
    assert low < high
    done = call("compare", str(runs["boxes"]), str(runs["masks"]), "--measure", "AP", "--interval")
    assert "clear" in done.output
