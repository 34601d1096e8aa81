"""The shipped weights on photographs and paintings they were not trained on, where these are at hand."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stormproof.core.imagefile import read_image
from stormproof.core.sample import as_rgb
from stormproof.style.adain import STYLE_SIDE, shorter_side
from stormproof.style.networks import folder, open_network
from stormproof.style.sources import read_style

PSNR, LEFT = 32.0, 0.75  # medians: dB at α = 0; share of the distance to the style left at α = 1


def evaluation() -> ModuleType:
    path = Path(__file__).parents[2] / "training/style/evaluate.py"
    spec = importlib.util.spec_from_file_location("style_evaluation", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.slow
def test_the_shipped_network_reconstructs_and_reaches_the_style(shared: Path) -> None:
    """Judged by the first stages of a detector, which the training has not used."""
    pytest.importorskip("onnx")
    evaluate = evaluation()
    photographs = sorted((shared / "data/coco/val2017").glob("*.jpg"))
    contents = [as_rgb(read_image(path)) for path in photographs[::60]]
    paintings = [read_style(shared / "data/paintings" / name) for name in evaluate.HELD_OUT_PAINTINGS]
    styles = [shorter_side(painting, STYLE_SIDE) for painting in paintings]
    network, witness = open_network(), evaluate.Witness.read(shared)
    looks = [network.encode_style(style) for style in styles]
    exact, left = [], []
    for image in contents:
        content = network.encode_content(image)
        for style, look in zip(styles, looks, strict=True):
            left.append(witness.distance_left(network.paint(content, look, 1.0), image, style))
        exact.append(evaluate.psnr(network.paint(content, looks[-1], 0.0), image))
    assert np.median(exact) >= PSNR
    assert np.median(left) <= LEFT


def test_the_distance_left_is_0_for_the_style_and_1_for_the_content(shared: Path) -> None:
    pytest.importorskip("onnx")
    witness = evaluation().Witness.read(shared)
    rng = np.random.default_rng(0)
    content, style = (rng.integers(0, top, (420, 430, 3), np.uint8) for top in (80, 250))
    assert witness.distance_left(style, content, style) == 0
    assert witness.distance_left(content, content, style) == 1


def test_a_lattice_is_seen_where_the_content_is_flat() -> None:
    lattice = evaluation().lattice
    flat = np.full((64, 96, 3), 120, np.uint8)
    drawn = flat.copy()
    drawn[::8] += 16
    assert lattice(flat, flat) == 0
    assert lattice(drawn, flat) > 3
    assert lattice(drawn, np.random.default_rng(0).integers(0, 256, flat.shape, np.uint8)) is None


def test_the_licence_notice_of_the_original_networks_is_shipped() -> None:
    (notice,) = folder().glob("LICENSE*")
    assert "Copyright (c) 2020 Huan Wang" in notice.read_text()
