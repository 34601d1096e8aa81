"""Scores of runs: equal to the metrics called by hand, complete or refused."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from results.conftest import Make
from stormproof.cli import app
from stormproof.core.errors import IncompleteGrid, InvalidOption, StormproofError
from stormproof.core.sample import RLE
from stormproof.corruptions import corrupt_image
from stormproof.datasets import open_dataset
from stormproof.engine.config import make_config
from stormproof.metrics.coco import box_scores, mask_scores
from stormproof.metrics.degradation import cd, degradation
from stormproof.metrics.records import DetectionTruth
from stormproof.metrics.semantic import Confusion
from stormproof.results import reading
from stormproof.results.aggregates import grid_of
from stormproof.results.score import score_run
from stormproof.results.store.record import read_record
from stormproof.results.store.seal import without_digest
from stormproof.results.tables import as_csv, as_json


def by_hand(run: Path, condition: str, function: object) -> tuple[DetectionTruth, dict[str, object]]:
    dataset = open_dataset(read_record(run).dataset.spec)
    truth = DetectionTruth.of(
        [(name, dataset.truth(i).instances) for i, name in enumerate(dataset.ids)],  # type: ignore[misc]
        dataset.classes,
    )
    samples = [dataset[i] for i in range(len(dataset))]
    said = {s.id: function([corrupt_image(s.image, condition, image_id=s.id)])[0] for s in samples}  # type: ignore[operator]
    return truth, said


def photos(run: Path) -> list[tuple[str, np.ndarray]]:  # type: ignore[type-arg]
    dataset = open_dataset(read_record(run).dataset.spec)
    return [(dataset.ids[i], dataset[i].image) for i in range(len(dataset))]


def test_boxes_and_masks_score_as_by_hand(make: Make) -> None:
    from results.scored_models import contrast_masks

    run = make("contrast_masks")
    scores = score_run(run)
    for condition in ("clean", "fog@3"):
        truth, said = by_hand(run, condition, contrast_masks)
        boxes, masks = box_scores(truth, said), mask_scores(truth, said)  # type: ignore[arg-type]
        assert scores.by_measure["AP"][condition] == boxes.AP > 0
        assert scores.by_measure["mask AP50"][condition] == masks.AP50 > 0
        assert scores.per_class["AP"][condition]["cat"] == boxes.per_class["cat"]["AP"]
    total = scores.aggregates["AP"]
    cells = [value for text, value in scores.by_measure["AP"].items() if text != "clean"]
    assert total["P"] == scores.by_measure["AP"]["clean"]
    assert total["mean"] == pytest.approx(np.mean(cells))
    assert not {"mPC", "rPC"} & {*total}, "fog and gaussian_noise are no suite"
    assert scores.headline == "mask AP"
    assert scores.aggregates["E"]["mean"] > 0


def test_conditions_are_read_in_groups_alike(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    run = make("contrast_boxes")
    together = as_json(score_run(run))
    monkeypatch.setattr(reading, "_BUDGET", 1)
    assert as_json(score_run(run)) == together


def test_label_maps_score_as_by_hand(make: Make) -> None:
    from results.scored_models import thresholds

    run = make("thresholds", "street")
    scores = score_run(run)
    assert scores.by_measure["mIoU"]["clean"] == 1.0
    dataset = open_dataset(read_record(run).dataset.spec)
    total = Confusion.empty(3)
    for i in range(len(dataset)):
        sample = dataset[i]
        assert sample.truth.semantic is not None
        said = thresholds([corrupt_image(sample.image, "fog@3", image_id=sample.id)])[0].semantic
        assert said is not None
        total += Confusion.of(sample.truth.semantic, said, classes=3)
    assert scores.by_measure["mIoU"]["fog@3"] == pytest.approx(total.miou)
    assert scores.by_measure["pixel accuracy"]["fog@3"] == pytest.approx(total.pixel_accuracy)
    assert "AP" not in scores.by_measure


def test_classes_are_matched_by_name(make: Make) -> None:
    plain, renamed = score_run(make("thresholds", "street")), score_run(make("other_names", "street"))
    assert renamed.by_measure["mIoU"] == plain.by_measure["mIoU"]


def test_truth_moves_with_the_pixels(make: Make) -> None:
    run = make("thresholds", "street", name="moved", conditions=["geometric_distortion@3"])
    moved = score_run(run).by_measure["mIoU"]["geometric_distortion@3"]
    assert moved > 0.8  # pixels and labels move together; only edges are uncertain


def test_an_incomplete_grid_is_refused_by_name(make: Make) -> None:
    make("contrast_boxes", name="holes", conditions=["fog@1"])
    run = make("contrast_boxes", name="holes", conditions=["snow@2"], limit=3)
    with pytest.raises(
        IncompleteGrid, match=r"1 of 3 conditions lack images: snow@2 \(5 of 8 images\)"
    ) as error:
        score_run(run)
    assert error.value.missing == ("snow@2 (5 of 8 images)",)
    assert f"stormproof run --config {run / 'run.yaml'}" in str(error.value)
    assert "--partial" in str(error.value)
    partial = score_run(run, partial=True)
    assert set(partial.by_measure["AP"]) == {"clean", "fog@1"}
    assert partial.aggregates == {}
    assert partial.missing == ("snow@2 (5 of 8 images)",)


def test_a_reference_gives_cd_and_gains(make: Make) -> None:
    run, other = make("contrast_boxes"), make("contrast_masks")
    scores = score_run(run, reference=other)
    mine, theirs = score_run(run), score_run(other)
    conditions = mine.record.conditions
    grids = [grid_of(s.by_measure["AP"], conditions) for s in (mine, theirs)]
    found = scores.aggregates["AP"]
    assert found["CD"] == cd(degradation(grids[0]), degradation(grids[1]))
    assert found["delta_P"] == pytest.approx(0.0)
    with pytest.raises(InvalidOption, match="a reference run on the same images"):
        score_run(run, reference=make("thresholds", "street"))


def test_a_reference_is_compared_cell_by_cell(make: Make) -> None:
    """Severities of one name are not one another's reference; more conditions than ours are no harm."""
    run = make("contrast_boxes", name="few", conditions=["fog@1"])
    other = make("contrast_masks", name="other", conditions=["fog@5"])
    with pytest.raises(InvalidOption, match="The reference contrast_masks lacks fog@1; run it under these"):
        score_run(run, reference=other)
    other = make("contrast_masks", name="other", conditions=["fog,snow@1"])
    found = score_run(run, reference=other)
    mine, theirs = (1 - s.by_measure["AP"]["fog@1"] for s in (found, score_run(other)))
    assert found.aggregates["AP"]["CD"] == {"fog": pytest.approx(mine / theirs)}


