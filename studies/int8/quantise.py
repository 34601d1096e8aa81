"""Eight-bit twins of the built-in networks, made by onnxruntime's own quantiser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnxruntime.quantization import (
    CalibrationDataReader,
    QuantFormat,
    QuantType,
    quantize_dynamic,
    quantize_static,
)

import stormproof as sp
from stormproof.core.condition import CLEAN, Condition
from stormproof.core.sample import Sample
from stormproof.corruptions import SUITES, apply
from stormproof.models.builtin import folder

SCENES = 64  # of world:val, for calibration
# Corruptions that imagenet-c does not have, so that no twin has seen a corruption it is tested under.
SEEN = tuple(condition for condition in SUITES["holdout"].conditions if condition.severity == 3)
BODY = ("/network/encoder/", "/network/neck/")  # names of the nodes before a network's head


@dataclass(frozen=True)
class Static:
    """How a static twin is made: conditions of its calibration, whether its head stays in float32, and
    whether its weights take seven bits, so that sums of two products fit into 16."""

    seen: tuple[Condition, ...] = (CLEAN,)
    float_head: bool = False
    reduced: bool = False


BRIGHT = (CLEAN, Condition.parse("brightness@3"))  # of which the second is in the test
STATIC = {
    "static": Static(),
    "static, corrupted": Static(SEEN),
    "static, float head": Static(float_head=True),
    "static, bright": Static(BRIGHT),
    "static, reduced range": Static(reduced=True),
}
TWINS = ("fp32", "dynamic", "static", "static, corrupted")  # of every network


def twins_of(network: str) -> tuple[str, ...]:
    """The twins of every network, and the tests of a cause: of the detectors' clean loss, of brightness."""
    head = ("static, float head",)
    tests = {"street-grid": head, "street-masks": head, "street-plain": ("static, bright",)}
    return TWINS + tests.get(network, ())


class Scenes(CalibrationDataReader):
    """Scenes as the networks are fed, under one condition after the other."""

    def __init__(self, conditions: Sequence[Condition], scenes: int = SCENES) -> None:
        self._feeds = self._each(conditions, scenes)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)

    @staticmethod
    def _each(conditions: Sequence[Condition], scenes: int) -> Iterator[dict[str, np.ndarray]]:
        for index in range(scenes):
            sample = apply(_rendered(index), conditions[index % len(conditions)], seed=1)
            pixels = sample.image.astype(np.float32).transpose(2, 0, 1)[None]
            yield {"image": (pixels - 127.5) / 127.5}  # as the cards say; scenes have the networks' size


@cache
def _rendered(index: int) -> Sample:
    return sp.open_dataset("world:val", limit=index + 1)[index]


def make_twin(network: str, twin: str, out: Path, scenes: int = SCENES) -> Path:
    """The ONNX file of a twin, its card beside it."""
    path = out / f"{network}-{twin.replace(',', '').replace(' ', '-')}.onnx"
    shutil.copy(folder() / f"{network}.yaml", path.with_suffix(".yaml"))
    if path.exists():
        return path
    plain = out / f"{network}-plain.onnx"
    _fold(folder() / f"{network}.onnx", plain)
    half = path.with_suffix(".half")
    if twin == "fp32":
        shutil.copy(plain, half)
    elif twin == "dynamic":
        quantize_dynamic(plain, half, weight_type=QuantType.QUInt8)
    else:
        how = STATIC[twin]
        quantize_static(
            plain, half, Scenes(how.seen, scenes), quant_format=QuantFormat.QDQ, per_channel=True,
            weight_type=QuantType.QInt8, activation_type=QuantType.QUInt8,
            nodes_to_exclude=_head(plain) if how.float_head else [], reduce_range=how.reduced,
        )  # fmt: skip
    half.rename(path)
    return path


def _head(path: Path) -> list[str]:
    """The nodes from the head's first convolution to the output."""
    return [node.name for node in onnx.load(path).graph.node if not node.name.startswith(BODY)]


def _fold(source: Path, out: Path) -> None:
    """The network with weights in float32: the quantiser does not look behind their casts from float16."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(out)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
