"""A panoptic run from images to its report: the world with built-in networks, COCO with real ones."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from hotcoco import panoptic as hotcoco
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results import verdicts
from stormproof.results.run import Run
from stormproof.results.worst import image_measure

MOVED = "elastic_transform@3[labels=moved]"
CARDS = Path(__file__).parents[1] / "models" / "cards"
GROUPS = {"All": "", "Things": " things", "Stuff": " stuff"}
TRUE = """
import numpy as np
from stormproof import open_dataset

TRUTH = open_dataset({data!r})
classes = semantic_classes = TRUTH.semantic_classes
calls = 0

def almost(images):
    '''The clean truth of the images in turn, each under its conditions, its left edge cut off.'''
    global calls
    found = []
    for image in images:
        truth = TRUTH.truth(calls // {conditions})
        calls += 1
        ids = truth.panoptic.copy()
        ids[:, : ids.shape[1] // 8] = 0
        known, first = np.unique(truth.panoptic, return_index=True)
        labels = dict(zip(known.tolist(), np.ravel(truth.semantic.labels)[first].tolist()))
        found.append({{"panoptic": ids, "segments": {{k: v for k, v in labels.items() if k}}}})
    return found
"""

HALVES = """
import numpy as np

classes, semantic_classes = (), ("sky", "road")

def halves(images):
    planes = [np.where(np.abs(image.mean(axis=2) - 127) < 20, 0, 2) for image in images]
    for plane in planes:
        plane[: int(0.45 * len(plane))] //= 2
    return [{"panoptic": plane, "segments": {1: 0, 2: 1}} for plane in planes]
"""


def call(*arguments: object) -> str:
    shown = CliRunner().invoke(app, [*map(str, arguments)], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return shown.output


@pytest.fixture(scope="module")
def street(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four scenes, clean and moved; the model knows where everything was before it moved."""
    folder = tmp_path_factory.mktemp("panoptic")
    data = "world:val,count=4,size=128x80"
    (folder / "net.py").write_text(TRUE.format(data=data, conditions=2))
    summary = run(make_config({
        "model": f"{folder}/net.py:almost", "data": data, "conditions": [MOVED],
        "out": str(folder / "run"), "engine": "local", "batch": 1,
    }))  # fmt: skip
    assert summary.complete, summary.failures
    return folder / "run"


def test_truth_moves_with_the_pixels(street: Path) -> None:
    scores = Run(street).score(interval=True)
    assert scores.headline == "PQ"
    assert image_measure(scores) == "PQ"
    assert "AP" not in scores.per_condition  # the model gives maps alone
    clean, moved = (scores.per_condition["PQ"][text] for text in ("clean", MOVED))
    assert 0.6 < clean < 1
    assert moved < clean - 0.02  # elastic deformation is small, but the truth did move
    assert scores.per_condition["PQ stuff"]["clean"] > 0.8
    interval = scores.interval("clean", "PQ")
    assert interval.low < clean < interval.high
    by_class = scores.per_class["PQ"]["clean"]
    assert np.nanmean([*by_class.values()]) == pytest.approx(clean)
    assert {*by_class} >= {"road", "car", "person"}


def test_stored_predictions_equal_the_models(street: Path) -> None:
    found = Run(street).predictions("clean")
    assert len(found) == 4
    for index, each in enumerate(found.values()):
        truth = Run(street).dataset.truth(index)
        assert each.panoptic is not None
        inside = slice(each.panoptic.shape[1] // 8, None)
        assert ((each.panoptic == 0) == (truth.panoptic == 0))[:, inside].all()
        assert not each.panoptic[:, : inside.start].any()


def test_exported_files_score_the_same_elsewhere(street: Path, tmp_path: Path) -> None:
    """hotcoco's port of panopticapi on the exported truth and predictions; and the export, run again."""
    call("export", street, "--format", "panoptic", "--out", tmp_path / "said")
    call("export", street, "--format", "panoptic", "--truth", "--out", tmp_path / "true")
    scores = Run(street).score(classes="all")
    for text in scores.conditions:
        files = [tmp_path / kind / f"{text}.json" for kind in ("true", "said")]
        theirs = hotcoco.pq_compute(*(numbered(file) for file in files))
        for group, words in GROUPS.items():
            for kind in ("pq", "sq", "rq"):
                ours = scores.per_condition[f"{kind.upper()}{words}"][text]
                assert ours == pytest.approx(theirs[group][kind], abs=1e-12)
    again = tmp_path / "again"
    run(make_config({
        "model": f"results:{tmp_path / 'said'}", "data": "world:val,count=4,size=128x80",
        "out": str(again), "engine": "local",
    }))  # fmt: skip
    assert Run(again).score(classes="all").per_condition["PQ"] == pytest.approx(
        scores.per_condition["PQ"], abs=1e-12
    )


def numbered(path: Path) -> str:
    """A copy of a panoptic file whose image ids are numbers, which hotcoco wants."""
    content = json.loads(path.read_text())
    for k, row in enumerate(content["annotations"], 1):
        row["image_id"] = k
    copy = path.parent.with_name(f"{path.parent.name}-{path.name}")
    copy.write_text(json.dumps(content))
    copy.with_suffix("").symlink_to(path.with_suffix(""))
    return str(copy)


@pytest.mark.slow
def test_an_estimate_to_a_precision_is_near_the_full_grid(tmp_path: Path) -> None:
    """The model sees sky above and road below, and nothing where fog has made the image grey."""
    (tmp_path / "net.py").write_text(HALVES)
    asked = ["--model", f"{tmp_path}/net.py:halves", "--data", "world:val,count=40,size=96x60",
             "--conditions", "fog,contrast", "--engine", "local", "--out", tmp_path / "run"]  # fmt: skip
    shown = call("run", *asked, "--precision", 2)
    assert "ESTIMATE" in shown
    kept = json.loads((tmp_path / "run" / "estimate.json").read_text())
    assert kept["shares"] < 40
    call("run", *asked)  # completes the grid
    scores = Run(tmp_path / "run").score()
    assert scores.headline == "PQ"
    low, high = kept["mpc"]["low"], kept["mpc"]["high"]
    assert high - low <= 0.04
    assert low - 1e-3 <= scores.mean("PQ") <= high + 1e-3  # hardly anything is matched


@pytest.mark.slow
def test_a_run_is_scored_reported_and_checked(
    street: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verdicts, "FEWEST", 2)  # a user's run needs more images
    shown = call("score", street, "--all")
    assert re.search(r"PQ things +│", shown)
    assert "PQ by corruption and severity" in shown
    call("report", street, "--out", tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "PQ (%)" in page
    needs = tmp_path / "needs.yaml"
    needs.write_text("requirements:\n  - {id: R1, metric: PQ, condition: clean, at_least: 0.5}\n")
    few = CliRunner().invoke(app, ["check", str(street), "--require", str(needs)])
    assert few.exit_code == 3
    assert "the interval of PQ over 12 classes is calibrated from 300 images on" in " ".join(
        few.output.split()
    )
    needs.write_text("requirements:\n  - {id: R2, metric: PQ things, condition: clean, at_least: 1.0}\n")
    assert CliRunner().invoke(app, ["check", str(street), "--require", str(needs)]).exit_code != 0


@pytest.mark.slow
def test_built_in_networks_are_merged_into_panoptic_maps(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    pytest.importorskip("stormproof_networks", reason="needs stormproof-networks")
    model = "panoptic:builtin:street-masks,semantic=builtin:street-context"
    call("run", "--model", model, "--data", "world:val,count=4", "--conditions", "fog@3",
         "--engine", "local", "--out", tmp_path / "run")  # fmt: skip
    scores = Run(tmp_path / "run").score().per_condition
    assert scores["PQ"]["clean"] > 0.45
    assert scores["PQ"]["fog@3"] < 0.75 * scores["PQ"]["clean"]
    assert {"AP", "mask AP", "mIoU", "PQ things"} <= {*scores}


REAL = """
import numpy as np
from stormproof import open_model
from stormproof.core.masks import mask_boxes
from stormproof.core.sample import RLE, Prediction
from stormproof.models.classes import match_classes

DETECTOR, SEGMENTER = (
    open_model(f"onnx:{models}/{{name}}.onnx,card={cards}/{{name}}.yaml")
    for name in ("yolox_nano_416_coco", "deeplabv3_mnv2_513_voc_qdq")
)
classes = DETECTOR.classes
REGION = match_classes(classes, SEGMENTER.semantic_classes).labels

def things(images):
    '''The boxes of a detector, cut out of the map of a segmenter where it knows the class.'''
    answers = []
    for found, area in zip(DETECTOR(images), SEGMENTER(images)):
        kept, masks = [], []
        for k, (x1, y1, x2, y2) in enumerate(found.boxes.round().astype(int).tolist()):
            mask = np.zeros(area.semantic.shape, bool)
            mask[max(y1, 0):y2, max(x1, 0):x2] = True
            if REGION[found.labels[k]] >= 0:
                mask &= area.semantic == REGION[found.labels[k]]
            if mask.any():
                kept.append(k)
                masks.append(RLE.from_mask(mask))
        answers.append(Prediction(mask_boxes(masks), found.scores[kept], found.labels[kept], tuple(masks)))
    return answers
"""
STUFF = """
classes: cityscapes19
rename: {sky: sky-other-merged, vegetation: tree-merged, building: building-other-merged,
         sidewalk: pavement-merged, wall: wall-other-merged, fence: fence-merged, terrain: grass-merged}
input: {size: 513, layout: NHWC, dtype: uint8, channels: RGB, resize: stretch}
decoder: argmax
"""


@pytest.mark.slow
def test_merged_real_networks_score_on_coco_as_elsewhere(shared: Path, tmp_path: Path) -> None:
    """Networks that nobody made for this, merged, on COCO's panoptic truth: the same scores as elsewhere."""
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    (tmp_path / "things.py").write_text(REAL.format(models=shared / "models", cards=CARDS))
    (tmp_path / "stuff.yaml").write_text(STUFF)
    network = f"onnx:{shared}/models/deeplab_edgetpuslim_513_cityscapes_qdq.onnx"
    call("run", "--model",
         f"panoptic:{tmp_path}/things.py:things,semantic={network}\\,card={tmp_path}/stuff.yaml,score=0.3",
         "--data", f"panoptic:{shared}/data/coco_panoptic/panoptic_val2017.json", "--limit", 4,
         "--conditions", f"fog@3,{MOVED}", "--out", tmp_path / "run",
         "--engine", "local")  # fmt: skip
    call("export", tmp_path / "run", "--format", "panoptic", "--out", tmp_path / "said")
    call("export", tmp_path / "run", "--format", "panoptic", "--truth", "--out", tmp_path / "true")
    scores = Run(tmp_path / "run").score(classes="all")
    assert len(scores.conditions) == 3
    assert scores.per_condition["PQ"]["clean"] > 0.02
    for text in scores.conditions:
        true = tmp_path / "true" / f"{text}.json"
        true = true if true.exists() else tmp_path / "true" / "clean.json"
        theirs = hotcoco.pq_compute(str(true), str(tmp_path / "said" / f"{text}.json"))
        for group, words in GROUPS.items():
            for kind in ("pq", "sq", "rq"):
                ours = scores.per_condition[f"{kind.upper()}{words}"][text]
                assert ours == pytest.approx(theirs[group][kind], abs=1e-12)
