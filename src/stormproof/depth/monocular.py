"""Depth from one image by a network in an ONNX file.

The output of a network is either depth in metres, or inverse depth up to an unknown scale and shift (MiDaS,
Depth Anything). Inverse depth is fitted to the known depths of a sample, or else stretched between a smallest
and a largest depth.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.files import sha256
from stormproof.core.sample import Image
from stormproof.core.sessions import open_session
from stormproof.datasets.depthmaps import Map

_MEAN = np.array([0.485, 0.456, 0.406], np.float32)  # of ImageNet, on which all such networks are pretrained
_SPREAD = np.array([0.229, 0.224, 0.225], np.float32)
_LONG, _STEP = 518, 14  # if the network accepts any size: long side, and a multiple for transformers
_ENOUGH = 50  # known depths needed for a fit
_FARTHEST = 10000.0  # largest depth of a fit, in metres


@dataclass(frozen=True, slots=True)
class DepthModel:
    """A depth network: its file, whether it outputs metres, and the depth range if it does not."""

    path: Path
    metres: bool = False
    nearest: float = 2.0
    farthest: float = 100.0

    def __post_init__(self) -> None:
        if not 0 < self.nearest < self.farthest:
            raise InvalidOption(
                f"nearest={self.nearest:g} m must be above 0 and below farthest={self.farthest:g} m."
            )
        if not self.path.is_file():
            raise InvalidOption(f"{self.path} does not exist; give the ONNX file of a depth network.")

    @property
    def identity(self) -> str:
        """Everything that its output depends on."""
        content = _content(str(self.path), self.path.stat().st_mtime_ns)
        output = "metres" if self.metres else "inverse"
        return f"{content}:{output}:{self.nearest!r}:{self.farthest!r}"

    def depth(self, image: Image, known: Map | None = None) -> Map:
        """Depth in metres for every pixel; `known` (NaN elsewhere) fixes the scale of inverse depth."""
        answer = _answer(_session(str(self.path), self.path.stat().st_mtime_ns), image, self.path)
        if not self.metres:
            return scale_to_metres(answer, known, nearest=self.nearest, farthest=self.farthest)
        if (answer <= 0).any():
            fix = "if its output is inverse depth, use --model-output inverse"
            raise ModelError(f"{self.path} outputs depths down to {answer.min():g} m; {fix}.")
        return answer


def scale_to_metres(inverse: Map, known: Map | None, *, nearest: float, farthest: float) -> Map:
    """Depth in metres from inverse depth of unknown scale and shift."""
    if known is not None and (usable := np.isfinite(known) & (known > 0)).sum() >= _ENOUGH:
        design = np.stack((inverse[usable], np.ones(usable.sum(), np.float32)), axis=1).astype(np.float64)
        scale, shift = np.linalg.lstsq(design, 1 / known[usable].astype(np.float64), rcond=None)[0]
        if scale > 0:
            return np.asarray(1 / np.maximum(scale * inverse + shift, 1 / _FARTHEST), np.float32)
    low, high = np.percentile(inverse, (1, 99))
    share = np.clip((inverse - low) / max(high - low, 1e-12), 0, 1)
    return np.asarray(1 / (1 / farthest + share * (1 / nearest - 1 / farthest)), np.float32)


@lru_cache(maxsize=4)
def _content(path: str, stamp: int) -> str:
    """A hash of a file, kept until the file changes."""
    return sha256(Path(path))


@lru_cache(maxsize=1)
def _session(path: str, stamp: int) -> Any:
    """The network of a file, kept until the file changes."""
    return open_session(Path(path), threads=0)


def _answer(session: Any, image: Image, path: Path) -> Map:
    """The output of the network, resized to the image."""
    entry = session.get_inputs()[0]
    if len(entry.shape) != 4:
        raise ModelError(f"{path} takes {entry.shape}; a depth network takes one image as 1×3×H×W.")
    height, width = image.shape[:2]
    rows, columns = _input_size(entry.shape, (height, width))
    rgb = image if image.ndim == 3 and image.shape[2] == 3 else cv2.cvtColor(image, cv2.COLOR_GRAY2RGB)
    small = cv2.resize(rgb, (columns, rows), interpolation=cv2.INTER_AREA).astype(np.float32) / 255
    batch = ((small - _MEAN) / _SPREAD).transpose(2, 0, 1)[None]
    try:
        first, *_ = session.run(None, {entry.name: np.ascontiguousarray(batch)})
    except Exception as error:
        problem = f"cannot be run on one image as 1×3×H×W of float32 ({str(error).splitlines()[0]})"
        raise ModelError(f"{path} {problem}; export it so.") from None
    answer = np.squeeze(np.asarray(first))
    if answer.ndim != 2 or not np.isfinite(answer).all():
        raise ModelError(f"{path} outputs {answer.shape}; a depth network outputs one finite H×W map.")
    resized = cv2.resize(answer.astype(np.float32), (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(resized, np.float32)


def _input_size(shape: list[Any], size: tuple[int, int]) -> tuple[int, int]:
    """The network's input size; if it accepts any, one with the image's proportions."""
    if isinstance(shape[2], int) and isinstance(shape[3], int):
        return shape[2], shape[3]
    scale = _LONG / max(size)
    rows, columns = (max(round(side * scale / _STEP), 1) * _STEP for side in size)
    return rows, columns
