"""The torch path on torch's CPU device against the CPU set: the logic is tested everywhere.

Of each recipe the weakest and the strongest condition; `test_cuda.py` holds all of them on a GPU.
"""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import ctypes
import logging
import subprocess
import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.both_sets import EVERY, IDS, PAIRS, on_cpu, on_torch, photographs
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidImage, InvalidOption, MissingContext
from stormproof.core.randomness import Draw
from stormproof.corruptions import CORRUPTIONS, on_device
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.corruptions.plugins import is_plugin
from stormproof.corruptions.recipes.blur import disk, motion_path
from stormproof.imaging.gpu import tensors, triton_kernels
from stormproof.imaging.gpu.batch import Batch, OneByOne
from stormproof.imaging.gpu.convolution import _integer_kernel
from stormproof.imaging.gpu.draws import Draws
from stormproof.imaging.gpu.warps import enlarged_part
from stormproof.imaging.plans import fixed_kernel


@pytest.mark.parametrize("condition", PAIRS, ids=str)
def test_a_batch_equals_each_image_on_the_cpu(condition: Condition) -> None:
    images = photographs(41, 58)
    assert (on_torch(images, condition) == on_cpu(images, condition)).all()


@pytest.mark.parametrize("name", dict.fromkeys(str(c.corruption) for c in EVERY))
def test_frames_of_a_clip_equal_those_of_the_cpu(name: str) -> None:
    condition = next(c for c in reversed(EVERY) if c.corruption == name)
    images = photographs(41, 58)
    assert (on_torch(images, condition, clip=True) == on_cpu(images, condition, clip=True)).all()


