"""The papers' tables of small runs: `stormproof score RUN… --table NAME`."""

from __future__ import annotations

import csv
import io
import json
import math
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import PIL.Image
import pytest
from typer.testing import CliRunner

from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.errors import IncompleteGrid, InvalidOption, StoreError, UnknownName
from stormproof.core.sample import Image, Prediction
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.metrics.prediction import Predicted
from stormproof.report import paper_tables
from stormproof.report.paper_tables import contextual, detectors, roc, scenarios
from stormproof.report.people_figures import distributions, hardest, lost_people, with_distributions
from stormproof.report.view import make_view
from stormproof.results.people import histograms, levels, open_people, predict_contextual
from stormproof.results.run import Run
from stormproof.results.store.parts import held_rows, writing_part

NEAR, FAR = 2.0, 40.0  # metres to the left and the right half of every toy scene


def _table(name: str, *words: object) -> str:
    """What is printed; the note below a table goes to standard error."""
    asked = ["score", *map(str, words), "--table", name]
    result = CliRunner().invoke(app, asked, env={"COLUMNS": "200"}, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def _rows(name: str, *words: object) -> list[dict[str, str]]:
    """The same as CSV has it, in full precision."""
    return list(csv.DictReader(io.StringIO(_table(name, *words, "--csv"))))


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("people")
    settings = {"model": f"{MODELS}:contrast_boxes", "data": write_scene(folder / "scene", images=8)}
    run(
        make_config(
            {**settings, "out": str(folder / "run"), "conditions": ["fog"], "engine": "local",
             "tags": {"architecture": "oracle", "trained": "toys"}}
        )
    )  # fmt: skip
    return folder / "run"


def test_prints_ce_of_detectors_means_by_tag_and_a_t_test(ran: Path) -> None:
    said = _table("detectors", ran)
    assert "mean (mCE)" in said
    assert "architecture oracle" in said
    assert "paired with each detector" in " ".join(said.split())
    assert "trained toys" in _table("detectors", ran, "--by", "trained")
    scores = Run(ran).score()
    values = {row["fault"]: float(row["contrast_boxes"]) for row in _rows("detectors", ran)}
    assert values == pytest.approx(
        {"clean": 100 * scores.score("E"), "fog": 100 * scores.by_corruption("E")["fog"],
         "mean (mCE)": 100 * scores.mean("E")}
    )  # fmt: skip


def test_prints_the_change_of_scenarios_by_dataset(ran: Path) -> None:
    assert "(toys)" in _table("scenarios", ran)
    with pytest.raises(InvalidOption, match="second run"):
        scenarios([Run(ran), Run(ran)], "trained")


def test_only_common_conditions_are_compared(ran: Path, tmp_path: Path) -> None:
    """A run under noise as well as fog is compared with one under fog over fog alone."""
    record = Run(ran).record
    for out, conditions in (("more", ["fog", "gaussian_noise"]), ("apart", ["gaussian_noise"])):
        asked = {"model": f"{MODELS}:sure_boxes", "data": record.dataset.spec, "engine": "local"}
        run(make_config({**asked, "out": str(tmp_path / out), "conditions": conditions}))
    rows = {row["fault"]: row for row in _rows("detectors", ran, tmp_path / "more")}
    assert set(rows) == {"clean", "fog", "mean (mCE)"}
    assert rows["mean (mCE)"]["sure_boxes"] == rows["fog"]["sure_boxes"]
    said = " ".join(_table("detectors", ran, tmp_path / "more").split())
    assert "Not in every run, so left out: gaussian_noise@1," in said
    (table,) = scenarios([Run(ran), Run(tmp_path / "more")], "trained")
    scores = Run(tmp_path / "more").score()
    change = scores.by_corruption("E")["fog"] - scores.score("E")
    assert [row[1] for row in table.rows if "sure_boxes" in str(row[0])] == [pytest.approx(100 * change)]
    assert table.note.startswith("Not in every run")
    with pytest.raises(InvalidOption, match="no corrupted condition in common"):
        detectors([Run(ran), Run(tmp_path / "apart")], "architecture")


@pytest.fixture(scope="module")
def met(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Runs of two detectors on one scene with a near person and a far one, under a few mutators."""
    folder = tmp_path_factory.mktemp("met")
    data = write_people(folder / "scene")
    conditions = [
        *("alpha_blend[alpha=0.1]", "alpha_blend[alpha=0.75]", "haze[beta=0.004]", "haze[beta=0.04]"),
        *("gaussian_blur[sigma=3]", "defocus[kappa=3.6,focus=1]"),
    ]
    for name in ("sharp", "soft"):
        asked = {"model": f"{__file__}:{name}", "data": data, "conditions": conditions, "engine": "local"}
        run(make_config({**asked, "out": str(folder / name)}))
    return [folder / "sharp", folder / "soft"]


def write_people(folder: Path) -> str:
    """Three images of one grey person each at 2 m and at 40 m, with depth."""
    for name in ("images", "depth"):
        (folder / name).mkdir(parents=True)
    records, annotations = [], []
    for i in range(3):
        pixels = np.full((48, 64, 3), 200, np.uint8)
        for k, x in enumerate((8, 40)):
            pixels[14:34, x : x + 10] = 20 + 10 * i
            annotations.append(
                {"id": 2 * i + k + 1, "image_id": i + 1, "category_id": 1, "iscrowd": 0, "area": 200,
                 "bbox": [x, 14, 10, 20]}
            )  # fmt: skip
        PIL.Image.fromarray(pixels).save(folder / "images" / f"{i}.png")
        np.save(
            folder / "depth" / f"{i}.npy", np.repeat(np.array([[NEAR, FAR]], np.float32), 32, 1).repeat(48, 0)
        )
        records.append({"id": i + 1, "file_name": f"{i}.png", "height": 48, "width": 64})
    content = {"images": records, "annotations": annotations, "categories": [{"id": 1, "name": "Person"}]}
    (folder / "people.json").write_text(json.dumps(content))
    return f"coco:{folder / 'people.json'},images={folder / 'images'},depth={folder / 'depth'}"


def sharp(images: Sequence[Image]) -> list[Prediction]:
    """Finds whoever is darker than 60 where people stand, surer the darker they are."""
    return [_seen(image, darker_than=60, score=lambda level: 1 - level / 255) for image in images]


def soft(images: Sequence[Image]) -> list[Prediction]:
    """Finds whoever is darker than 45, always as sure."""
    return [_seen(image, darker_than=45, score=lambda level: 0.9) for image in images]


def _seen(image: Image, *, darker_than: int, score: Callable[[int], float]) -> Prediction:
    levels = {x: int(image[24, x + 5, 0]) for x in (8, 40)}
    found = [(x, score(level)) for x, level in levels.items() if level < darker_than]
    boxes = np.array([[x, 14, x + 10, 34] for x, _ in found], float).reshape(-1, 4)
    return Prediction(boxes, np.array([sure for _, sure in found]), np.zeros(len(found), int))


def test_adr_is_absolute_and_relative_to_clean(met: list[Path]) -> None:
    said = _table("adr", *met)
    rows = {line.split("│")[1].strip(): line.split("│")[2:6] for line in said.splitlines() if "│" in line}
    assert [cell.strip() for cell in rows["clean"]] == ["100.0", "100.0", "100.0", "100.0"]
    # Three quarters of grey hide everybody, haze hides who is far. Whom it leaves is 34, 44 or 53 dark; soft
    # sees two of them, and the sensitivity that sharp was fixed at when clean, 40, leaves it one.
    assert [cell.strip() for cell in rows["alpha_blend[alpha=0.75]"]] == ["0.0", "0.0", "0.0", "0.0"]
    assert [cell.strip() for cell in rows["haze[beta=0.04]"]] == ["16.7", "16.7", "33.3", "33.3"]
    assert "3 images cannot show an FPPI below 0.33" in said
    scores = Run(met[0]).score()
    for row in _rows("adr", *met):
        assert float(row["sharp (%)"]) == 100 * scores.per_condition["ADR"][row["condition"]]


def test_curves_keep_the_sensitivities_of_clean_images(met: list[Path]) -> None:
    rows = [row for row in _rows("roc", met[0]) if row["condition"] == "haze[beta=0.04]"]
    assert len(rows) == 9
    assert [float(row["rate (%)"]) for row in rows] == pytest.approx([100 / 6] * 9)
    assert {float(row["FPPI reached"]) for row in rows} == {0.0}
    assert "cannot show an FPPI below" in _table("roc", met[0])


def test_people_are_found_by_severity_or_by_parameters(met: list[Path]) -> None:
    people = open_people(Run(met[0]))
    assert people.adr("haze@3") == people.adr("haze[beta=0.04]") < people.adr("haze@1")
    with pytest.raises(UnknownName, match=r"'haze@2'.*It has clean, .*haze\[beta=0\.04\]"):
        people.adr("haze@2")


def test_worst_images_name_who_is_lost(met: list[Path]) -> None:
    rows = [row for row in _rows("lost", met[0]) if row["condition"] == "haze[beta=0.04]"]
    assert [row["FPPI now"] for row in rows] == ["never found"] * 3
    assert {row["image"] for row in rows} == {"1", "2", "3"}
    assert all(row["condition"] != "clean" for row in _rows("lost", *met))


def test_contextual_scores_are_predicted_from_similar_corruptions(met: list[Path]) -> None:
    said = _table("contextual", *met)
    assert "defocus from gaussian_blur" in said
    assert "haze from alpha_blend" in said
    assert "haze[beta=0.04]" in said
    with pytest.raises(InvalidOption, match="2 systems"):
        contextual([Run(met[0])], "")


def test_the_picture_of_lost_people_marks_the_person_and_what_found_them(met: list[Path]) -> None:
    people = open_people(Run(met[0]))
    chosen = hardest(people, 4)
    assert len({one.id for _, one in chosen}) == len({text for text, _ in chosen}) == len(chosen) > 1
    assert [one.orders for _, one in chosen] == sorted((one.orders for _, one in chosen), reverse=True)
    assert all(one.before <= max(0.1, 1 / len(people.run.ids)) for _, one in chosen)  # usable when clean
    text, one = chosen[0]
    assert people.at("clean").finder(one.person) is not None
    assert people.at(text).finder(one.person) is None
    required = people.at(text).required_fppi(people.at("clean").curve)
    assert math.isinf(one.after)
    assert math.isinf(required[one.person])
    picture = lost_people(people, 1)
    assert picture is not None
    box, factor = people.at("clean").truth.boxes[one.person], math.ceil(720 / 64)
    x, y = round(factor * float(box[0])) - 4, round(factor * float(box[1] + box[3]) / 2)
    assert picture.getpixel((x, y)) == (40, 200, 70)
    assert lost_people(replace(people, found={"clean": people.at("clean")})) is None


def test_fitted_weights_are_drawn_beside_the_content_of_boxes(met: list[Path]) -> None:
    """pezzementi, Fig. 8: both distributions over the magnitudes of the simple mutator, in one figure."""
    people = [open_people(Run(folder)) for folder in met]
    rows = [row for figure in distributions(people) for row in figure.rows]
    drawn = {(row["panel"], row["series"], row["x"]): row["y"] for row in rows}
    inside, predicted = histograms(people[0]), predict_contextual(people)["haze"]
    for j, text in enumerate(predicted.contextual):
        for level, share in zip(levels("haze"), inside[text], strict=True):
            assert drawn[text, "share inside people's boxes", f"α {level:g}"] == share
        assert drawn[text, "weight of the fit", "α 0.1"] == predicted.overall[j, 0]
        assert drawn[text, "weight of the fit", "α 0.75"] == predicted.overall[j, 1]
    view = make_view([Run(folder).score() for folder in met])
    with_both = with_distributions(view, [Run(folder) for folder in met])
    added = {f.id for f in with_both.figures()} - {f.id for f in view.figures()}
    assert added == {"distributions-defocus", "distributions-haze"}


def named(name: str, images: int = 2000) -> Any:
    """A run that is only named."""
    return SimpleNamespace(record=SimpleNamespace(model=SimpleNamespace(name=name)), readable=range(images))


def test_the_observed_column_comes_before_the_predicted_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """And of the weights the largest are named, largest first."""
    made = Predicted(
        ("a", "b"), ("s1", "s2", "s3", "s4"), ("haze[beta=0.1]",), np.array([[0.8], [0.6]]),
        np.array([[0.75], [0.65]]), np.zeros((2, 1, 4)), np.array([[0.1, 0.6, 0.002, 0.3]]),
    )  # fmt: skip
    monkeypatch.setattr(paper_tables, "open_people", lambda run: run)
    monkeypatch.setattr(paper_tables, "predict_contextual", lambda runs: {"haze": made})
    (table,) = contextual([named("a"), named("b")], "")
    assert table.columns == ("condition", "a observed", "a predicted", "b observed", "b predicted", "weights")
    (row,) = table.rows
    assert row[1:5] == pytest.approx([80.0, 75.0, 60.0, 65.0])
    assert row[5] == "0.60 s2, 0.30 s4, 0.10 s1"


def test_a_corrupted_curve_is_read_at_the_thresholds_of_the_clean_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def curve(text: str) -> Any:
        """Its threshold for a rate is the rate plus 1 if clean, plus 2 if not."""
        more = 1 if text == "clean" else 2
        return SimpleNamespace(threshold_at=lambda rate: rate + more, at=lambda t: (t / 10, more + t))

    opened = SimpleNamespace(found=("clean", "fog@1"), curve=curve)
    monkeypatch.setattr(paper_tables, "open_people", lambda run: opened)
    rows = [row for row in roc([named("a")], "")[0].rows if row[1] == "fog@1"]
    for _, _, rate, found, fppi in rows:
        assert found == pytest.approx(100 * (rate + 1) / 10)  # type: ignore[operator]
        assert fppi == pytest.approx(2 + rate + 1)  # type: ignore[operator]


def test_a_thousand_images_reach_a_false_positive_in_a_thousand(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        paper_tables, "open_people", lambda run: SimpleNamespace(found=(), curve=lambda text: None)
    )
    assert roc([named("a", 1000)], "")[0].note == ""
    assert "1 of the 9 sensitivities" in roc([named("a", 999)], "")[0].note


def test_means_by_tag_are_over_the_runs_of_that_tag(ran: Path, tmp_path: Path) -> None:
    record = Run(ran).record
    for model, tag in (("sure_boxes", "oracle"), ("few_boxes", "other")):
        asked = {
            "model": f"{MODELS}:{model}",
            "data": record.dataset.spec,
            "engine": "local",
            "conditions": ["fog"],
        }
        run(make_config({**asked, "out": str(tmp_path / model), "tags": {"architecture": tag}}))
    rows = {
        row["fault"]: row for row in _rows("detectors", ran, tmp_path / "sure_boxes", tmp_path / "few_boxes")
    }
    for row in rows.values():
        own = [float(row[name]) for name in ("contrast_boxes", "sure_boxes", "few_boxes")]
        assert float(row["architecture oracle"]) == pytest.approx((own[0] + own[1]) / 2)
        assert float(row["architecture other"]) == pytest.approx(own[2])


def test_the_histogram_counts_every_person_once(met: list[Path]) -> None:
    said = _table("depth", met[0])
    rows = {line.split("│")[1].strip(): line.split("│")[2:-1] for line in said.splitlines() if "│" in line}
    # 1 − exp(−0.04·2 m) = 0.08 is nearest to 0.1, 1 − exp(−0.04·40 m) = 0.80 to 0.75.
    assert [int(cell) for cell in rows["haze[beta=0.04]"]] == [0, 50, 0, 0, 50]
    # 0.008 is next to nothing, 0.15 nearest to 0.1.
    assert [int(cell) for cell in rows["haze[beta=0.004]"]] == [50, 50, 0, 0, 0]
    # 3.6·|1 − 1/2| = 1.8 px is nearest to 2, 3.6·|1 − 1/40| = 3.5 px to 3.
    assert [int(cell) for cell in rows["defocus[focus=1,kappa=3.6]"]] == [0, 0, 0, 0, 50, 0, 50]


def test_a_table_that_does_not_fit_is_refused_by_name(ran: Path) -> None:
    for name, error, words in (
        ("ard", UnknownName, "Did you mean 'adr'"),
        ("adr", InvalidOption, "instances has no class of people"),
        ("alpha", InvalidOption, "was not run along α"),
    ):
        with pytest.raises(error, match=words):
            _table(name, ran)


def test_a_run_that_lacks_images_or_is_damaged_has_no_rates(met: list[Path], tmp_path: Path) -> None:
    """An image that was not run would count as one in which nobody was found."""
    run_folder = tmp_path / "sharp"
    shutil.copytree(met[0], run_folder)
    path = sorted((run_folder / "parts").iterdir())[0]
    key = Run(run_folder).record.key
    rows = [table for _, table in held_rows(path, key)]
    with writing_part(path, key) as part:
        for row in rows[:-1]:
            part.add(row)
    with pytest.raises(IncompleteGrid, match="1 of 7 conditions lack images"):
        _table("adr", run_folder)
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with pytest.raises(StoreError, match="is damaged"):
        _table("adr", run_folder)
