"""Clock, memory and cable: how much is lost, where, and what is left untouched."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from stormproof import imaging
from stormproof.corruptions import corrupt_image

GREY = np.full((200, 300, 1), 100, np.uint8)
COLOUR = np.full((200, 300, 3), (180, 120, 60), np.uint8)


@pytest.mark.parametrize("severity", [1, 2, 3, 4, 5])
def test_a_band_of_the_stated_height_is_black(severity: int) -> None:
    out = corrupt_image(COLOUR, f"synchronization_exception@{severity}", image_id="band")
    black = (out == 0).all(axis=(1, 2))
    assert black.sum() == 2 * severity
    assert np.diff(np.flatnonzero(black)).max(initial=1) == 1
    assert (out[~black] == COLOUR[~black]).all()


@pytest.mark.parametrize(
    "name", ["synchronization_exception", "memory_exception", "memory_block_loss", "bad_pixel_damage"]
)
def test_a_higher_severity_destroys_at_least_what_the_lower_one_does(name: str) -> None:
    for image_id in "abcdefgh":
        lost = [corrupt_image(COLOUR, f"{name}@{s}", image_id=image_id) == 0 for s in range(1, 6)]
        for weaker, stronger in pairwise(lost):
            assert not (weaker & ~stronger).any()
            assert stronger.sum() >= weaker.sum()


def test_higher_severities_keep_the_tears_of_lower_ones() -> None:
    rows = np.repeat(np.arange(1, 201, dtype=np.uint8)[:, None, None], 8, axis=1)
    arrived = [set(corrupt_image(rows, f"synchronization_tearing@{s}")[:, 0, 0].tolist()) for s in (1, 3, 5)]
    assert arrived[2] <= arrived[1] <= arrived[0]


def test_bands_fall_anywhere() -> None:
    starts = set()
    for i in range(60):
        out = corrupt_image(GREY, "synchronization_exception@5", image_id=str(i))
        starts.add(int(np.flatnonzero((out == 0).all(axis=(1, 2)))[0]))
    assert min(starts) < 30
    assert max(starts) > 160


def test_tearing_moves_rows_up_and_keeps_their_order() -> None:
    rows = np.repeat(np.arange(1, 201, dtype=np.uint8)[:, None, None], 8, axis=1)
    out = corrupt_image(rows, "synchronization_tearing@3", image_id="tear")[:, 0, 0]
    arrived = out[out > 0]
    assert (np.diff(arrived.astype(int)) > 0).all()
    assert 200 - 18 <= len(arrived) <= 200 - 6
    assert (out[len(arrived) :] == 0).all()
    assert np.diff(arrived.astype(int)).max() >= 7  # a gap of six rows


@pytest.mark.parametrize("severity", [1, 3, 5])
def test_a_block_of_the_stated_sides_is_black(severity: int) -> None:
    side = (0.04, 0.06, 0.08, 0.10, 0.12)[severity - 1]
    out = corrupt_image(COLOUR, f"memory_exception@{severity}", image_id="block")
    rows, columns = np.nonzero((out == 0).all(axis=2))
    assert len(np.unique(rows)) == round(200 * side)
    assert len(np.unique(columns)) == round(300 * side)
    assert len(rows) == round(200 * side) * round(300 * side)


def test_memory_blocks_are_whole_and_in_the_stated_share() -> None:
    big = np.full((1600, 1600, 1), 9, np.uint8)
    out = corrupt_image(big, "memory_block_loss@5", image_id="pages")
    lost = (out == 0).reshape(100, 16, 100, 16).mean(axis=(1, 3))
    assert set(np.unique(lost)) == {0.0, 1.0}
    assert lost.mean() == pytest.approx(0.015, abs=0.004)


@pytest.mark.parametrize("wire", ["serial", "parallel"])
def test_cable_faults_hit_crossings_of_rows_and_columns(wire: str) -> None:
    big = np.random.default_rng(0).integers(128, 256, (600, 800, 1), dtype=np.uint8)
    out = corrupt_image(big, f"transfer_harness_exception[share=0.2,wire={wire}]")
    hit = (out != big)[..., 0]
    rows, columns = hit.any(axis=1), hit.any(axis=0)
    assert rows.mean() == pytest.approx(0.2, abs=0.05)
    assert columns.mean() == pytest.approx(0.2, abs=0.05)
    lost = big[hit][:, 0] ^ out[hit][:, 0]
    assert set(lost.tolist()) == {1 << k for k in range(8)}  # from 128 up both wires lose one bit


def test_a_serial_wire_makes_dark_bytes_jump_and_a_parallel_one_does_not() -> None:
    dark = np.full((300, 300, 1), 5, np.uint8)  # 101 arrives as 10100000
    serial = corrupt_image(dark, "transfer_harness_exception[share=0.5,wire=serial]")
    assert set(np.unique(serial)) == {5, 0b10100000, 0b00100000, 0b10000000}
    parallel = corrupt_image(dark, "transfer_harness_exception[share=0.5,wire=parallel]")
    assert set(np.unique(parallel)) == {5, 0b100, 0b001}


def test_cable_faults_leave_other_pixels_untouched() -> None:
    image = np.random.default_rng(0).integers(0, 256, (90, 120, 3), dtype=np.uint8)
    out = corrupt_image(image, "transfer_harness_exception[share=0.14]")
    assert (out != image).any()
    assert (out != image).any(axis=2).mean() < 0.05
    assert (corrupt_image(image, "transfer_harness_exception[share=0]") == image).all()


def test_stripes_lose_one_channel() -> None:
    out = corrupt_image(COLOUR, "transfer_stripe_loss[chance=1]")
    stripes = imaging.to_yuv(np.ascontiguousarray(out)).reshape(25, 8, 300, 3)
    lost = [tuple(np.abs(s.astype(int) - np.array([16, 128, 128])).max(axis=(0, 1)) <= 20) for s in stripes]
    assert all(any(channels) for channels in lost)
    assert all((s == s[0, 0]).all() for s in stripes)
    assert len(set(map(bytes, (s[0, 0].tobytes() for s in stripes)))) == 3


def test_faults_of_size_zero_change_nothing_and_any_others_show() -> None:
    for condition in ("synchronization_exception[height=0]", "memory_exception[side=0]",
                      "memory_block_loss[share=0]", "transfer_stripe_loss[chance=0]"):  # fmt: skip
        assert (corrupt_image(COLOUR, condition) == COLOUR).all(), condition
    tiny = np.full((7, 5, 3), (180, 120, 60), np.uint8)
    for name in ("synchronization_exception", "memory_exception", "memory_block_loss"):
        assert (corrupt_image(tiny, f"{name}@1") != tiny).any(), name