@pytest.mark.parametrize("size", [(1, 1), (2, 3), (64, 1), (3, 200), (17, 33)], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_odd_sizes_and_grey_images_equal_those_of_the_cpu(size: tuple[int, int], channels: int) -> None:
    images = photographs(*size, channels)
    for name in dict.fromkeys(condition.corruption for condition in EVERY):
        condition = next(c for c in reversed(EVERY) if c.corruption == name)
        assert (on_torch(images, condition) == on_cpu(images, condition)).all(), str(condition)


def test_the_bits_are_those_of_the_cpu() -> None:
    draws = [Draw.keyed(7, name, "fog", 3) for name in IDS]
    both = Draws(draws)
    for shape in ((1,), (3, 5), (31, 17, 3)):
        expected = np.stack([draw.bits("noise", shape) for draw in draws])
        assert (both.bits("noise", shape).data.numpy() == expected).all()
    assert both.each(lambda own: own.uniform("angle", -45, 45)) == [
        d.uniform("angle", -45, 45) for d in draws
    ]
    assert both.each_uniform("angle", -45, 45).tolist() == [d.uniform("angle", -45, 45) for d in draws]
    counts = np.array([7, 1000])
    assert both.each_integer("top", counts).tolist() == [
        d.integer("top", n) for d, n in zip(draws, counts.tolist(), strict=True)
    ]
    fields = both.normal_field("n", (6, 7), 0.5, 2.0).data.numpy()
    assert (fields == np.stack([draw.normal_field("n", (6, 7), 0.5, 2.0) for draw in draws])).all()


@pytest.mark.parametrize("size", [(480, 640), (6, 9)], ids=str)
def test_many_paths_are_those_of_single_images(size: tuple[int, int]) -> None:
    """Of the same steps and weights; beyond the edge of a small image a batch has weights of 0."""
    angles = np.random.default_rng(3).uniform(-180, 180, 300).tolist()
    weights, shifts = motion_path(size, 12, 5.0, angles)
    for i, angle in enumerate(angles):
        alone, path = motion_path(size, 12, 5.0, angle)
        assert (weights[i, : len(alone)] == alone).all()
        assert (shifts[i, : len(path)] == path).all()
        assert not weights[i, len(alone) :].any()


@pytest.mark.parametrize(("radius", "softness"), [(0, 0.1), (3, 0.1), (6, 0.5), (10, 0.5), (40, 0.5)])
def test_a_kernel_in_signed_bytes_is_the_kernel(radius: int, softness: float) -> None:
    """The products of matrices that tensor cores take, in NumPy, against the correlation itself."""
    weights = disk(radius, softness)
    kernel = _integer_kernel(weights.tobytes(), weights.shape[0])
    rows, chunks, count, columns, step = kernel.limbs.shape
    fixed = fixed_kernel(weights)
    pixels = np.random.default_rng(radius).integers(0, 256, (rows, chunks * step))
    signed = (pixels - 128).reshape(rows, chunks, step)
    sums = np.einsum("rklcs,rks->lc", kernel.limbs.astype(np.int64), signed)
    found = sum(sums[i] << (8 * i) for i in range(count)) + 128 * kernel.total
    centre = weights.shape[0] // 2
    inner = fixed[centre - kernel.reach : centre + kernel.reach + 1, centre - kernel.reach :][:, :rows]
    assert count in (2, 3)
    assert inner.sum() == fixed.sum() == kernel.total
    assert found.tolist() == [(inner * pixels[:, c : c + rows]).sum() for c in range(columns)]


def test_addresses_for_a_kernel_point_to_the_parts() -> None:
    rng = np.random.default_rng(1)
    textures = [rng.integers(0, 256, (9, 12, 3)).astype(np.uint8) for _ in range(2)]
    corner = np.array([3, 0, 7]), np.array([4, 2, 9])
    parts = enlarged_part(textures, [(18, 30), (11, 13)], np.array([0, 1, 0]), corner, (5, 6))
    for image, (start, stride) in zip(parts.data.numpy(), parts.places().tolist(), strict=True):
        lines = [bytes((ctypes.c_uint8 * 18).from_address(start + y * stride)) for y in range(5)]
        assert lines == [line.tobytes() for line in image]


def test_layouts_of_memory_do_not_matter() -> None:
    images = torch.from_numpy(photographs(40, 50)).permute(0, 3, 1, 2)
    expected = corrupt_batch(images.contiguous(), "motion_blur@3", ids=IDS)
    for other in (
        images,
        images.contiguous(memory_format=torch.channels_last),
        images.repeat(2, 1, 1, 1)[::2],
    ):
        assert torch.equal(corrupt_batch(other[:1], "motion_blur@3", ids=IDS[:1]), expected[:1])


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last], ids=str)
def test_input_images_are_not_changed(form: object) -> None:
    """A batch that lies in pixels goes to a recipe without a copy."""
    given = torch.from_numpy(photographs(24, 32)).permute(0, 3, 1, 2).contiguous(memory_format=form)
    before, depth = given.clone(), torch.full((2, 24, 32), 9.0)
    for condition in {c.corruption: c for c in EVERY}.values():
        made = corrupt_batch(given, condition, ids=IDS, depth=depth)
        assert made.untyped_storage().data_ptr() != given.untyped_storage().data_ptr(), str(condition)
        assert torch.equal(given, before), str(condition)
    none = Condition.parse("pixelate[factor=1]")
    assert torch.equal(corrupt_batch(given, none), given)


def test_float_images_give_the_same_pixels() -> None:
    images = torch.from_numpy(photographs(24, 32)).permute(0, 3, 1, 2).contiguous()
    whole = corrupt_batch(images, "fog@3", ids=IDS)
    floats = corrupt_batch(images.float() / 255, "fog@3", ids=IDS)
    assert floats.dtype == torch.float32
    assert torch.equal((floats * 255).round().to(torch.uint8), whole)
    fine = images.float() / 255 * 0.999
    assert torch.equal(corrupt_batch(fine, "clean"), fine)  # what is not corrupted is not rounded


