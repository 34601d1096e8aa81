"""The built-in networks: what they hold, what they say, and of which world they are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.boxes import iou
from stormproof.core.errors import MissingExtra, UnknownName
from stormproof.core.loading import install_extra
from stormproof.core.sample import Sample
from stormproof.models import load_model
from stormproof.models.builtin import Builtin, builtins, find_builtin, training_record
from stormproof.world.classes import OBJECTS, SEMANTIC
from stormproof.world.samples import VERSION, render

NETWORKS = builtins()
STANDARD = {name: network for name, network in NETWORKS.items() if network.training == "standard"}
# What a network of standard training must reach on clean scenes of world:test to be worth testing under
# corruption. Those trained on stylized scenes do not reach it, which docs/networks.md says; they are there to
# be compared with the standard one.
BARS = {
    "detection": {"AP50": 0.75, "AP": 0.45},
    "instance": {"mask AP50": 0.65},
    "semantic": {"mIoU": 0.75},
}


@pytest.fixture(scope="module")
def sample() -> Sample:
    return render(0, "test", 3).sample


def test_has_the_documented_networks() -> None:
    tasks = {name: network.task for name, network in NETWORKS.items()}
    assert tasks == {
        "street-grid": "detection",
        "street-grid-stylized": "detection",
        "street-grid-combined": "detection",
        "street-centre": "detection",
        "street-masks": "instance",
        "street-context": "semantic",
        "street-plain": "semantic",
    }


def test_every_network_was_trained_on_the_world_as_it_is() -> None:
    stale = [name for name, network in NETWORKS.items() if network.world != VERSION]
    assert not stale, (
        f"The world is at version {VERSION}; train again (training/): {', '.join(stale)}, which saw "
        f"version {', '.join(str(NETWORKS[name].world) for name in stale)}."
    )


@pytest.mark.parametrize("network", STANDARD.values(), ids=STANDARD)
def test_a_network_reaches_its_clean_scores(network: Builtin) -> None:
    assert network.images >= 200
    for measure, least in BARS[network.task].items():
        assert network.clean[measure] >= least, measure


def test_all_networks_together_are_small() -> None:
    assert sum(network.bytes for network in NETWORKS.values()) <= 16e6


@pytest.mark.parametrize("name", NETWORKS)
def test_weights_are_stored_as_float16_and_widened(name: str) -> None:
    graph = onnx.load(str(find_builtin(name).path)).graph
    widened = {node.input[0] for node in graph.node if node.op_type == "Cast"}
    stored = [(t.name, t.data_type, int(np.prod(t.dims))) for t in graph.initializer]
    wide = [name for name, kind, size in stored if kind == onnx.TensorProto.FLOAT and size >= 64]
    assert not wide
    halves = {name for name, kind, _ in stored if kind == onnx.TensorProto.FLOAT16}
    assert halves
    assert halves <= widened
    assert {value.type.tensor_type.elem_type for value in graph.output} == {onnx.TensorProto.FLOAT}


@pytest.mark.parametrize("name", NETWORKS)
def test_a_network_detects_what_a_scene_shows(name: str, sample: Sample) -> None:
    model = load_model(f"builtin:{name}")
    assert callable(model)
    (found,) = model([sample.image])
    assert sample.truth.instances is not None
    assert sample.truth.semantic is not None
    if NETWORKS[name].task == "semantic":
        assert model.semantic_classes == SEMANTIC
        truth = sample.truth.semantic.labels
        assert (found.semantic == truth)[truth != 255].mean() > 0.85
        return
    assert model.classes == OBJECTS
    large = sample.truth.instances.area > 32**2
    overlaps = iou(found.boxes[found.scores > 0.3], sample.truth.instances.boxes[large])
    assert (overlaps.max(axis=0) > 0.5).mean() >= 0.5
    assert (found.masks is not None) == (NETWORKS[name].task == "instance")


def test_says_how_to_install_the_missing_package_of_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stormproof.models.builtin.find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=re.escape(install_extra("demo"))):
        find_builtin("street-grid")
    told = CliRunner().invoke(app, ["inspect", "builtin:street-grid"]).output
    assert "stormproof-networks is not installed" in told


def test_an_unknown_network_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="street-grid"):
        find_builtin("street-grit")
    with pytest.raises(UnknownName):
        find_builtin("../networks/street-grid")


@pytest.mark.parametrize("name", NETWORKS)
def test_the_record_of_a_training_is_kept(name: str) -> None:
    told = training_record(name)
    assert told["training"]["name"] == name
    assert told["training"]["seed"] in (0, 1)
    assert len(told["curve"]) > 5
    assert told["scenes"] == told["curve"][-1]["scenes"]


def test_built_in_networks_are_listed() -> None:
    told = json.loads(CliRunner().invoke(app, ["list", "models", "--json"]).stdout)
    assert [row["name"] for row in told] == [f"builtin:{name}" for name in NETWORKS]
    assert all(row["clean"] and row["world"] == VERSION for row in told)


def test_the_page_lists_these_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).resolve().parents[2] / "docs"))
    import make_networks

    page = make_networks.PAGE.read_text(encoding="utf-8")
    assert make_networks.table() in page, "python docs/make_networks.py renews it"
