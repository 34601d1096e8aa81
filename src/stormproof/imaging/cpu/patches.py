"""Blur that changes over the image: each small patch has a kernel of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.core.sample import Image
from stormproof.imaging.plans import PATCH, border


@kernel
def _patch(
    source: Any, taps: Any, reach: Any, top: Any, start: Any, wide: Any, deep: Any, step: Any, out: Any
) -> None:
    """One patch: rows top … top + deep, values start … start + wide of a padded float image."""
    radius = taps.shape[0] // 2
    line = np.empty(wide, np.float32)
    for y in range(deep):
        line[:] = 0
        for i in range(taps.shape[0]):
            row = source[top + y + reach - radius + i]
            for j in range(taps.shape[1]):
                w = taps[i, j]
                offset = start + (reach - radius + j) * step
                values = row[offset : offset + wide]
                for x in range(wide):
                    line[x] += w * values[x]
        target = out[top + y, start : start + wide]
        for x in range(wide):
            target[x] = np.uint8(min(line[x] + np.float32(0.5), np.float32(255)))


@kernel
def _patches(source: Any, kernels: Any, radii: Any, reach: Any, channels: Any, size: Any, out: Any) -> None:
    height, n = out.shape
    width = n // channels
    for i in range(kernels.shape[0]):
        for j in range(kernels.shape[1]):
            r = radii[i, j]
            taps = kernels[i, j, reach - r : reach + r + 1, reach - r : reach + r + 1]
            top, left = i * size, j * size
            deep, wide = min(size, height - top), min(size, width - left) * channels
            _patch(source, taps, reach, top, left * channels, wide, deep, channels, out)


@kernel
def _splat(cos: Any, sin: Any, radial: Any, tangential: Any, nodes: Any, weights: Any, out: Any) -> None:
    """A Gaussian's nodes, each shared linearly among the four pixels around it."""
    reach = np.float64(out.shape[0] // 2)
    for a in range(nodes.shape[0]):
        for b in range(nodes.shape[0]):
            if nodes[a] ** 2 + nodes[b] ** 2 > nodes[0] ** 2:
                continue
            along, across = radial * nodes[a], tangential * nodes[b]
            y = reach + sin * along + cos * across
            x = reach + cos * along - sin * across
            i, j = int(y), int(x)
            f, g = y - i, x - j
            w = weights[a] * weights[b]
            out[i, j] += w * (1 - f) * (1 - g)
            out[i, j + 1] += w * (1 - f) * g
            out[i + 1, j] += w * f * (1 - g)
            out[i + 1, j + 1] += w * f * g


@kernel
def _splat_all(angle: Any, radial: Any, tangential: Any, nodes: Any, weights: Any, out: Any) -> None:
    for i in range(angle.shape[0]):
        for j in range(angle.shape[1]):
            cos, sin = np.cos(angle[i, j]), np.sin(angle[i, j])
            _splat(cos, sin, radial[i, j], tangential[i, j], nodes, weights, out[i, j])


def spread_kernels(
    angle: npt.NDArray[np.float64], radial: npt.NDArray[np.float64], tangential: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]:
    """Kernels of Gaussians with standard deviations along and across a direction, and their radii.

    Pixels are squares that give and take light evenly: so a Gaussian much narrower than a pixel still
    moves some light across its borders, in proportion to its width.
    """
    nodes = np.linspace(-3, 3, 25)
    weights = np.exp(-0.5 * nodes**2)
    radii = np.ceil(nodes[-1] * np.maximum(radial, tangential)).astype(np.int64) + 1
    side = 2 * int(radii.max()) + 1
    kernels = np.zeros((*angle.shape, side, side), np.float32)
    _splat_all(angle, radial, tangential, nodes, weights, kernels)
    kernels /= kernels.sum(axis=(2, 3), keepdims=True)
    return kernels, radii


def blur_patches(image: Image, kernels: npt.NDArray[np.float32], radii: npt.NDArray[np.int64]) -> Image:
    """Correlate each 16×16 patch with its own odd square kernel; edges repeated, rounded.

    `kernels` is rows × columns of patches × k × k; `radii` says how much of each kernel is not zero.
    """
    height, width, channels = image.shape
    reach = kernels.shape[2] // 2
    rows, columns = border(height, reach, "nearest"), border(width, reach, "nearest")
    padded = np.ascontiguousarray(image[rows][:, columns], np.float32).reshape(len(rows), -1)
    out = np.empty((height, width * channels), np.uint8)
    _patches(padded, kernels, radii, reach, channels, PATCH, out)
    return out.reshape(image.shape)
