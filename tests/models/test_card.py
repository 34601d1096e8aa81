"""Cards: what is written, what is guessed, what is usual, and what is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from stormproof.core.errors import ModelError
from stormproof.models.card import complete_card, read_card

GUESS = {
    "decoder": "yolox",
    "input": {"size": (416, 416), "layout": "NCHW", "dtype": "float32"},
    "classes": "coco80",
}


def test_a_card_overrides_the_guess_and_the_guess_the_default() -> None:
    card = complete_card(GUESS, {"input": {"pad": 0}, "score": 0.1}, "card")
    assert card.input.pad == 0
    assert card.input.align == "top-left"  # usual for YOLOX
    assert card.input.size == (416, 416)
    assert card.limits.iou == 0.65
    assert card.score == 0.1


def test_networks_with_byte_inputs_are_not_normalised() -> None:
    guess = {"decoder": "postprocessed", "input": {"size": (3, 3), "dtype": "uint8"}}
    assert complete_card(guess, {}, "card").input.std == (1.0, 1.0, 1.0)


def test_an_export_with_a_fixed_size_stretches_images() -> None:
    assert complete_card({"decoder": "torchvision", "input": {}}, {}, "card").input.resize == "none"
    fixed = {"decoder": "torchvision", "input": {"size": (64, 64)}}
    assert complete_card(fixed, {}, "card").input.resize == "stretch"


def test_reads_short_forms() -> None:
    card = complete_card({}, {"decoder": "boxes", "input": {"size": 320, "mean": 127.5, "std": 2}}, "card")
    assert card.input.size == (320, 320)
    assert card.input.mean == (127.5, 127.5, 127.5)


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ({"colour": "RGB"}, "colour: Extra inputs are not permitted"),
        ({"input": {"chanels": "RGB"}}, "input.chanels: Extra inputs"),
        ({"input": {"channels": "GBR"}}, "input.channels"),
        ({"input": {"std": 0}}, "std must not be 0"),
        ({"input": {"pad": 300}}, "input.pad"),
        ({"input": "RGB"}, "indented keys"),
        ({"decoder": "yolo-x"}, "Did you mean 'yolox'"),
        ({"options": {"stride": [8]}}, "stride"),
        ({"options": {"strides": "eight"}}, "strides"),
        ({"score": 2}, "score"),
        ({"keep": 0}, "keep"),
    ],
)
def test_says_what_is_wrong_with_a_card(card, said: str) -> None:
    with pytest.raises(ModelError, match=said) as error:
        complete_card(GUESS, card, "my.yaml")
    assert "my.yaml" in str(error.value)


def test_asks_for_what_cannot_be_inferred() -> None:
    with pytest.raises(ModelError, match="decoder:"):
        complete_card({"input": {"size": (3, 3)}}, {}, "x.onnx")
    with pytest.raises(ModelError, match=r"any size.*--fix"):
        complete_card({}, {"decoder": "yolov8"}, "x.onnx")


def test_the_card_beside_the_model_is_found(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text("decoder: yolox\n")
    assert read_card(tmp_path / "net.onnx", None) == ({"decoder": "yolox"}, tmp_path / "net.yaml")
    assert read_card(tmp_path / "other.onnx", None) == ({}, None)


def test_yaml_cannot_run_code(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text("!!python/object/apply:os.system ['true']\n")
    with pytest.raises(ModelError, match="is not YAML"):
        read_card(tmp_path / "net.onnx", None)
    (tmp_path / "list.yaml").write_text("- a\n")
    with pytest.raises(ModelError, match="mapping"):
        read_card(tmp_path / "net.onnx", str(tmp_path / "list.yaml"))
    with pytest.raises(ModelError, match="no such file"):
        read_card(tmp_path / "net.onnx", str(tmp_path / "missing.yaml"))
