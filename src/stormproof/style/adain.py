"""Adaptive instance normalisation (huang2017): the content's features take the style's statistics.

The built-in decoder gets more than these features: the content's own detail, which fades as α grows, so that
α = 0 is nearly the image itself, and noise, which grows with α, so that large areas do not become a lattice.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np

from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_npz
from stormproof.core.randomness import Draw, digest, normal_quantiles
from stormproof.core.sample import Image
from stormproof.style.layers import (
    CELL,
    EPSILON,
    NOISE,
    NOISE_CHANNELS,
    Decode,
    Encode,
    Field,
    Levels,
    share_noise,
    strength,
)

STYLE_SIDE = 512  # pixels of a style's shorter side, as the authors resize it
SMALLEST = 16  # pixels per side; an eighth of less is too small to be padded by reflection


@dataclass(frozen=True, slots=True, eq=False)
class Statistics:
    """Mean and deviation of every channel: all that AdaIN uses of a style."""

    mean: Field
    deviation: Field

    @classmethod
    def of(cls, features: Field) -> Statistics:
        """The statistics over space; the variance is the unbiased one plus 1e-5.

        >>> Statistics.of(np.arange(4, dtype=np.float32).reshape(1, 2, 2)).mean.tolist()
        [1.5]
        """
        flat = features.reshape(len(features), -1)
        mean = flat.mean(1, dtype=np.float64)
        variance = flat.var(1, dtype=np.float64, ddof=1 if flat.shape[1] > 1 else 0)
        return cls(mean.astype(np.float32), np.sqrt(variance + EPSILON).astype(np.float32))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save a style without its image."""
        np.savez(path, mean=self.mean, deviation=self.deviation)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Statistics:
        try:
            mean, deviation = read_npz(Path(path), "mean", "deviation", error=InvalidOption)
        except InvalidOption as error:
            fix = "save statistics of a style with Statistics.save, or give an image"
            raise InvalidOption(f"{error} {fix}.") from None
        if mean.ndim != 1 or mean.shape != deviation.shape:
            raise InvalidOption(f"{path}: mean {mean.shape} and deviation {deviation.shape} differ.")
        return cls(mean.astype(np.float32), deviation.astype(np.float32))


def adain(features: Field, own: Statistics, style: Statistics, alpha: float = 1.0) -> Field:
    """(1−α)·f + α·AdaIN(f, s), which is one factor and one summand per channel."""
    scale = style.deviation / own.deviation
    factor = (1 - alpha) + alpha * scale
    shift = alpha * (style.mean - own.mean * scale)
    blended = features * factor.astype(np.float32)[:, None, None]
    blended += shift.astype(np.float32)[:, None, None]
    return blended


@dataclass(frozen=True, slots=True, eq=False)
class Encoded:
    """A content image's features, encoded once for any number of styles and α."""

    features: Field
    own: Statistics
    size: tuple[int, int]
    levels: Levels


@dataclass(frozen=True, slots=True, eq=False)
class AdaIN:
    """An encoder and a decoder; `joined` are the names of what the decoder gets beside the features."""

    name: str
    encoder: Encode
    decoder: Decode
    fingerprint: str
    channels: int
    joined: tuple[str, ...] = ()

    def encode_content(self, image: Image) -> Encoded:
        """Features of an H×W×3 image of any size."""
        shown = at_least(image, SMALLEST)
        if self.joined:
            shown = whole_cells(shown)
        features, levels = self.encoder(to_planes(shown))
        if NOISE in self.joined:
            # Equal images are painted alike, wherever and whenever.
            levels[NOISE] = draw_noise(Draw.keyed(0, digest(image), NOISE), features.shape[2:])
        size = (image.shape[0], image.shape[1])
        return Encoded(features[0], Statistics.of(features[0]), size, levels)

    def encode_style(self, image: Image) -> Statistics:
        return Statistics.of(self.encoder(to_planes(shorter_side(image, STYLE_SIDE)))[0][0])

    def load_style(self, path: Path) -> Statistics:
        """A style from its saved statistics."""
        style = Statistics.load(path)
        if len(style.mean) != self.channels:
            fix = "save them again with this network"
            raise InvalidOption(
                f"{path}: statistics of {len(style.mean)} channels, {self.name} has {self.channels}; {fix}."
            )
        return style

    def paint(self, content: Encoded, style: Statistics, alpha: float) -> Image:
        """The content in the style; α = 0 is plain encoding and decoding."""
        features = content.features
        if alpha:
            features = adain(features, content.own, style, alpha)
        return to_image(self.decoder(features[None], content.levels, strength(alpha))[0], content.size)


def draw_noise(draw: Draw, size: tuple[int, ...]) -> Field:
    """The noise that a decoder of `size` cells joins, 1×C×H×W."""
    shape = (1, NOISE_CHANNELS, size[0] + 2, size[1] + 2)
    return np.asarray(share_noise(normal_quantiles()[draw.bits(NOISE, shape)]), np.float32)


def to_planes(image: Image) -> Field:
    """H×W×3 bytes as 1×3×H×W in 0..1."""
    return np.ascontiguousarray(image.transpose(2, 0, 1)[None], np.float32) / np.float32(255)


def to_image(planes: Field, size: tuple[int, int]) -> Image:
    """3×H×W in 0..1 as bytes, rounded, clamped and cropped to `size`: networks output multiples of 8."""
    cut = np.maximum(planes[:, : size[0], : size[1]], 0)
    # Rounds to even and saturates, like rint and clip, in one pass.
    whole = [cv2.convertScaleAbs(np.ascontiguousarray(plane), alpha=255.0) for plane in cut]
    return np.asarray(cv2.merge(whole), np.uint8)


def at_least(image: Image, side: int) -> Image:
    """The image, its last row and column repeated where it is too small for a network."""
    down, right = max(side - image.shape[0], 0), max(side - image.shape[1], 0)
    return np.pad(image, ((0, down), (0, right), (0, 0)), mode="edge") if down or right else image


def whole_cells(image: Image) -> Image:
    """The image, continued by reflection to whole cells, so that the sizes of all levels fit together."""
    down, right = (-length % CELL for length in image.shape[:2])
    return np.pad(image, ((0, down), (0, right), (0, 0)), mode="reflect") if down or right else image


def shorter_side(image: Image, side: int) -> Image:
    """Resized so that the shorter side measures `side` pixels."""
    height, width = image.shape[:2]
    scale = side / min(height, width)
    if scale == 1:
        return image
    # A very long strip would become huge, so it is squeezed to four times the side.
    target = (min(round(width * scale), 4 * side), min(round(height * scale), 4 * side))
    method = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(image, target, interpolation=method), np.uint8)
