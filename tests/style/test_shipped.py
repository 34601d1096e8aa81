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
from stormproof.style.networks import folder, open_network

PSNR, LEFT = 22.0, 0.30  # medians: dB at α = 0; share of the distance to the style left at α = 1


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
def test_reconstruction_and_distance_to_the_style(shared: Path) -> None:
    pytest.importorskip("torch")
    evaluate = evaluation()
    photographs = sorted((shared / "data/coco/val2017").glob("*.jpg"))
    contents = [as_rgb(read_image(path))[:320, :320] for path in photographs[::30]]
    network = open_network()
    again = evaluate.reconstructed(network)
    assert np.median([evaluate.psnr(again(image), image) for image in contents]) >= PSNR
    paintings = [shared / "data/paintings" / name for name in evaluate.HELD_OUT_PAINTINGS]
    judge = evaluate.Judge.read(shared)
    styled = evaluate.styled(network, contents, paintings, judge)
    assert np.median([left for *_, left in styled]) <= LEFT
    half_flat = contents[0][:160, :200].copy()
    half_flat[:, :100] = 120
    ((*_, left),) = evaluate.styled(network, [half_flat], paintings[:1], judge)
    found = evaluate.painted(network, [half_flat], paintings[:1], judge)
    assert found["left"] == found["left, paintings held out"] == round(left, 3)
    assert found["lattice"] > 0


def test_a_lattice_is_seen_where_the_content_is_flat() -> None:
    pytest.importorskip("torch")
    lattice = evaluation().lattice
    flat = np.full((64, 96, 3), 120, np.uint8)
    drawn = flat.copy()
    drawn[::8] += 16
    assert lattice(flat, flat) == 0
    assert lattice(drawn, flat) > 3
    assert lattice(drawn, np.random.default_rng(0).integers(0, 256, flat.shape, np.uint8)) is None


def test_a_weave_stays_where_the_cells_are_and_strokes_move() -> None:
    pytest.importorskip("torch")
    evaluate = evaluation()
    down, right = evaluate.MOVE
    flat = np.full((200, 240, 3), 120, np.uint8)
    drawn = flat + np.random.default_rng(0).integers(0, 9, flat.shape, np.uint8)
    strokes = evaluate.weave(drawn, drawn[down:, right:], flat)
    fixed = evaluate.weave(drawn, drawn[:-down, :-right], flat)
    assert strokes[0] > 5
    assert strokes[1] == 0
    assert fixed[1] == pytest.approx(fixed[0], rel=0.05)
    assert evaluate.weave(flat, flat[down:, right:], drawn * 8) is None


def test_the_notice_of_the_pair_they_grew_from_is_shipped() -> None:
    (notice,) = folder().glob("LICENSE*")
    assert "Copyright (c) 2020 Huan Wang" in notice.read_text()