def test_refuses_impossible_batches() -> None:
    images = torch.zeros((2, 3, 8, 8), dtype=torch.uint8)
    with pytest.raises(InvalidImage, match="uint8 or floats from 0 to 1"):
        corrupt_batch(images.int(), "fog@3", ids=IDS)
    with pytest.raises(InvalidImage, match=r"0 … 1, not -1 to -1; corrupt images before they are normalised"):
        corrupt_batch(images.float() - 1, "fog@3", ids=IDS)
    with pytest.raises(InvalidImage, match="N×3×H×W"):
        corrupt_batch(images[:, :2], "fog@3", ids=IDS)
    with pytest.raises(InvalidOption, match="give ids"):
        corrupt_batch(images, "fog@3")
    with pytest.raises(InvalidOption, match="1 entries for 2 images"):
        corrupt_batch(images, "fog@3", ids=["one"])
    with pytest.raises(MissingContext, match="depth"):
        corrupt_batch(images, "haze[beta=0.01]")
    with pytest.raises(InvalidOption, match="within the batch"):
        corrupt_batch(images, "contrast@1", sizes=[(9, 8), (8, 8)])
    with pytest.raises(InvalidOption, match=r"style.*cannot run on batches.*network"):
        corrupt_batch(images, "style[alpha=1]", ids=IDS)
    assert torch.equal(corrupt_batch(images, "clean"), images)
    assert corrupt_batch(images[:0], "fog@3").shape == (0, 3, 8, 8)


def test_every_corruption_runs_on_a_device_or_is_refused_by_name() -> None:
    held = {condition.corruption for condition in EVERY}
    own = {name for name, found in CORRUPTIONS.items() if not is_plugin(found)}
    single = {name for name in own if CORRUPTIONS[name].one_image_only}
    assert held | single == own
    assert not held & single


def test_a_batch_too_large_is_split_and_says_so(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    images = torch.from_numpy(photographs(40, 50)).permute(0, 3, 1, 2)
    expected = corrupt_batch(images, "fog@3", ids=IDS)
    monkeypatch.setattr("stormproof.corruptions.on_device._most_at_once", lambda *_: 1)
    with caplog.at_level(logging.INFO, logger="stormproof"):
        assert torch.equal(corrupt_batch(images, "fog@3", ids=IDS), expected)
    assert "2 images is split into parts of 1" in caplog.text


def test_a_launch_stays_within_cudas_grid(monkeypatch: pytest.MonkeyPatch) -> None:
    """CUDA takes 65,535 programs along the second side of a grid, which counts planes."""
    monkeypatch.setattr(on_device, "_FREE", {})
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _: (1 << 40, 1 << 40))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda _: 0)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda _: 0)
    tiny = SimpleNamespace(is_cuda=True, device="cuda:0", shape=(70_000, 3, 4, 4))
    assert on_device._most_at_once(tiny, 4, 4) == 65_535 // 3


def test_kernels_run_on_the_device_of_the_images(monkeypatch: pytest.MonkeyPatch) -> None:
    """Triton launches on CUDA's current device, which need not be that of the batch."""
    entered: list[object] = []
    monkeypatch.setattr(torch.cuda, "device", lambda chosen: nullcontext(entered.append(chosen)))
    second = torch.device("cuda", 1)
    with tensors.device(second):
        assert tensors.current_device() == second
        assert entered == [second]
    with tensors.device(torch.device("cpu")):
        assert entered == [second]


