"""Runs over stylized images: the same as over stored copies, and scored along α."""

from __future__ import annotations

import csv
import io
import math
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.runs import Configure, all_rows
from stormproof.cli import app
from stormproof.core.errors import DatasetError
from stormproof.corruptions.presets import find_preset
from stormproof.datasets import find_writer
from stormproof.engine.run import run
from stormproof.metrics.grid import Grid
from stormproof.metrics.sequences import relative_curves, split
from stormproof.results.aggregates import aggregates
from stormproof.results.run import Run
from stormproof.results.sets import sets_of
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


def test_a_run_reads_what_stylize_writes(configure: Configure, tmp_path: Path) -> None:
    copies = tmp_path / "paper"
    asked = ["--sequence", "0.5:1:0.5", "--mode", "image", "--mode", "objects", "--as-paper", "-j", "1"]
    both = ["--space", "feature", "--space", "pixel", "--out", str(copies)]
    made = CliRunner().invoke(app, ["stylize", WORLD, *asked, *both])
    assert made.exit_code == 0, made.output
    wanted = ["style[alpha=0.5,space=pixel]", "style[alpha=1,on=objects,space=feature]"]
    config = configure("brightness_boxes", data=WORLD, conditions=wanted, copies=str(copies))
    assert run(config).complete
    rows = all_rows(Path(config.out)).to_pylist()
    for condition, folder in zip(wanted, ("image-pixel-0.5", "objects-feature-1"), strict=True):
        (annotations,) = (copies / folder / "annotations").glob("*.json")
        stored = configure("brightness_boxes", folder, data=f"coco:{annotations}", conditions=["clean"])
        assert run(stored).complete
        theirs = {row["index"]: row["scores"] for row in all_rows(Path(stored.out)).to_pylist()}
        assert {row["index"]: row["scores"] for row in rows if row["condition"] == condition} == theirs
    other = {"conditions": ["style[alpha=0.3]"], "copies": str(copies)}
    with pytest.raises(DatasetError, match="has no folder of copies"):
        run(configure("brightness_boxes", "other", data=WORLD, **other))


def test_scores_of_style_are_curves_over_alpha_and_no_mean(configure: Configure, tmp_path: Path) -> None:
    config = configure("brightness_masks", data=WORLD, conditions=[*SOME, "contrast@1"])
    run(config)
    said = CliRunner().invoke(app, ["score", config.out, "--all"], env={"COLUMNS": "200"})
    assert said.exit_code == 0, said.output
    assert "feature" in said.output
    assert "background" in said.output
    scores = Run(config.out).score()
    found = scores.aggregates["AP"]
    assert set(found["rP"]) >= {"pixel/image/0", "pixel/image/0.5", "pixel/image/1"}
    assert "style" not in found.get("by_corruption", {})  # no level of an mPC
    assert found["mean"] == scores.per_condition["AP"]["contrast@1"]
    assert scores.over.mean_name == "mean over 1 condition"
    printed = CliRunner().invoke(app, ["score", config.out, "--table", "alpha", "--csv"])
    assert printed.exit_code == 0, printed.output
    table = list(csv.DictReader(io.StringIO(printed.stdout)))
    assert {row["space"] for row in table} == {"feature", "pixel"}
    measures = {row["measure"] for row in table}
    assert measures >= {"mask AP", "mask APs"}
    for row in table:
        if row["measure"] == "mask AP" and row["α"] == "0.5" and row["space"] == "pixel":
            value = 100 * scores.aggregates["mask AP"]["rP"][f"pixel/{row['part']}/0.5"]
            assert row["% of clean"] == ("" if math.isnan(value) else repr(value))


def test_models_are_compared_by_their_curves(configure: Configure, tmp_path: Path) -> None:
    runs = [
        configure(model, model, data=WORLD, conditions=SOME)
        for model in ("brightness_boxes", "brightness_masks")
    ]
    for config in runs:
        run(config)
    said = CliRunner().invoke(app, ["score", *(c.out for c in runs), "--table", "alpha", "--csv"])
    assert said.exit_code == 0, said.output
    curves, distances = (list(csv.reader(io.StringIO(part))) for part in said.stdout.split("\n\n"))
    assert {row[0] for row in curves[1:]} == {"brightness_boxes", "brightness_masks"}
    assert [row[0] for row in distances] == ["model", "brightness_boxes", "brightness_masks"]


def test_pixel_curves_take_their_ends_from_clean_and_from_feature_space() -> None:
    texts = {"clean": 0.4, "style[alpha=0,space=feature]": 0.36, "style[alpha=1,space=feature]": 0.1,
             "style[alpha=0.5,space=pixel]": 0.3}  # fmt: skip
    curves = relative_curves(Grid.of(texts))
    assert curves == pytest.approx({
        "feature/image/0": 0.9, "feature/image/1": 0.25,
        "pixel/image/0": 1.0, "pixel/image/0.5": 0.75, "pixel/image/1": 0.25,
    })  # fmt: skip


def test_style_is_never_part_of_a_mean() -> None:
    cells = {"clean": 0.4, "style[alpha=0.5]": 0.2} | {f"fog@{s}": 0.3 for s in range(1, 6)}
    levels, along = split(Grid.of(cells))
    assert levels.corruptions == ("fog",)
    assert [str(c) for c in along.expected] == ["style[alpha=0.5]"]
    found = aggregates("AP", cells, sets_of(tuple(cells))[0])
    assert found["mean"] == pytest.approx(0.3)
    assert found["rP"] == {"feature/image/0.5": pytest.approx(0.5)}
    few = {"clean": 0.4, "style[alpha=0.5]": 0.2}
    only = aggregates("AP", few, sets_of(tuple(few))[0])
    assert not {"mPC", "mean"} & {*only}
    assert only["P"] == 0.4


def test_the_papers_benchmark_can_be_run() -> None:
    preset = find_preset("stylized-coco")
    assert not preset.lacking
    assert len(preset.conditions()) == 61
    assert preset.metric == "mask AP"
