"""Key points and oriented boxes from images to the report, through the command line."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from typer.testing import CliRunner

import stormproof
from stormproof.cli import app
from stormproof.core.oriented import rotated_corners
from stormproof.results.run import Run

IMAGES, SIZE = 8, 96
MOVED = "elastic_transform@3[labels=moved]"
CONDITIONS = ("clean", "gaussian_noise@3", MOVED)
# The model answers the clean truth of the images in turn, farther beside it the more an image has changed.
MODEL = """
import numpy as np
from stormproof import open_dataset

TRUTH = open_dataset({data!r})
classes = TRUTH.classes
calls = 0

def nearly(images):
    global calls
    answers = []
    for image in images:
        sample = TRUTH[calls // {conditions}]
        objects, rng = sample.truth.instances, np.random.default_rng(calls)
        change = np.abs(image.astype(float) - sample.image).mean()
        off = rng.normal(0, 0.3 + change / 8, (len(objects), 1, 2))
        calls += 1
        data = objects.data[{form!r}].copy()
        data[..., :2] += off
        seen = slice(0 if calls == {conditions} else None)  # in one cell nothing
        answers.append({{"boxes": objects.boxes[seen], "scores": rng.uniform(0.5, 1, len(objects))[seen],
                         "labels": objects.labels[seen], {form!r}: data[seen]}})
    return answers
"""


def call(*arguments: object) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def write_set(root: Path, form: str) -> str:
    """A COCO file of people with joints, or of oriented boxes."""
    rng = np.random.default_rng(0)
    images, rows = [], []
    for i in range(1, IMAGES + 1):
        (root / "val").mkdir(parents=True, exist_ok=True)
        pixels = rng.integers(0, 255, (SIZE // 8, SIZE // 8, 3), np.uint8).repeat(8, 0).repeat(8, 1)
        PIL.Image.fromarray(pixels).save(root / f"val/{i}.png")
        images.append({"id": i, "file_name": f"{i}.png", "height": SIZE, "width": SIZE})
        for x, y in rng.uniform(8, 40, (2, 2)):
            row = {"id": len(rows) + 1, "image_id": i, "category_id": 1, "iscrowd": 0,
                   "bbox": [x, y, 40, 48], "area": 1000.0}  # fmt: skip
            if form == "points":
                places = rng.uniform((x, y), (x + 40, y + 48), (17, 2))
                row["keypoints"] = np.hstack([places, np.full((17, 1), 2.0)]).ravel().tolist()
                row["num_keypoints"] = 17
            else:
                corners = rotated_corners(np.array([[x + 20, y + 24, 40, 12, rng.uniform(0, 3)]]))[0]
                row["poly"] = corners.ravel().tolist()
            rows.append(row)
    content = {"images": images, "annotations": rows, "categories": [{"id": 1, "name": "person"}]}
    (root / "objects_val.json").write_text(json.dumps(content))
    return f"coco:{root}/objects_val.json,masks=false"


@pytest.fixture(scope="module", params=["points", "corners"])
def made(request, tmp_path_factory) -> tuple[str, Path]:
    root = tmp_path_factory.mktemp(request.param)
    data = write_set(root, request.param)
    (root / "near.py").write_text(MODEL.format(data=data, conditions=len(CONDITIONS), form=request.param))
    asked = [word for text in CONDITIONS for word in ("-c", text)]
    given = ("--model", f"{root}/near.py:nearly", "--data", data, "--engine", "local")
    call("run", *given, *asked, "--out", root / "run")
    return request.param, root / "run"


HEADLINES = {"points": "OKS AP", "corners": "oriented AP"}


def test_the_run_is_reported_in_its_task(made: tuple[str, Path]) -> None:
    form, folder = made
    scores = Run(folder).score()
    headline = HEADLINES[form]
    assert scores.headline == headline
    clean, noisy, moved = (scores.per_condition[headline][text] for text in CONDITIONS)
    assert clean > noisy
    assert {"points": "PCK", "corners": "oriented VOC07 AP50"}[form] in scores.per_condition
    assert moved < clean  # the truth moved and the answers did not
    printed = call("score", folder, "--interval")
    assert headline in printed


def test_the_gate_judges_the_measure_of_the_task(made: tuple[str, Path], tmp_path: Path) -> None:
    form, folder = made
    (tmp_path / "require.yaml").write_text(
        f"requirements:\n- {{id: R1, metric: {HEADLINES[form]}, condition: clean, at_least: 0.1}}\n"
    )
    result = CliRunner().invoke(app, ["check", str(folder), "--require", str(tmp_path / "require.yaml")])
    assert "R1" in result.output
    assert result.exit_code in (0, 3), result.output  # eight images may be too few to say


def test_the_report_draws_the_objects_of_the_task(made: tuple[str, Path], tmp_path: Path) -> None:
    form, folder = made
    call("report", folder, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert HEADLINES[form] in page


def test_exported_results_score_the_same(made: tuple[str, Path], tmp_path: Path) -> None:
    form, folder = made
    call("export", folder, "--out", tmp_path / "results")
    data = Run(folder).record.dataset.spec
    given = ("--model", f"results:{tmp_path}/results", "--data", data, "--engine", "local")
    call("run", *given, "-c", "clean", "-c", "gaussian_noise@3", "--out", tmp_path / "again")
    ours, again = Run(folder).score().per_condition, Run(tmp_path / "again").score().per_condition
    for measure in (HEADLINES[form], "AP"):
        same = again[measure]["gaussian_noise@3"]
        assert same == pytest.approx(ours[measure]["gaussian_noise@3"], abs=1e-12)
    if form == "points":
        with contextlib.redirect_stdout(io.StringIO()):
            truth = COCO(str(folder.parent / "objects_val.json"))
            truth.dataset["info"] = {}
            run = COCOeval(truth, truth.loadRes(str(tmp_path / "results/gaussian_noise@3.json")), "keypoints")
            run.evaluate()
            run.accumulate()
            run.summarize()
        assert ours["OKS AP"]["gaussian_noise@3"] == pytest.approx(run.stats[0], abs=1e-12)


def test_explore_draws_them_and_says_that_boxes_are_matched(made: tuple[str, Path]) -> None:
    pytest.importorskip("starlette")
    from stormproof.core.condition import Condition
    from stormproof.explore.desk import Desk
    from stormproof.explore.subject import explore_runs
    from stormproof.report.imagery import outline_object

    form, folder = made
    run = Run(folder)
    seen = Desk(explore_runs([folder])).look(3, Condition.parse("gaussian_noise@3"), lambda: None)
    assert seen["carried"] == [{"points": "key points", "corners": "oriented boxes"}[form]]
    stored = run.predictions("gaussian_noise@3")[run.ids[3]]
    drawn = {thing["outline"] for thing in seen["subjects"][0]["found"]}
    assert drawn == {outline_object(stored, k, 1.0)["outline"] for k in range(len(stored))}
    assert all(thing["outline"].startswith("M") for thing in seen["truth"])


def test_the_task_decides_when_an_object_counts_as_found(made: tuple[str, Path]) -> None:
    """The boxes that the model answers are the true ones: by boxes, noise would lose no object."""
    form, folder = made
    rates = Run(folder).detection_rates("size", min_score=0.0, replicates=50)
    (clean,), (noisy,) = rates.rate("clean"), rates.rate("gaussian_noise@3")
    assert noisy < clean
    printed = call("score", folder, "--by", "size")
    assert {"points": "Found: OKS 0.5", "corners": "Found: oriented IoU 0.5"}[form] in printed


def test_pixels_are_not_printed_as_a_percentage(made: tuple[str, Path]) -> None:
    form, folder = made
    if form == "points":
        printed = " ".join(call("score", folder, "--measure", "joint offset px").split())
        sentence = printed[: printed.index("clean)")]
        assert "joint offset px of" in sentence
        assert "%" not in sentence


def test_training_is_watched_in_the_measure_of_the_task(made: tuple[str, Path]) -> None:
    form, folder = made
    shape = {"points": (1, 17, 3), "corners": (1, 4, 2)}[form]
    answer = {"boxes": [[8, 8, 48, 56]], "scores": [0.9], "labels": [0], form: np.full(shape, 20.0)}

    def predict(images):
        return [answer for _ in images]

    predict.classes = ("person",)
    watch = stormproof.watch(Run(folder).dataset, ["gaussian_noise@3"], precision=0, limit=2)
    reading = watch(1, predict)
    assert reading.measure == HEADLINES[form]
