"""Runs over stylized images: the same as over stored copies, and scored along α."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from engine.conftest import Configure, all_rows
from stormproof.cli import app
from stormproof.corruptions.presets import find_preset
from stormproof.datasets import find_writer
from stormproof.engine.run import run
from stormproof.metrics.grid import Grid
from stormproof.metrics.sequences import relative_curves, split
from stormproof.results.aggregates import aggregates
from stormproof.tools.derived import Order, Part, Version, destination_of, make_dataset

WORLD = "world:val,count=3,size=64x48"
SOME = [
    "style[alpha=0,space=feature]",
    "style[alpha=1,space=feature]",
    "style[alpha=0.5,space=pixel]",
    "style[alpha=1,on=objects,space=feature]",
    "style[alpha=0.3,on=background,space=pixel]",
]


def test_a_run_over_conditions_equals_runs_over_stored_copies(configure: Configure, tmp_path: Path) -> None:
    on_the_fly = configure("brightness_masks", "fly", data=WORLD, conditions=SOME)
    assert run(on_the_fly).complete
    rows = {(row["index"], row["condition"]): row for row in all_rows(Path(on_the_fly.out)).to_pylist()}
    for k, condition in enumerate(SOME):
        order = Order(WORLD, (Part("", (Version(condition),)),), "coco", "val", ".png", 0)
        make_dataset(order, tmp_path / f"copy{k}")
        spec = str(find_writer("coco").spec(destination_of(order, order.parts[0], tmp_path / f"copy{k}")))
        stored = configure("brightness_masks", f"stored{k}", data=spec, conditions=["clean"])
        run(stored)
        for row in all_rows(Path(stored.out)).to_pylist():
            mine = rows[row["index"], condition]
            for column in ("boxes", "scores", "labels", "masks"):
                assert mine[column] == row[column], (condition, column)


def test_scores_follow_alpha_instead_of_averaging(configure: Configure, tmp_path: Path) -> None:
    config = configure("brightness_masks", data=WORLD, conditions=[*SOME, "contrast@1"])
    run(config)
    said = CliRunner().invoke(app, ["score", config.out], env={"COLUMNS": "200"})
    assert said.exit_code == 0, said.output
    assert "feature" in said.output
    assert "background" in said.output
    scores = json.loads((Path(config.out) / "scores.json").read_text())
    assert set(scores["aggregates"]["AP"]["rP"]) >= {"pixel/image/0", "pixel/image/0.5", "pixel/image/1"}
    assert "style" not in scores["aggregates"]["AP"].get("by_corruption", {})  # no level of an mPC
    written = CliRunner().invoke(app, ["curves", config.out, "--out", str(tmp_path / "tables")])
    assert written.exit_code == 0, written.output
    with (tmp_path / "tables/curves.csv").open() as file:
        table = list(csv.DictReader(file))
    assert {row["space"] for row in table} == {"feature", "pixel"}
    assert {row["measure"] for row in table} >= {"AP", "APs"}


def test_models_are_compared_by_their_curves(configure: Configure, tmp_path: Path) -> None:
    runs = [
        configure(model, model, data=WORLD, conditions=SOME)
        for model in ("brightness_boxes", "brightness_masks")
    ]
    for config in runs:
        run(config)
    said = CliRunner().invoke(app, ["curves", *(c.out for c in runs), "--out", str(tmp_path / "t")])
    assert said.exit_code == 0, said.output
    assert (tmp_path / "t/distances.csv").read_text().count("\n") == 3


def test_pixel_curves_borrow_their_ends() -> None:
    texts = {"clean": 0.4, "style[alpha=0,space=feature]": 0.36, "style[alpha=1,space=feature]": 0.1,
             "style[alpha=0.5,space=pixel]": 0.3}  # fmt: skip
    curves = relative_curves(Grid.of(texts))
    assert curves == pytest.approx({
        "feature/image/0": 0.9, "feature/image/1": 0.25,
        "pixel/image/0": 1.0, "pixel/image/0.5": 0.75, "pixel/image/1": 0.25,
    })  # fmt: skip


def test_style_is_never_part_of_a_mean() -> None:
    grid = Grid.of({"clean": 0.4, "style[alpha=0.5]": 0.2} | {f"fog@{s}": 0.3 for s in range(1, 6)})
    levels, along = split(grid)
    assert levels.corruptions == ("fog",)
    assert [str(c) for c in along.expected] == ["style[alpha=0.5]"]
    found = aggregates("AP", grid)
    assert found["mPC"] == pytest.approx(0.3)
    assert found["rP"] == {"feature/image/0.5": pytest.approx(0.5)}
    only = aggregates("AP", Grid.of({"clean": 0.4, "style[alpha=0.5]": 0.2}))
    assert "mPC" not in only
    assert only["P"] == 0.4


def test_the_papers_benchmark_can_be_run() -> None:
    preset = find_preset("stylized-coco")
    assert not preset.lacking
    assert len(preset.conditions()) == 61
    assert preset.metric == "mask AP"
