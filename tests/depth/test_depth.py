"""Networks, priors and the sky of one image."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from helpers.depth_scene import scene, thinned
from stormproof.core.errors import (
    InvalidOption,
    MissingContext,
    MissingExtra,
    ModelError,
    UnknownName,
)
from stormproof.core.sample import Sample, SemanticMap, Truth
from stormproof.depth.estimate import FromModel
from stormproof.depth.monocular import DepthModel, scale_to_metres
from stormproof.depth.priors import Region, put_priors, read_priors
from stormproof.depth.sky import find_sky


def _network(path: Path, values: str, shape: Sequence[int | str] = (1, 3, "h", "w")) -> Path:
    """A network that answers the mean of the channels, or its negative."""
    onnx = pytest.importorskip("onnx")
    make = onnx.helper
    entry = make.make_tensor_value_info("image", onnx.TensorProto.FLOAT, shape)
    answer = make.make_tensor_value_info("depth", onnx.TensorProto.FLOAT, [1, 1, "h", "w"])
    axes = make.make_tensor("axes", onnx.TensorProto.INT64, [1], [1])
    shift = make.make_tensor("shift", onnx.TensorProto.FLOAT, [1], [5.0 if values == "metres" else -9.0])
    nodes = [
        make.make_node("ReduceMean", ["image", "axes"], ["mean"], keepdims=1),
        make.make_node("Add", ["mean", "shift"], ["depth"]),
    ]
    graph = make.make_graph(nodes, "depth", [entry], [answer], [axes, shift])
    onnx.save(make.make_model(graph, opset_imports=[make.make_opsetid("", 18)], ir_version=9), path)
    return path


def test_a_network_gives_depth_for_every_pixel(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    image, _ = scene()
    model = DepthModel(_network(tmp_path / "m.onnx", "metres"), metres=True)
    depth = FromModel(model, sky=False)(Sample("a", image)).depth
    assert depth.shape == image.shape[:2]
    assert depth[5, 5] > depth[40, 60] > 0  # this network takes bright for far
    relative = DepthModel(tmp_path / "m.onnx", nearest=2, farthest=50).depth(image)
    assert relative.min() == pytest.approx(2, rel=0.01)
    assert relative.max() == pytest.approx(50, rel=0.05)


def test_known_depths_anchor_a_network_without_a_scale() -> None:
    _, depth = scene()
    answer = (3 / depth + 0.7).astype(np.float32)
    assert scale_to_metres(answer, thinned(depth), nearest=1, farthest=9) == pytest.approx(depth, rel=1e-3)


def test_refuses_a_file_that_is_no_network(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    image, _ = scene()
    with pytest.raises(ModelError, match="inverse"):
        DepthModel(_network(tmp_path / "negative.onnx", "inverse"), metres=True).depth(image)
    (tmp_path / "text.onnx").write_text("no network")
    with pytest.raises(ModelError, match="ONNX"):
        DepthModel(tmp_path / "text.onnx").depth(image)
    with pytest.raises(ModelError, match="cannot be run on one image as 1×3×H×W"):
        DepthModel(_network(tmp_path / "last.onnx", "inverse", (1, 64, 64, 3))).depth(image)
    with pytest.raises(InvalidOption, match="does not exist"):
        DepthModel(tmp_path / "none.onnx")


def test_a_missing_runtime_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    (tmp_path / "other.onnx").write_bytes(b"")
    with pytest.raises(MissingExtra, match=r"pip install onnxruntime"):
        DepthModel(tmp_path / "other.onnx").depth(scene()[0])


def test_a_replaced_network_is_opened_again(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime")
    path = _network(tmp_path / "m.onnx", "metres")
    image, _ = scene()
    before = DepthModel(path, metres=True).depth(image)
    os.utime(_network(path, "negative"), ns=(1, 1))
    assert before.min() > 0
    with pytest.raises(ModelError):
        DepthModel(path, metres=True).depth(image)


def test_a_polygon_covers_the_pixels_whose_centres_are_inside() -> None:
    sample = Sample(id="a", image=np.zeros((30, 40, 3), np.uint8))
    square = Region(1.5, polygon=((10, 10), (20, 10), (20, 20), (10, 20))).mask(sample, ())
    assert square.sum() == 100
    assert square[10:20, 10:20].all()
    slanted = Region(1.5, polygon=((0, 0), (40, 0), (0, 30))).mask(sample, ())
    assert slanted.sum() == pytest.approx(600, abs=20)
    assert slanted[0, 0]
    assert not slanted[29, 39]


def test_priors_replace_the_estimated_depth(tmp_path: Path) -> None:
    image, depth = scene()
    labels = np.zeros(depth.shape, np.uint8)
    labels[:10] = 1
    sample = Sample("a", image, Truth(semantic=SemanticMap(labels)))
    file = tmp_path / "priors.json"
    hood = {"polygon": [[0, 70], [120, 70], [120, 80], [0, 80]], "depth": 1.5}
    file.write_text(json.dumps([hood, {"class": "sky", "depth": "inf"}, {"above": 3, "depth": 900}]))
    over = put_priors(depth, read_priors(file), sample, ("road", "sky"))
    assert (over[70:] == 1.5).all()
    assert (over[:3] == 900).all()
    assert np.isinf(over[3:10]).all()
    assert (over[10:70] == depth[10:70]).all()
    with pytest.raises(UnknownName, match="road"):
        put_priors(depth, read_priors(file), sample, ("road",))
    with pytest.raises(MissingContext, match="polygon"):
        put_priors(depth, read_priors(file), Sample("a", image))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"depth": 1}', "a list"),
        ('[{"depth": 1}]', "exactly one"),
        ('[{"depth": 0, "above": 3}]', "above 0"),
        ('[{"depth": "far", "above": 3}]', "metres"),
        ('[{"depth": 1, "polygon": [[1, 2], [3, 4]]}]', "three corners"),
        ('[{"depth": 1, "sky": "blue"}]', "found"),
        ("[", "is not JSON"),
    ],
)
def test_broken_priors_are_refused(tmp_path: Path, content: str, said: str) -> None:
    (tmp_path / "p.json").write_text(content)
    with pytest.raises(InvalidOption, match=said):
        read_priors(tmp_path / "p.json")


def test_the_sky_is_bright_smooth_above_and_unmeasured() -> None:
    image = np.full((90, 120, 3), (70, 90, 60), np.uint8)
    image[:40] = (150, 190, 235)
    image[10:90, 50:56] = (40, 40, 40)  # a pole before it
    sky = find_sky(image)
    assert sky[:38, :45].all()
    assert not sky[42:].any()
    assert not sky[12:38, 51:55].any()
    measured = np.zeros(sky.shape, bool)
    measured[5:35:2, ::2] = True
    assert not find_sky(image, measured).any()


def test_a_purple_panel_and_a_near_one_are_not_sky() -> None:
    image = np.full((90, 120, 3), (70, 90, 60), np.uint8)
    image[:40] = (150, 190, 235)
    image[:40, 60:] = (150, 110, 190)
    assert not find_sky(image)[:, 64:].any()
    image[:70, 60:] = (200, 200, 205)  # the side of a bus: as bright, and it hangs below the horizon
    parallax = np.full((90, 120), np.nan, np.float32)
    parallax[:40, :56] = 0
    parallax[:, 56:64] = 30
    sky = find_sky(image, parallax=parallax)
    assert sky[:36, :50].all()
    assert not sky[:, 66:].any()
