"""Real networks on real photographs, through the command line alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from helpers.typed import stormproof


def call(*arguments: object) -> str:
    done = stormproof(*arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_a_detector_scores_lower_under_noise(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    out = tmp_path / "yolox"
    call("run", "--model", f"onnx:{shared}/models/yolox_nano_416_coco.onnx", "--benchmark", "coco-c",
         "--root", shared / "data" / "coco", "--limit", 6, "--out", out, "--dry-run")  # fmt: skip
    call("run", "--model", f"onnx:{shared}/models/yolox_nano_416_coco.onnx", "--data",
         f"coco:{shared}/data/coco/instances_val2017.json", "--limit", 24, "--out", out,
         "--conditions", "gaussian_noise@1,gaussian_noise@3,gaussian_noise@5")  # fmt: skip
    scores = json.loads(call("score", out, "--json"))
    clean = scores["scores"]["AP50"]["clean"]
    assert 0.3 < clean < 0.7
    assert scores["aggregates"]["AP50"]["mean"] < 0.8 * clean
    levels = [scores["scores"]["AP50"][f"gaussian_noise@{s}"] for s in (1, 3, 5)]
    assert levels == sorted(levels, reverse=True)


@pytest.mark.slow
def test_a_segmenter_scores_lower_in_fog(shared: Path, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    out = tmp_path / "deeplab"
    call("run", "--model", f"onnx:{shared}/models/deeplab_edgetpuslim_513_cityscapes_qdq.onnx", "--data",
         f"camvid:{shared}/data/camvid", "--limit", 6, "--out", out, "--conditions", "fog@3",
         "--engine", "local")  # fmt: skip
    scores = json.loads(call("score", out, "--json"))["scores"]["mIoU"]
    assert 0.4 < scores["clean"] < 0.7
    assert scores["fog@3"] < scores["clean"]
