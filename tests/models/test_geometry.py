"""Fitting images into inputs and carrying boxes and planes back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormproof.core.sample import as_rgb
from stormproof.models.geometry import place, plan_fit

sides = st.integers(1, 400)
ways = st.sampled_from([("stretch", "centre"), ("letterbox", "centre"), ("letterbox", "top-left")])


@given(sides, sides, sides, sides, ways)
def test_boxes_are_mapped_back_to_the_image(height: int, width: int, rows: int, columns: int, way) -> None:
    fit = plan_fit((height, width), (rows, columns), *way)
    (down, across), (top, left) = fit.scale, fit.offset
    box = np.array([[0.25 * width, 0.5 * height, 0.75 * width, height]])
    inside = box * [across, down, across, down] + [left, top, left, top]
    assert fit.boxes_to_image(inside) == pytest.approx(box)
    assert fit.inner[0] + top <= rows
    assert fit.inner[1] + left <= columns


def test_letterbox_by_hand() -> None:
    fit = plan_fit((480, 640), (416, 416), "letterbox")
    assert (fit.inner, fit.offset) == ((312, 416), (52, 0))
    assert plan_fit((480, 640), (416, 416), "letterbox", "top-left").offset == (0, 0)


def test_resizes_by_the_shortest_side_to_multiples() -> None:
    assert plan_fit((480, 640), (800, 1333), "shortest").inner == (800, 1067)
    assert plan_fit((400, 1000), (800, 1333), "shortest").inner == (533, 1333)
    assert plan_fit((50, 70), (1, 1), "none", multiple=32).canvas == (64, 96)


def test_pads_around_the_content() -> None:
    image = np.full((10, 20, 3), 200, np.uint8)
    canvas = place(image, plan_fit((10, 20), (40, 40), "letterbox"), pad=114)
    assert canvas.shape == (40, 40, 3)
    assert (canvas[10:30] == 200).all()
    assert (canvas[:10] == 114).all()
    assert (canvas[30:] == 114).all()


@pytest.mark.parametrize("resize", ["stretch", "letterbox"])
@pytest.mark.parametrize("resolution", [1, 4])
def test_planes_are_mapped_back_to_the_image(resize, resolution: int) -> None:
    """A half-and-half image, seen by the network at full or quarter resolution, is half-and-half again."""
    fit = plan_fit((60, 100), (128, 128), resize)
    truth = np.zeros((60, 100), np.uint8)
    truth[:, 50:] = 1
    seen = place(np.repeat(truth[..., None], 3, axis=2), fit, pad=0, interpolation="nearest")[..., 0]
    plane = seen[::resolution, ::resolution]
    back = fit.plane_to_image(np.ascontiguousarray(plane), "nearest")
    assert back.shape == truth.shape
    assert (back != truth).mean() <= 0.02 * resolution


def test_planes_are_resized_without_rounding() -> None:
    """Bilinear to the last digits: frameworks resize scores so before they choose a class."""
    plane = np.arange(32, dtype=np.float32)[None].repeat(32, axis=0)  # a ramp stays a ramp
    wide = plan_fit((100, 427), (128, 128), "stretch").plane_to_image(plane)
    ramp = np.clip((np.arange(427) + 0.5) * 32 / 427 - 0.5, 0, 31)
    assert wide == pytest.approx(np.broadcast_to(ramp, (100, 427)), abs=1e-4)


@pytest.mark.parametrize("axis", [0, 1])
def test_planes_of_a_letterbox_keep_their_place(axis: int) -> None:
    """A plane that holds positions in the input: every pixel of the image finds its own centre."""
    fit = plan_fit((50, 100), (128, 128), "letterbox")
    centres = (np.arange(32, dtype=np.float32) + 0.5) * 4
    plane = np.broadcast_to(centres[:, None] if axis == 0 else centres, (32, 32))
    back = fit.plane_to_image(np.ascontiguousarray(plane))
    scale, offset = fit.scale[axis], fit.offset[axis]
    wanted = np.clip((np.arange(fit.image[axis]) + 0.5) * scale + offset, 2, 126)
    assert (back[:, 10] if axis == 0 else back[10]) == pytest.approx(wanted, abs=4 / 32)


def test_shrinks_with_and_without_averaging() -> None:
    stripes = np.zeros((8, 64, 3), np.uint8)
    stripes[:, ::8] = 255  # thin lines, which a plain linear resize steps over
    fit = plan_fit((8, 64), (8, 8), "stretch")
    assert place(stripes, fit, pad=0).max() == 0
    assert place(stripes, fit, pad=0, interpolation="antialias").min() > 10


def test_grey_becomes_three_channels() -> None:
    assert as_rgb(np.zeros((4, 5), np.uint8)).shape == (4, 5, 3)
    assert as_rgb(np.zeros((4, 5, 1), np.uint8)).shape == (4, 5, 3)
