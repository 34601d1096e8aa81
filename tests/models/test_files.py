"""Files without a kind: opened where only one kind can be meant, explained where none can."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import stormproof as sp
from stormproof import datasets, models
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, ModelError, StormproofError

TRUTH = {
    "images": [{"id": 1, "file_name": "1.png", "height": 4, "width": 4}],
    "categories": [{"id": 1, "name": "cat"}],
    "annotations": [],
}


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("net.onnx", "onnx:net.onnx"),
        ("zoo/NET.ONNX,classes=coco80", "onnx:zoo/NET.ONNX,classes=coco80"),
        ("net.tflite", "tflite:net.tflite"),
        ("onnx:net.onnx", "onnx:net.onnx"),
        ("mine.py:detect", "mine.py:detect"),
        ("http://host/net.onnx", "http://host/net.onnx"),
    ],
)
def test_finds_the_kind_of_a_model_file(text: str, full: str) -> None:
    assert models.full_spec(text) == full


@pytest.mark.parametrize("name", ["a.pt", "a.pth", "a.safetensors", "a.json", "a.py"])
def test_files_that_may_be_of_several_kinds_are_refused(name: str) -> None:
    with pytest.raises(InvalidOption, match="names a file but not its kind; write "):
        models.load_model(name)


@pytest.mark.parametrize(
    "name", ["a.caffemodel", "a.engine", "a.mlmodel", "a.pb", "a.h5", "a.pdmodel", "a.ckpt"]
)
@pytest.mark.parametrize("kind", ["", "onnx:", "torch:", "tflite:", "results:"])
def test_other_formats_say_how_to_convert_them(name: str, kind: str) -> None:
    with pytest.raises(ModelError, match=r"which is not supported; .*or call it from a Python function"):
        models.load_model(f"{kind}{name}")


def test_an_engine_of_ultralytics_is_left_to_ultralytics() -> None:
    with pytest.raises(StormproofError) as error:
        models.load_model("ultralytics:nowhere.engine")
    assert "not supported" not in str(error.value)


def test_a_network_of_tensorflow_js_is_not_taken_for_results(tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text(json.dumps({"modelTopology": {}, "weightsManifest": []}))
    for spec in (f"results:{tmp_path}/model.json", f"{tmp_path}/model.json"):
        with pytest.raises(ModelError, match=r"TensorFlow\.js"):
            models.load_model(spec)
    result = CliRunner().invoke(app, ["inspect", f"{tmp_path}/model.json"])
    assert "TensorFlow.js" in str(result.exception)


@pytest.mark.parametrize("name", ["9" * 5000, "a/" * 2040 + "b"])
def test_a_name_too_long_for_any_file_is_refused(name: str) -> None:
    with pytest.raises(StormproofError):
        models.load_model(f"onnx:{name}")


def test_a_saved_model_names_the_command(tmp_path: Path) -> None:
    (tmp_path / "net").mkdir()
    (tmp_path / "net/saved_model.pb").touch()
    with pytest.raises(ModelError, match=r"tf2onnx\.convert --saved-model"):
        models.load_model(str(tmp_path / "net"))


def test_annotations_without_a_kind_are_coco(tmp_path: Path) -> None:
    (tmp_path / "val.json").write_text(json.dumps(TRUTH))
    assert datasets.read_dataset(f"{tmp_path}/val.json").classes == ("cat",)
    assert sp.open_dataset(f"{tmp_path}/val.json").ids == ("1",)
    assert datasets.full_spec("panoptic_val.json") == "panoptic:panoptic_val.json"
    result = CliRunner().invoke(app, ["inspect", f"{tmp_path}/val.json"])
    assert f"is opened as coco:{tmp_path}/val.json" in result.stderr
    with pytest.raises(InvalidOption, match="names a folder but not its kind"):
        datasets.read_dataset(str(tmp_path))


def test_a_positional_model_goes_with_a_dataset_by_option() -> None:
    result = CliRunner().invoke(app, ["run", "hog:people", "--data", "world:val,count=1", "--dry-run"])
    assert result.exit_code == 0, result.output
