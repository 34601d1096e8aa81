"""Mistakes on the command line: each ends with the reason and the nearest fix, and writes nothing."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from helpers.fake_models import MODELS
from helpers.scenes import write_scene
from stormproof.cli import app
from stormproof.core.errors import StormproofError

RUN = (
    "run",
    "--data",
    "DATA",
    "--model",
    "mine.py:brightness_boxes",
    "-c",
    "contrast@4",
    "--engine",
    "local",
)


def data(spec: str) -> tuple[str, ...]:
    return (*RUN[:2], spec, *RUN[3:], "-o", "x")


def model(spec: str, out: str = "x") -> tuple[str, ...]:
    return (*RUN[:4], spec, *RUN[5:], "-o", out)


def conditions(text: str) -> tuple[str, ...]:
    return (*RUN[:6], text, "-o", "x")


MISTAKES: dict[str, tuple[tuple[str, ...], str]] = {
    "dataset for model": (model("DATA"), "swapped?"),
    "model for dataset": (data("onnx:a.onnx"), "onnx: is a kind of model"),
    "script for dataset": (data("mine.py:f"), "were --model and --data swapped?"),
    "folder without kind": (data("coco/images"), "write images:coco/images"),
    "file that may be of several kinds": (model("a.pt"), "write torch:a.pt"),
    "file of YOLO": (model("yolo11n.pt"), "write ultralytics:yolo11n.pt,trust=true"),
    "TensorRT engine": (model("a.engine"), "a tensorrt engine, which fits one gpu, which is not supported"),
    "Caffe model as torch": (model("torch:a.caffemodel"), "convert it with caffe2onnx"),
    "network under another kind": (model("torch:a.onnx"), "write onnx:a.onnx"),
    "script without function": (model("mine.py"), "write mine.py:function"),
    "images folder": (data("coco:coco/instances.json,images=/nowhere"), "images=/nowhere: no such"),
    "misspelt images": (data("coco:coco/instances.json,image=a"), "did you mean 'images'?"),
    "misspelt kind": (data("cocco:coco/instances.json"), "did you mean 'coco'?"),
    "missing annotations": (data("coco:coco/instance.json"), "did you mean coco/instances.json"),
    "missing function": (model("mine.py:brightnes_boxes"), "brightness_boxes"),
    "missing script": (model("mien.py:f"), "mien.py"),
    "no conditions": ((*RUN[:5], "-o", "x"), "no conditions given"),
    "misspelt corruption": (conditions("fogg@3"), "did you mean 'fog'?"),
    "severity of 7": (conditions("fog@7"), "from 1 to 5"),
    "no folder": (RUN, "out is missing (--out)"),
    "folder below /": ((*RUN, "-o", "/nowhere/x"), "create /nowhere first"),
    "no workers": ((*RUN, "-o", "x", "--workers", "-1"), "at least 0"),
    "unknown engine": ((*RUN[:7], "-o", "x", "--engine", "gpu"), "there are local, feed, pool, ray, slurm."),
    "misspelt flag": ((*RUN, "--ot", "x"), "--out"),
    "model without dataset": (("run", "a.onnx"), "give a model, a dataset and perhaps the folder"),
    "model twice": (("run", "a.onnx", "val.json", "--model", "b.onnx"), "or --model and --data"),
    "misspelt verb": (("rnu",), "did you mean 'run'?"),
    "inspect a folder without kind": (("inspect", "coco/images"), "write images:coco/images"),
    "inspect a Keras model": (("inspect", "a.keras"), "tf2onnx.convert --keras a.keras"),
    "inspect a run": (("inspect", "done"), "stormproof show done"),
    "tune without labels": (("inspect", "onnx:a.onnx", "--tune"), "--data"),
    "tune a dataset": (("inspect", "DATA", "--tune"), "is a dataset"),
    "score of nothing": (("score", "runs/nowhere"), "runs/nowhere"),
    "score of a folder": (("score", "coco"), "coco"),
    "misspelt measure": (("score", "done", "--measure", "ap5O"), "did you mean 'ap50'?"),
    "page below /": (("report", "done", "--out", "/nowhere/x.html"), "create /nowhere first"),
    "misspelt requirement": (("check", "done", "--require", "wrong.yaml"), "did you mean 'mpc'?"),
    "another model": (model("mine.py:thresholds", out="done"), "done"),
    "layout as format": (("world", "--format", "coco", "-o", "x"), "'--format'"),
    "JSON of a model": (("inspect", "mine.py:brightness_boxes", "--json"), "is a model"),
    "JSON of a paper's table": (("score", "done", "--table", "adr", "--json"), "leave out --json"),
    "truth as PNG": (("export", "done", "--truth", "--format", "png"), "leave out --format png"),
    "baseline of no evidence": (("verify", "done", "--against", "done"), "with --evidence"),
    "summary in no folder": (
        ("check", "done", "--require", "right.yaml", "--summary", "no/s.md"), "cannot write no/s.md",
    ),
    "copies of nothing": (("corrupt", "coco/images", "copies"), "no conditions given"),
}  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a dataset, a script of models, a run and a file of requirements."""
    root = tmp_path_factory.mktemp("mistakes")
    write_scene(root / "coco", images=4)
    shutil.copy(MODELS, root / "mine.py")
    (root / "wrong.yaml").write_text("requirements:\n  - {id: R1, metric: mpc, at_least: 0.1}\n")
    (root / "right.yaml").write_text(
        "requirements:\n  - {id: R1, metric: AP, condition: clean, at_least: 0.1}\n"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        assert call(*RUN, "-o", "done")[0] == 0
    return root


def call(*arguments: str) -> tuple[int, str]:
    data = "coco:coco/instances.json,images=coco/images"
    result = CliRunner().invoke(app, [data if one == "DATA" else one for one in arguments])
    error = result.exception
    if isinstance(error, StormproofError):
        return 2, f"error: {error}"  # as `main` prints it
    if error is not None and not isinstance(error, SystemExit):
        raise error
    return result.exit_code, result.output


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_gets_the_right_hint(place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.chdir(place)
    before = {*place.iterdir()}
    arguments, words = MISTAKES[name]
    code, said = call(*arguments)
    assert code == 2
    assert words in " ".join(said.lower().replace("│", " ").split()), said
    assert "traceback" not in said.lower()
    assert "continue with" not in said.lower()
    assert {*place.iterdir()} == before


def test_a_run_takes_files_by_position(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_scene(tmp_path / "coco", images=2)
    shutil.copy(MODELS, tmp_path / "mine.py")
    files = ("mine.py:brightness_boxes", "coco/instances.json", "coco/images")
    assert call("run", *files, "-c", "contrast@4", "--engine", "local")[0] == 0
    record = json.loads((tmp_path / "runs" / "brightness_boxes" / "run.json").read_text())
    assert record["dataset"]["spec"] == "coco:coco/instances.json,images=coco/images"
    plan = call("run", *files, "--out", "other", "--dry-run")[1]
    assert "152, of which 152 are left" in plan  # two images, clean and under imagenet-c


def test_a_submission_does_not_overwrite_the_json_of_a_report(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(place)
    (place / "done.json").write_text("{}")  # as 'report done --out done.html' leaves it
    assert call("submit", "done") == (0, "done.submission.json\n")
