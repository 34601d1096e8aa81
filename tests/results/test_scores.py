"""Scores of runs: equal to the metrics called by hand, complete or refused."""

from __future__ import annotations

import csv
import io
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.runs import Make
from stormproof.cli import app
from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption, StormproofError, UnknownName
from stormproof.core.sample import RLE
from stormproof.corruptions import corrupt_image
from stormproof.datasets import read_dataset
from stormproof.engine.config import make_config
from stormproof.metrics.coco import box_numbers, coco_scored, mask_numbers
from stormproof.metrics.cocomatching import match_boxes
from stormproof.metrics.degradation import cd, degradation
from stormproof.metrics.records import Detections, DetectionTruth
from stormproof.metrics.semantic import count_pixels, true_iou
from stormproof.results import rows
from stormproof.results.documents import as_csv, as_dict, document
from stormproof.results.run import Run
from stormproof.results.store.record import read_record
from stormproof.results.store.seal import json_digest


def by_hand(run: Path, condition: str, function: object) -> tuple[DetectionTruth, dict[str, object]]:
    dataset = read_dataset(read_record(run).dataset.spec)
    truth = DetectionTruth.of(
        [(name, dataset.truth(i).instances) for i, name in enumerate(dataset.ids)],  # type: ignore[misc]
        dataset.classes,
    )
    samples = [dataset[i] for i in range(len(dataset))]
    said = {s.id: function([corrupt_image(s.image, condition, image_id=s.id)])[0] for s in samples}  # type: ignore[operator]
    return truth, said


def photos(run: Path) -> list[tuple[str, np.ndarray]]:  # type: ignore[type-arg]
    dataset = read_dataset(read_record(run).dataset.spec)
    return [(dataset.ids[i], dataset[i].image) for i in range(len(dataset))]


def test_boxes_and_masks_score_as_by_hand(make: Make) -> None:
    from helpers.scored_models import contrast_masks

    run = make("contrast_masks")
    scores = Run(run).score()
    for condition in ("clean", "fog@3"):
        truth, said = by_hand(run, condition, contrast_masks)
        boxes, masks = box_numbers(truth, said), mask_numbers(truth, said)  # type: ignore[arg-type]
        assert {name: scores.per_condition[name][condition] for name in boxes} == pytest.approx(
            boxes, nan_ok=True
        )
        assert scores.per_condition["AP"][condition] == boxes["AP"] > 0
        assert scores.per_condition["mask AP50"][condition] == masks["AP50"] > 0
        found = match_boxes(truth, Detections.of(said, truth))  # type: ignore[arg-type]
        by_class = coco_scored(found, np.ones((1, len(truth.ids)))).per_class["AP"][0]
        assert [*scores.per_class["AP"][condition].values()] == by_class.tolist()
    total = scores.aggregates["AP"]
    cells = [value for text, value in scores.per_condition["AP"].items() if text != "clean"]
    assert total["P"] == scores.per_condition["AP"]["clean"]
    assert total["mean"] == pytest.approx(np.mean(cells))
    assert not {"mPC", "rPC"} & {*total}, "fog and gaussian_noise are no suite"
    assert scores.headline == "mask AP"
    assert scores.aggregates["E"]["mean"] > 0