def test_a_kernel_is_trusted_for_what_it_was_compared_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that is right on grey images is compared again on colours, and for another type of result."""
    monkeypatch.setattr(triton_kernels, "usable", lambda _: True)
    monkeypatch.setattr(triton_kernels, "trusted", set())
    monkeypatch.setattr(triton_kernels, "refused", {})
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)

    def plus_one(source: object, dtype: object) -> object:
        return (source + 1).to(dtype)

    def kernel(source: object, dtype: object) -> object:
        asked.append(source.shape[3])
        return plus_one(source, dtype) + (source.shape[3] == 3 or dtype == torch.int16)

    grey, colour = (torch.zeros((2, 4, 5, channels), dtype=torch.uint8) for channels in (1, 3))
    asked: list[int] = []
    for source, dtype in ((grey, torch.uint8), (colour, torch.uint8), (grey, torch.int16)):
        for _ in range(2):
            expected = plus_one(source, dtype)
            assert torch.equal(triton_kernels.run(kernel, plus_one, source, dtype), expected)
    assert asked == [1, 1, 3, 1]  # a refused kernel is not tried again
    assert len(triton_kernels.trusted) == 1
    assert "120 of 120 values differ" in caplog.text


def test_neither_numba_nor_opencv_nor_a_compiler_is_loaded_and_a_recipe_that_needs_them_names_them() -> None:
    code = (
        "import sys; sys.modules.update(dict.fromkeys(('numba', 'cv2', 'scipy', 'hotcoco')));"
        "import torch; from stormproof import corrupt_batch; from stormproof.corruptions import SUITES;"
        "images = torch.full((2, 3, 24, 32), 90, dtype=torch.uint8); depth = torch.full((2, 24, 32), 9.0);"
        "done = [corrupt_batch(images, c, ids=['a', 'b'], depth=depth) for suite in"
        " ('imagenet-c', 'holdout', 'optics', 'camera', 'mutators', 'contextual')"
        " for c in {c.corruption: c for c in SUITES[suite].conditions}.values()];"
        "heavy = 'numba', 'cv2', 'torch._dynamo', 'torch._inductor';"
        "print(len(done), [m for m in heavy if sys.modules.get(m)]);"
        "corrupt_batch(images, 'checkerboard_cutout@1', ids=['a', 'b'])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.stdout.strip().endswith("[]"), run.stderr
    assert "which board on the CPU needs" in run.stderr


def test_refuses_one_number_for_two_images() -> None:
    batch = Batch(torch.arange(6).reshape(2, 3))
    with pytest.raises(OneByOne):
        int(batch.max())
    assert int(Batch(torch.arange(3)[None]).max()) == 2


def test_a_batch_is_reversed_whole_or_not_at_all() -> None:
    batch = Batch(torch.arange(6).reshape(2, 3))
    assert batch[::-1].data.tolist() == [[2, 1, 0], [5, 4, 3]]
    colours = np.arange(24).reshape(2, 2, 2, 3)
    assert np.array_equal(Batch(torch.from_numpy(colours))[1, ::-1].data, colours[:, 1, ::-1])
    with pytest.raises(IndexError, match=r"by \[::-1\], not by slice\(2, 0, -1\)"):
        batch[2:0:-1]
    with pytest.raises(IndexError, match="written to in reverse"):
        batch[::-1] = 0


def test_types_follow_numpy() -> None:
    """The same expression over an array and over a batch of it, types included."""
    rng = np.random.default_rng(0)
    bytes_, floats = (
        rng.integers(0, 256, (2, 4, 5), dtype=np.uint8),
        rng.normal(size=(2, 4, 5)).astype(np.float32),
    )
    table = np.linspace(0, 1, 5)
    expressions = (
        lambda a, b: a + np.uint8(200), lambda a, b: a / 7, lambda a, b: b * 3, lambda a, b: b * table,
        lambda a, b: (a > 99) & (b < 0), lambda a, b: np.clip(b, -0.5, 0.5),
        lambda a, b: np.where(b > 0, a, 0), lambda a, b: np.minimum(b, np.float32(0.1)) - a,
        lambda a, b: b[::-1, ::-1], lambda a, b: np.rint(b * 10),
        lambda a, b: a // 16, lambda a, b: a >> 3, lambda a, b: 1 - b, lambda a, b: table - b,
    )  # fmt: skip
    for expression in expressions:
        expected = np.stack([expression(a, b) for a, b in zip(bytes_, floats, strict=True)])
        found = expression(Batch(torch.from_numpy(bytes_)), Batch(torch.from_numpy(floats))).data.numpy()
        assert found.dtype == expected.dtype
        assert (found == expected).all()
