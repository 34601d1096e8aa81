"""Triton's kernels without a GPU: all compile for one, and give their twins' values in Triton's interpreter.

Skipped where Triton is not installed (`pip install triton` suffices).
"""

# ruff: noqa: E402  what follows needs torch and Triton

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
triton = pytest.importorskip("triton")

from triton.backends.compiler import GPUTarget
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from helpers.both_sets import photographs
from stormproof.core.randomness import Frame
from stormproof.corruptions import SUITES
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.imaging.gpu import ragged, triton_kernels
from stormproof.imaging.gpu.batch import squared_differences

pytestmark = pytest.mark.slow
CONDITIONS = [c for suite in ("imagenet-c", "holdout") for c in SUITES[suite].conditions]
RECIPES = list(dict.fromkeys(str(c.corruption) for c in CONDITIONS))
HOPPER = GPUTarget("cuda", 90, 32)


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Launches compile and do nothing else; twins compute. Returns the names of launched kernels."""
    names: list[str] = []
    launch = JITFunction.run

    def compile_only(kernel: object, *args: object, grid: object, warmup: bool, **options: object) -> object:
        names.append(kernel.__name__)
        return launch(kernel, *args, grid=grid, warmup=True, **options)

    def both(kernel: object, twin: object, *args: object) -> object:
        if not triton_kernels.is_switched_off():
            kernel(*args)
        return twin(*args)

    def both_ragged(
        kernel: object, alone: object, sizes: object, *args: object, variant: object = ()
    ) -> object:
        kernel(*args, sizes=sizes)
        with triton_kernels.without():
            return ragged.together(alone, sizes)

    monkeypatch.setattr(JITFunction, "run", compile_only)
    monkeypatch.setattr(triton_kernels, "run", both)
    monkeypatch.setattr(ragged, "run", both_ragged)
    answers = {"get_current_device": 0, "get_current_stream": 0, "get_current_target": HOPPER}
    monkeypatch.setattr(
        driver,
        "_active",
        SimpleNamespace(**{name: lambda *_, answer=answer: answer for name, answer in answers.items()}),
    )
    return names


@pytest.mark.parametrize("size", [(32, 48), (17, 33), (16, 320)], ids=str)
@pytest.mark.parametrize("channels", [1, 3])
def test_every_kernel_compiles(compiling: list[str], size: tuple[int, int], channels: int) -> None:
    images = torch.from_numpy(photographs(*size, channels)).permute(0, 3, 1, 2).contiguous()
    images = images if size[0] == 32 else images.contiguous(memory_format=torch.channels_last)
    for condition in CONDITIONS:
        corrupt_batch(images, condition, ids=["a", "b"])
    assert len(set(compiling)) > 30


def test_frames_of_a_clip_compile(compiling: list[str]) -> None:
    images = torch.from_numpy(photographs(32, 48)).permute(0, 3, 1, 2).contiguous()
    for condition in ("fog@3", "snow@3"):
        corrupt_batch(images, condition, ids=[Frame("a", "clip", 0.4), Frame("b", "clip", 1.3)])
    assert {"stretch_kernel", "flakes_kernel"} <= set(compiling)


# Launches that several sizes take and one does not: its positions, blocks and taps come from the host.
MORE = {"positions_kernel": 2, "blocks_kernel": 1, "cubic_kernel": 1}


def test_a_mixed_batch_takes_one_launch_of_each_kernel(compiling: list[str]) -> None:
    """As many launches as images of one size take, however many sizes there are."""
    images = torch.from_numpy(np.concatenate([photographs(60, 48)] * 3)).permute(0, 3, 1, 2).contiguous()
    ids = list("abcdef")
    sizes = [(60, 48), (33, 40), (40, 33), (35, 35), (48, 48), (60, 34)]  # clouds of one size: 64
    for condition in SUITES["imagenet-c"].conditions[2::5]:
        compiling.clear()
        corrupt_batch(images, condition, ids=ids)
        alone = len(compiling)
        compiling.clear()
        corrupt_batch(images, condition, ids=ids, sizes=sizes)
        more = sum(MORE[name] for name in set(compiling) & set(MORE))
        assert 0 < len(compiling) <= alone + more, str(condition)


INTERPRETED = """
import sys, numpy as np, torch
from stormproof.imaging.gpu import triton_kernels
triton_kernels.usable = lambda tensor: not triton_kernels.is_switched_off()
torch.cuda.synchronize = lambda: None
"""


def assert_nothing_refused(code: str, *given: object) -> None:
    """In a process whose kernels Triton interprets."""
    run = subprocess.run(
        [sys.executable, "-c", f"{INTERPRETED}{code}\nprint(triton_kernels.refused)", *map(str, given)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"TRITON_INTERPRET": "1"},
    )
    assert run.stdout.strip() == "{}", run.stdout + run.stderr[-2000:]


CORRUPTED = """
from triton.runtime import interpreter
from stormproof.corruptions import SUITES
from stormproof.corruptions.on_device import corrupt_batch