def test_boxes_without_masks_on_some_images_are_masks_that_meet_nothing(make: Make) -> None:
    from results.scored_models import contrast_masks, some_masks

    run = make("some_masks", conditions=["clean"])
    scores = score_run(run).by_measure
    whole = score_run(make("contrast_masks", name="all_masks", conditions=["clean"])).by_measure
    assert scores["AP"] == whole["AP"]
    truth, said = by_hand(run, "clean", contrast_masks)
    given = {name: some_masks([image]) for name, image in photos(run)}
    empty = RLE.from_mask(np.zeros((48, 64), bool))
    said = {
        name: answer if given[name][0].masks else replace(answer, masks=(empty,) * len(answer))  # type: ignore[type-var, arg-type]
        for name, answer in said.items()
    }
    assert 0 < scores["mask AP"]["clean"] == mask_scores(truth, said).AP < whole["mask AP"]["clean"]  # type: ignore[arg-type]


def test_tables_show_conditions_whole(make: Make) -> None:
    texts = ["gaussian_noise[sigma=0.1]", "gaussian_noise[sigma=0.25]", "elastic_transform@3[labels=moved]"]
    run = make("contrast_boxes", name="free", conditions=[*texts, "elastic_transform@3"])
    shown = CliRunner().invoke(app, ["score", str(run)], terminal_width=80).stdout
    assert all(text in shown for text in texts[:2])
    for name in ("elastic_transform ", "elastic_transform[labels=moved] "):  # a variant has a row of its own
        row = next(line for line in shown.splitlines() if name in line)
        assert len({cell.strip() for cell in row.split("│")[2:-1]} - {"–"}) == 1  # its one cell is its mean


