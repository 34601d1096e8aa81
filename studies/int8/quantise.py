"""Eight-bit twins of the built-in networks, made by onnxruntime's own quantiser."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
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
from stormproof.corruptions import SUITES, apply
from stormproof.models.builtin import folder

SCENES = 64  # of world:val, for calibration
# Corruptions that imagenet-c does not have, so that no twin has seen a corruption it is tested under.
SEEN = tuple(condition for condition in SUITES["holdout"].conditions if condition.severity == 3)
TWINS = ("fp32", "dynamic", "static", "static, corrupted")


class Scenes(CalibrationDataReader):
    """Scenes as the networks are fed, under one condition after the other."""

    def __init__(self, conditions: Sequence[Condition], scenes: int = SCENES) -> None:
        self._feeds = self._each(conditions, scenes)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self._feeds, None)

    @staticmethod
    def _each(conditions: Sequence[Condition], scenes: int) -> Iterator[dict[str, np.ndarray]]:
        data = sp.open_dataset("world:val", limit=scenes)
        for index in range(len(data)):
            sample = apply(data[index], conditions[index % len(conditions)], seed=1)
            pixels = sample.image.astype(np.float32).transpose(2, 0, 1)[None]
            yield {"image": (pixels - 127.5) / 127.5}  # as the cards say; scenes have the networks' size


def make_twin(network: str, twin: str, out: Path, scenes: int = SCENES) -> Path:
    """The ONNX file of a twin, its card beside it."""
    path = out / f"{network}-{twin.replace(', ', '-')}.onnx"
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
        seen = SEEN if twin == "static, corrupted" else (CLEAN,)
        quantize_static(
            plain, half, Scenes(seen, scenes), quant_format=QuantFormat.QDQ, per_channel=True,
            weight_type=QuantType.QInt8, activation_type=QuantType.QUInt8,
        )  # fmt: skip
    half.rename(path)
    return path


def _fold(source: Path, out: Path) -> None:
    """The network with weights in float32: the quantiser does not look behind their casts from float16."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_BASIC
    options.optimized_model_filepath = str(out)
    options.log_severity_level = 3
    onnxruntime.InferenceSession(str(source), options, providers=["CPUExecutionProvider"])