patch = interpreter._patch_lang_tensor
def patched(tensor, scope):  # NumPy 2.4 makes no integer of an array with one axis
    patch(tensor, scope)
    scope.set_attr(tensor, "__index__", lambda self: int(self.handle.data.item()))
interpreter._patch_lang_tensor = patched
def with_mask(call, place):  # Triton 3.9 makes an integer of the mask of a block and that of a number
    def called(self, *given):
        mask = interpreter.TensorHandle(given[place].data.astype(bool), given[place].dtype)
        return call(self, *given[:place], mask, *given[place + 1:])
    return called
builder = interpreter.InterpreterBuilder
builder.create_masked_load = with_mask(builder.create_masked_load, 1)
builder.create_masked_store = with_mask(builder.create_masked_store, 2)
name, height, width = sys.argv[1], *map(int, sys.argv[2:])
images = torch.from_numpy(np.random.default_rng(0).integers(0, 256, (2, 3, height, width)).astype(np.uint8))
mixed = [(height, width - 3), (height - 1, width)]
for suite in ("imagenet-c", "holdout"):
    for condition in [c for c in SUITES[suite].conditions if c.corruption == name][::2]:
        for form in (torch.contiguous_format, torch.channels_last):
            triton_kernels.trusted.clear()
            for sizes in (None, mixed):
                corrupt_batch(images.contiguous(memory_format=form), condition, ids=["a", "b"], sizes=sizes)
assert triton_kernels.trusted or name == "saturate"
"""


@pytest.mark.parametrize("size", [(8, 12), (7, 9)], ids=str)
@pytest.mark.parametrize("name", RECIPES)
def test_every_kernel_gives_its_twins_values(name: str, size: tuple[int, int]) -> None:
    assert_nothing_refused(CORRUPTED, name, *size)


def test_a_large_cloud_equals_its_twin_in_the_interpreter() -> None:
    """Beyond 128 points a side, clouds take other kernels."""
    assert_nothing_refused(CORRUPTED, "fog", 3, 260)


def test_squared_differences_compile(compiling: list[str]) -> None:
    squared_differences(*torch.zeros((2, 3, 3, 40, 50), dtype=torch.uint8))
    assert compiling == ["squared_differences_kernel"]


SUMS = """
from stormproof.imaging.gpu.batch import squared_differences

pair = np.random.default_rng(0).integers(0, 2, (2, 3, 3, 60, 70)).astype(np.uint8) * 255
squared_differences(*torch.from_numpy(pair))
assert triton_kernels.trusted
"""


def test_squared_differences_equal_torchs_in_the_interpreter() -> None:
    assert_nothing_refused(SUMS)


@pytest.mark.parametrize(("linear", "taps"), [(True, 2), (False, 5)])
def test_resizing_compiles(compiling: list[str], linear: bool, taps: int) -> None:
    tables = [torch.zeros((2, side, taps), dtype=torch.int32) for side in (32, 32, 48, 48)]
    triton_kernels.fit_images(torch.zeros((2, 5), dtype=torch.int64), tables, linear, 114)
    assert compiling == ["fit_kernel"]


RESIZED = """
from stormproof.imaging.gpu.resizing import ResizedSide, fit_images

rng = np.random.default_rng(0)
images = [torch.from_numpy(rng.integers(0, 256, (*size, 3)).astype(np.uint8)) for size in ((9, 20), (21, 8))]
sides = [tuple(ResizedSide(side, inner, 1, 18) for side, inner in zip(i.shape, (12, 16))) for i in images]
for rule in ("nearest", "linear", "area", "antialias"):
    fit_images(images, sides, rule, 114)
assert len(triton_kernels.trusted) == 4, triton_kernels.trusted
"""


def test_resizing_equals_its_twin_in_the_interpreter() -> None:
    assert_nothing_refused(RESIZED)