def test_reading_conditions_in_groups_changes_no_score(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """One condition at a time, and boxes from a temporary file: the same to the last bit."""
    for run in (make("contrast_masks"), make("contrast_boxes"), make("thresholds", "street")):
        together = document(as_dict(Run(run).score(replicates=50)))
        shutil.rmtree(run / "scores")
        with monkeypatch.context() as patch:
            patch.setattr(rows, "_BUDGET", 1)
            patch.setattr(rows.DetectionBuffer.__init__, "__defaults__", (0,))
            assert document(as_dict(Run(run).score(replicates=50))) == together


def test_label_maps_score_as_by_hand(make: Make) -> None:
    from helpers.scored_models import thresholds

    run = make("thresholds", "street")
    scores = Run(run).score()
    assert scores.per_condition["mIoU"]["clean"] == 1.0
    dataset = read_dataset(read_record(run).dataset.spec)
    total = np.zeros((3, 3), np.int64)
    for i in range(len(dataset)):
        sample = dataset[i]
        assert sample.truth.semantic is not None
        said = thresholds([corrupt_image(sample.image, "fog@3", image_id=sample.id)])[0].semantic
        assert said is not None
        total += count_pixels(sample.truth.semantic, said, classes=3)
    assert scores.per_condition["mIoU"]["fog@3"] == pytest.approx(true_iou(total).mean())
    assert scores.per_condition["pixel accuracy"]["fog@3"] == pytest.approx(np.trace(total) / total.sum())
    assert "AP" not in scores.per_condition


def test_classes_are_matched_by_name(make: Make) -> None:
    plain, renamed = Run(make("thresholds", "street")).score(), Run(make("other_names", "street")).score()
    assert renamed.per_condition["mIoU"] == plain.per_condition["mIoU"]


def test_truth_moves_with_the_pixels(make: Make) -> None:
    run = make("thresholds", "street", name="moved", conditions=["geometric_distortion@3"])
    moved = Run(run).score().per_condition["mIoU"]["geometric_distortion@3"]
    assert moved > 0.8  # pixels and labels move together; only edges are uncertain


def test_an_incomplete_grid_is_refused_by_name(make: Make) -> None:
    make("contrast_boxes", name="holes", conditions=["fog@1"])
    run = make("contrast_boxes", name="holes", conditions=["snow@2"], limit=3)
    with pytest.raises(
        IncompleteGrid, match=r"1 of 3 conditions lack images: snow@2 \(5 of 8 missing\)"
    ) as error:
        Run(run).score()
    assert error.value.missing == ("snow@2 (5 of 8 missing)",)
    assert f"stormproof run --config {run / 'run.yaml'}" in str(error.value)
    assert "--partial" in str(error.value)
    partial = Run(run).score(partial=True)
    assert set(partial.per_condition["AP"]) == {"clean", "fog@1"}
    assert partial.aggregates == {}
    assert partial.missing == ("snow@2 (5 of 8 missing)",)


def test_a_mean_of_no_suite_is_not_called_mpc(make: Make) -> None:
    scores = Run(make("contrast_boxes", name="two", conditions=["fog@3,snow@2"])).score(interval=True)
    with pytest.raises(InvalidOption, match=r"not 2 conditions; take scores\['AP'\]\.mean"):
        _ = scores.mpc
    with pytest.raises(UnknownName, match=r"'mPC'.* There are .*\bmean\b"):
        scores.interval("mPC")
    with pytest.raises(UnknownName, match="Unknown measure 'AP51'"):
        scores.interval("mean", "AP51")
    with pytest.raises(UnknownName, match="Unknown measure 'AP51'"):
        scores.plot("AP51")
    with pytest.raises(UnknownName, match="Unknown measure 'AP51'"):
        scores.mean("AP51", conditions="fog@3")
    with pytest.raises(UnknownName, match="Unknown measure 'AP51'"):
        scores.plain_mean(["fog@3"], "AP51")


def test_a_condition_that_was_not_run_has_no_score(make: Make) -> None:
    run = Run(make("contrast_boxes", name="two", conditions=["fog@3,snow@2"]))
    with pytest.raises(InvalidOption, match="was not run under frost@3; it has clean, fog@3, snow@2"):
        run.score(conditions=["frost@3"])
    some = run.score(conditions=[Condition.parse("fog@3")])
    assert [*some.per_condition["AP"]] == ["fog@3"]
    assert some.per_condition["AP"]["fog@3"] == run.score().per_condition["AP"]["fog@3"]


def test_a_reference_that_knows_other_classes_is_refused(make: Make) -> None:
    run, cats = make("contrast_boxes", name="known"), make("cat_boxes")
    with pytest.raises(InvalidOption, match=r"different classes.*only one of them has dog"):
        Run(run).score(reference=cats)
    assert Run(run).score(reference=cats, classes="cat").reference is not None
    assert Run(run).score(reference=run).reference is not None  # of the same name


def test_a_shard_is_merged_instead_of_run_again(make: Make) -> None:
    run = make("contrast_boxes", name="shard", conditions=["fog@3"], shard="1/2", chunk=2)
    with pytest.raises(
        IncompleteGrid, match=r"it is shard 1/2, .*Finish it with 'stormproof merge OUT SHARD…'"
    ):
        Run(run).score()


def test_a_reference_gives_cd_and_gains(make: Make) -> None:
    run, other = make("contrast_boxes"), make("contrast_masks")
    scores = Run(run).score(reference=other)
    mine, theirs = Run(run).score(), Run(other).score()
    grids = [each.grid("AP") for each in (mine, theirs)]
    found = scores.aggregates["AP"]
    assert found["CD"] == cd(degradation(grids[0]), degradation(grids[1]))
    assert found["delta_P"] == pytest.approx(0.0)
    with pytest.raises(InvalidOption, match="they must be the same images"):
        Run(run).score(reference=make("thresholds", "street"))


def test_a_reference_is_compared_cell_by_cell(make: Make) -> None:
    """Severities of one name are not one another's reference; more conditions than ours are no harm."""
    run = make("contrast_boxes", name="few", conditions=["fog@1"])
    other = make("contrast_masks", name="other", conditions=["fog@5"])
    with pytest.raises(InvalidOption, match="The reference contrast_masks lacks fog@1; run it under these"):
        Run(run).score(reference=other)
    other = make("contrast_masks", name="other", conditions=["fog,snow@1"])
    found = Run(run).score(reference=other)
    mine, theirs = (1 - s.per_condition["AP"]["fog@1"] for s in (found, Run(other).score()))
    assert found.aggregates["AP"]["CD"] == {"fog": pytest.approx(mine / theirs)}


def test_boxes_without_masks_count_as_masks_without_overlap(make: Make) -> None:
    from helpers.scored_models import contrast_masks, some_masks

    run = make("some_masks", conditions=["clean"])
    scores = Run(run).score().per_condition
    whole = Run(make("contrast_masks", name="all_masks", conditions=["clean"])).score().per_condition
    assert scores["AP"] == whole["AP"]
    truth, said = by_hand(run, "clean", contrast_masks)
    given = {name: some_masks([image]) for name, image in photos(run)}
    empty = RLE.from_mask(np.zeros((48, 64), bool))
    said = {
        name: answer if given[name][0].masks else replace(answer, masks=(empty,) * len(answer))  # type: ignore[type-var, arg-type]
        for name, answer in said.items()
    }
    assert 0 < scores["mask AP"]["clean"] == mask_numbers(truth, said)["AP"] < whole["mask AP"]["clean"]  # type: ignore[arg-type]


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
    del record["digest"]
    (run / "run.json").write_text(json.dumps(record | {"digest": json_digest(record)}))
    with pytest.raises(InvalidOption, match="--data, or call from /home/ada, where the run was started"):
        Run(run).score()


def test_another_dataset_is_refused(make: Make) -> None:
    run = make("contrast_boxes")
    street = read_record(make("thresholds", "street")).dataset.spec
    with pytest.raises(StormproofError):
        Run(run, data=street).score()


def test_the_command_line_prints_and_saves(make: Make) -> None:
    run = make("contrast_boxes")
    shown = CliRunner().invoke(app, ["score", str(run), "--all"])
    assert shown.exit_code == 0, shown.output
    assert "mean over 10 conditions" in " ".join(shown.output.replace("┃", " ").split())
    assert "mPC" not in shown.output
    assert "gaussian_noise" in shown.output
    assert len([*(run / "scores").glob("*.json")]) == 1
    printed = json.loads(CliRunner().invoke(app, ["score", str(run), "--json"]).stdout)
    assert printed == json.loads(document(as_dict(Run(run).score())))
    assert printed["aggregates"]["AP"]["mean"] == Run(run).score().aggregates["AP"]["mean"]
    table = CliRunner().invoke(app, ["score", str(run), "--csv"]).stdout
    lines = list(csv.DictReader(io.StringIO(table)))
    found = {(line["measure"], line["condition"]): line["value"] for line in lines if not line["class"]}
    by_class = {(line["measure"], line["class"]) for line in lines if line["class"]}
    assert {("AP", "cat"), ("VOC07 AP50", "dog")} <= by_class
    assert float(found["AP", "fog@3"]) == printed["scores"]["AP"]["fog@3"]
    assert as_csv(Run(run).score()) == table


def test_prints_scores_that_cannot_be_stored(make: Make) -> None:
    """As of a run in a folder of someone else's."""
    run = make("contrast_boxes", name="kept", conditions=["clean"])
    (run / "scores").write_text("in the way")
    shown = CliRunner().invoke(app, ["score", str(run), "--json"])
    assert shown.exit_code == 0
    assert json.loads(shown.stdout)["scores"]["AP"]["clean"] == Run(run).score().per_condition["AP"]["clean"]
    assert f"Not stored: Cannot create {run / 'scores'}" in " ".join(shown.stderr.split())


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
    again, before = Run(tmp_path / "again").score(), Run(run).score()
    for name in ("AP", "mask AP50", "E"):
        assert again.per_condition[name] == pytest.approx(before.per_condition[name], abs=1e-9)