def test_a_run_called_from_elsewhere_says_where_it_began(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make("contrast_boxes", name="moved", conditions=["clean"])
    record = json.loads((run / "run.json").read_text())
    record["dataset"]["spec"] = "coco:scene/instances.json"
    record["provenance"]["folder"] = "/home/ada"
    del record["digest"], record["sealed"]  # as earlier versions wrote it
    (run / "run.json").write_text(json.dumps(record))
    with pytest.raises(InvalidOption, match="--data, or call from /home/ada, where the run was started"):
        score_run(run)


def test_another_dataset_is_refused(make: Make) -> None:
    run = make("contrast_boxes")
    street = read_record(make("thresholds", "street")).dataset.spec
    with pytest.raises(StormproofError):
        score_run(run, data=street)


def test_the_command_line_prints_and_saves(make: Make) -> None:
    run = make("contrast_boxes")
    shown = CliRunner().invoke(app, ["score", str(run)])
    assert shown.exit_code == 0, shown.output
    assert "mean over 10 conditions" in " ".join(shown.output.replace("┃", " ").split())
    assert "mPC" not in shown.output
    assert "gaussian_noise" in shown.output
    printed = json.loads(CliRunner().invoke(app, ["score", str(run), "--json"]).stdout)
    assert printed == without_digest(json.loads((run / "scores.json").read_text()))
    assert printed["aggregates"]["AP"]["mean"] == score_run(run).aggregates["AP"]["mean"]
    rows = list(csv.DictReader(io.StringIO(CliRunner().invoke(app, ["score", str(run), "--csv"]).stdout)))
    found = {(row["measure"], row["condition"]): row["value"] for row in rows if not row["class"]}
    by_class = {(row["measure"], row["class"]) for row in rows if row["class"]}
    assert {("AP", "cat"), ("VOC07 AP50", "dog")} <= by_class
    assert float(found["AP", "fog@3"]) == printed["scores"]["AP"]["fog@3"]
    assert as_csv(score_run(run)) == (run / "scores.csv").read_text()


def test_scores_that_cannot_be_kept_are_printed(make: Make) -> None:
    """As of a run in a folder of someone else's."""
    run = make("contrast_boxes", name="kept", conditions=["clean"])
    (run / "scores.json").mkdir()
    shown = CliRunner().invoke(app, ["score", str(run), "--json"])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["scores"]["AP"]["clean"] == score_run(run).by_measure["AP"]["clean"]
    assert f"Not kept: Cannot write {run / 'scores.json'}" in shown.stderr


def test_exported_results_are_a_model_again(make: Make, tmp_path: Path) -> None:
    """Through COCO results and back: the same scores, and no image is opened."""
    from stormproof.engine.run import run as run_engine

    run = make("contrast_masks")
    shown = CliRunner().invoke(app, ["export", str(run), "--out", str(tmp_path / "results")])
    assert shown.exit_code == 0, shown.output
    spec = read_record(run).dataset.spec
    annotations = spec.partition(":")[2].partition(",")[0]
    settings = {"model": f"results:{tmp_path / 'results'}", "data": f"coco:{annotations}", "engine": "local"}
    summary = run_engine(make_config({**settings, "out": str(tmp_path / "again")}))
    assert summary.complete
    assert summary.times.decoded == 0
    again, before = score_run(tmp_path / "again"), score_run(run)
    for name in ("AP", "mask AP50", "E"):
        assert again.by_measure[name] == pytest.approx(before.by_measure[name], abs=1e-9)
