"""Patterns laid over an image: waves, clouds, glints, boards. They depend on a few numbers and on no pixel.

Sines and angles are polynomials, and powers are taken in 64-bit floats, so that every machine draws the same.
"""

from __future__ import annotations

from math import ceil, cos, factorial, pi, sin, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from stormproof.core.kernels import kernel
from stormproof.imaging.cpu.convolution import gaussian_field
from stormproof.imaging.cpu.warps import enlarge
from stormproof.imaging.plans import Field

Doubles = npt.NDArray[np.float64]

# The Taylor series of sin(2πw), exact to 1e-9 for |w| ≤ ¼.
_S = [(-1) ** n * (2 * pi) ** (2 * n + 1) / factorial(2 * n + 1) for n in range(7)]
_S0, _S1, _S2, _S3, _S4, _S5, _S6 = _S
_TURN = 1 / (2 * pi)


@kernel
def _cosine(angle: Any) -> Any:
    """cos of an angle in radians, by a polynomial: loops that call it are vectorized."""
    turns = angle * _TURN
    w = 0.25 - abs(turns - np.floor(turns + 0.5))
    z = w * w
    return w * (_S0 + z * (_S1 + z * (_S2 + z * (_S3 + z * (_S4 + z * (_S5 + z * _S6))))))


@kernel
def _sine(angle: Any) -> Any:
    return _cosine(angle - pi / 2)


def plane_wave(size: tuple[int, int], frequency: tuple[float, float], phase: float) -> Field:
    """sin(fy·y + fx·x + phase), with `frequency` = (fy, fx) in radians per pixel."""
    down, across = (rate * np.arange(side) for rate, side in zip(frequency, size, strict=True))
    field = np.outer(np.sin(down + phase), np.cos(across))
    field += np.outer(np.cos(down + phase), np.sin(across))
    return field.astype(np.float32)


@kernel
def _rings(row: Any, column: Any, petals: Any, amplitude: Any, width: Any, out: Any) -> None:
    for y in range(out.shape[0]):
        line = out[y]
        dy = y - row
        for x in range(line.shape[0]):
            dx = x - column
            radius = np.sqrt(dx * dx + dy * dy) + _sine(petals * np.arctan2(dx, dy)) * amplitude
            rings = radius / width
            line[x] = rings - np.floor(rings) - 0.5


def rings(
    size: tuple[int, int], centre: tuple[float, float], *, petals: float, amplitude: float, width: float
) -> Field:
    """Saw-tooth rings of `width` px from −½ to ½; radii wave by `amplitude` px, `petals` times a turn."""
    out = np.empty(size, np.float32)
    _rings(*centre, petals, amplitude, max(width, 1e-9), out)
    return out


@kernel
def _swirl(scale: Any, time: Any, octaves: Any, sharpness: Any, out: Any) -> None:
    width = out.shape[1]
    u, v = np.empty(width), np.empty(width)
    for y in range(out.shape[0]):
        for x in range(width):
            u[x], v[x] = x / scale, y / scale
        rate, slow, damping = 1.0, 1.0, 1.0
        for _ in range(octaves):
            drift = time / slow
            for x in range(width):
                across, down = _cosine(v[x] * rate + drift) / damping, _sine(u[x] * rate + drift) / damping
                u[x] += across - 0.3 * down
                v[x] += down + 0.3 * across
            rate, slow, damping = rate * 1.93, slow * 1.15, damping * (2.25 - sharpness)
        line = out[y]
        third = _sine(time)
        for x in range(width):
            line[x, 0] = _sine(u[x] - time)
            line[x, 1] = _sine((u[x] + v[x] + third) * 0.5)
            line[x, 2] = _sine(v[x] + time)


def swirl(size: tuple[int, int], *, scale: float, time: float, octaves: int, sharpness: float) -> Field:
    """A coloured plasma from −1 to 1, H×W×3: positions in units of `scale` px, warped `octaves` times."""
    out = np.empty((*size, 3), np.float32)
    _swirl(scale, time, octaves, sharpness, out)
    return out


_ATAN = (0.99997726, -0.33262347, 0.19354346, -0.11643287, 0.05265332, -0.0117212)
_A0, _A1, _A2, _A3, _A4, _A5 = (np.float32(a * _TURN) for a in _ATAN)
_TINY, _QUARTER, _HALF, _ONE = np.float32(1e-30), np.float32(0.25), np.float32(0.5), np.float32(1)


@kernel
def _angle(dy: Any, dx: Any) -> Any:
    """atan2(dx, dy) + π in turns, from 0 to 1, to 1e-5 of a turn (Hastings 1955)."""
    a, b = abs(dy), abs(dx)
    steep = b > a
    most, least = (b, a) if steep else (a, b)
    t = least / (most + _TINY)
    z = t * t
    turn = t * (_A0 + z * (_A1 + z * (_A2 + z * (_A3 + z * (_A4 + z * _A5)))))
    turn = _QUARTER - turn if steep else turn
    turn = _HALF - turn if dy < 0 else turn
    return _HALF + turn if dx >= 0 else _HALF - turn


@kernel
def _star(row: Any, column: Any, lengths: Any, exponent: Any, out: Any) -> None:
    rays = lengths.shape[0] - 1  # the first one is repeated at the end
    width = out.shape[1]
    place, square = np.empty(width, np.float32), np.empty(width, np.float32)
    for y in range(out.shape[0]):
        line = out[y]
        dy = np.float32(y) - row
        for x in range(width):  # vectorized, as the look-up below is not
            dx = np.float32(x) - column
            place[x] = _angle(dy, dx) * np.float32(rays)
            square[x] = dx * dx + dy * dy + np.float32(1e-4)
        for x in range(width):
            i = min(np.int32(place[x]), rays - 1)
            share = place[x] - np.float32(i)
            length = lengths[i] + share * (lengths[i + 1] - lengths[i])
            near = length * length / square[x]
            if exponent != 1.0:
                near = np.float32(np.float64(near) ** exponent)
            share -= _HALF
            line[x] *= _ONE - min((_ONE - share * share) * near, _ONE)


def stars(size: tuple[int, int], centres: Doubles, lengths: list[Doubles], exponent: float) -> Field:
    """1 − light of stars at `centres` (row, column), from 0 in a star's core to 1 far from all of them.

    A star's light falls with (ray length / distance)^(2·exponent), in as many rays as it has lengths (px).
    """
    out = np.ones(size, np.float32)
    for (row, column), own in zip(centres, lengths, strict=True):
        _star(np.float32(row), np.float32(column), np.append(own, own[0]).astype(np.float32), exponent, out)
    return out


@kernel
def _octave(down: Any, across: Any, cell: Any, gain: Any, out: Any) -> None:
    """Add gain·|Perlin noise| of the lattice gradients (down, across) with `cell` px between them."""
    columns = down.shape[1]
    slope, level = np.empty(columns), np.empty(columns)
    width = out.shape[1]
    index, share = np.empty(width, np.int32), np.empty(width)
    for x in range(width):
        place = x / cell
        index[x] = int(place)
        share[x] = place - index[x]
    for y in range(out.shape[0]):
        i = int(y / cell)
        r = y / cell - i
        s = r * r * (3 - 2 * r)
        for j in range(columns):
            slope[j] = across[i, j] + s * (across[i + 1, j] - across[i, j])
            level[j] = (1 - s) * r * down[i, j] + s * (r - 1) * down[i + 1, j]
        line = out[y]
        for x in range(width):
            j, t = index[x], share[x]
            left = t * slope[j] + level[j]
            right = (t - 1) * slope[j + 1] + level[j + 1]
            line[x] += gain * abs(left + t * t * (3 - 2 * t) * (right - left))


def turbulence(size: tuple[int, int], cell: float, gradients: list[Field]) -> Field:
    """Σ |Perlin noise| / f over octaves f = 1, 2, 4 …, the first with `cell` px between lattice points.

    `gradients` holds 2×rows×columns vectors for each octave, which are normalised here.
    """
    out = np.zeros(size, np.float32)
    for octave, vectors in enumerate(gradients):
        down, across = vectors.astype(np.float64) / np.hypot(*vectors.astype(np.float64))
        _octave(down, across, cell / 2**octave, 1.5 / 2**octave, out)
    return out


def _smooth(length: int) -> int:
    """The least 2^a·3^b·5^c that is not below `length`: Fourier transforms of such lengths are fast."""
    while True:
        rest = length
        for prime in (2, 3, 5):
            while rest % prime == 0:
                rest //= prime
        if rest == 1:
            return length
        length += 1


def _grid(size: tuple[int, int], step: float) -> tuple[int, int]:
    """The points of a grid of `step` px that covers an image."""
    return (size[0], size[1]) if step == 1 else (ceil(size[0] / step) + 1, ceil(size[1] / step) + 1)


def _over(size: tuple[int, int], field: Doubles, step: float) -> Field:
    """A field on a grid of `step` px, linear between its points, at every pixel."""
    fine = field.astype(np.float32)
    fine = fine if step == 1 else enlarge(fine, step)
    return np.ascontiguousarray(fine[: size[0], : size[1]])


def spectrum_shape(size: tuple[int, int], step: float = 1) -> tuple[int, int, int]:
    """The shape of the random numbers that `coloured_noise` needs for a field of `size`."""
    rows, columns = (_smooth(side) for side in _grid(size, step))
    return rows, columns // 2 + 1, 2


def coloured_noise(
    size: tuple[int, int], numbers: Field, *, power: float, flat: float, step: float = 1
) -> Field:
    """Noise of deviation 1 whose amplitude is proportional to (f² + flat)^(power/2), f in cycles per side.

    `numbers` are standard normal, of `spectrum_shape(size, step)`. The side is that of the square of equal
    area. The wave of frequency 0, a common shift, is part of the noise, but not of the deviation. With a
    `step` of several pixels there are no waves shorter than two steps.
    """
    rows, columns = (_smooth(side) for side in _grid(size, step))
    side = sqrt(size[0] * size[1]) / step
    fy, fx = np.fft.fftfreq(rows) * side, np.fft.rfftfreq(columns) * side
    amplitude = (fy[:, None] ** 2 + fx**2 + flat) ** (power / 2)
    amplitude[:, 0] *= sqrt(2)  # these two columns hold both a wave and its mirror image
    if columns % 2 == 0:
        amplitude[:, -1] *= sqrt(2)
    pair = numbers.astype(np.float64)
    field = np.fft.irfft2(amplitude * (pair[..., 0] + 1j * pair[..., 1]), (rows, columns))
    field = field[: _grid(size, step)[0], : _grid(size, step)[1]]
    return _over(size, field / (float(field.std()) or 1.0), step)


@kernel
def _caustics(step: Any, time: Any, out: Any) -> None:
    width = out.shape[1]
    v, total = np.empty(width), np.empty(width)
    iv, iu = np.empty(width), np.empty(width)
    for x in range(width):
        place = x * step
        v[x] = (place - np.floor(place)) * 2 * pi - 250
    for y in range(out.shape[0]):
        place = y * step
        u = (place - np.floor(place)) * 2 * pi - 250
        total[:] = 1
        iu[:], iv[:] = u, v
        for n in range(5):
            t = time * (1 - 3.5 / (n + 1))
            for x in range(width):
                down = u + _cosine(t - iu[x]) + _sine(t + iv[x])
                across = v[x] + _sine(t - iv[x]) + _cosine(t + iu[x])
                iu[x], iv[x] = down, across
                a, b = _sine(down + t), _cosine(across + t)
                # 1 / ‖(u/a, v/b)‖, without dividing by a sine that may be 0
                total[x] += abs(a * b) / (0.005 * np.sqrt((u * b) ** 2 + (v[x] * a) ** 2) + 1e-12)
        line = out[y]
        for x in range(width):
            line[x] = min(abs(1.17 - (total[x] / 5) ** 1.4) ** 8, 1.0)


_REFRACTION = 4.0  # the index of the glass that light leaves at right angles
_FLAT = 1e-3  # a surface tilted less than this cosine does not bend light


def caustic_lens(
    size: tuple[int, int], *, step: float, period: float, time: float, lens: float
) -> tuple[Field, Field, Field]:
    """Glass shaped like the light on the bed of a pool: (dy, dx) in pixels, and its slope towards the light.

    The pattern repeats every `period` px. It is made on a grid of `step` px, smoothed by one step, and tilts
    of the surface are differences over two steps. `lens` is the distance in px from the glass to the image.
    """
    light = np.empty(_grid(size, step), np.float32)
    _caustics(step / period, time, light)
    light = gaussian_field(light, (1.0, 1.0), truncate=4, rule="reflect")
    padded = np.pad(light, 1, mode="edge").astype(np.float64)
    down, across = padded[2:, 1:-1] - padded[:-2, 1:-1], padded[1:-1, 2:] - padded[1:-1, :-2]
    upright = 1 / np.sqrt(1 + down * down + across * across)  # the normal's component along the axis
    bend = upright * (np.sqrt(1 - (1 - upright * upright) / _REFRACTION**2) - upright / _REFRACTION)
    bend[upright >= 1 - _FLAT] = 0
    push = lens * bend
    return _over(size, push * down, step), _over(size, push * across, step), _over(size, down - across, step)


def board(size: tuple[int, int], cell: float, angle: float, chosen: npt.NDArray[np.bool_]) -> Field:
    """1 on the chosen black squares of a chess board turned by `angle` radians, else 0; `cell` in px.

    `chosen` is square with an even side; beyond it the board repeats.
    """
    y, x = np.arange(size[0])[:, None], np.arange(size[1])
    i = np.floor((cos(angle) * y + sin(angle) * x) / cell).astype(np.int64)
    j = np.floor((cos(angle) * x - sin(angle) * y) / cell).astype(np.int64)
    side = len(chosen)
    black = (i + j) % 2 == 0
    return np.asarray(black & chosen[i % side, j % side], np.float32)


@kernel
def _fall(paths: Any, depth: Any, out: Any) -> None:
    height, width = depth.shape
    for k in range(paths.shape[0]):
        y0, x0, y1, x1 = paths[k, 0], paths[k, 1], paths[k, 2], paths[k, 3]
        wide, opacity, distance = paths[k, 4], paths[k, 5], paths[k, 6]
        upright = abs(y1 - y0) >= abs(x1 - x0)
        a0, b0, a1, b1 = (y0, x0, y1, x1) if upright else (x0, y0, x1, y1)
        if a1 < a0:
            a0, b0, a1, b1 = a1, b1, a0, b0
        long, broad = (height, width) if upright else (width, height)
        slope = (b1 - b0) / max(a1 - a0, 1e-9)
        for a in range(max(int(np.ceil(a0 - 0.5)), 0), min(int(np.floor(a1 + 0.5)), long - 1) + 1):
            along = min(a + 0.5, a1) - max(a - 0.5, a0)  # of this pixel's length, the share that is covered
            middle = b0 + slope * (a - a0)
            low, high = middle - wide / 2, middle + wide / 2
            for b in range(max(int(np.floor(low + 0.5)), 0), min(int(np.ceil(high - 0.5)), broad - 1) + 1):
                across = min(b + 0.5, high) - max(b - 0.5, low)
                y, x = (a, b) if upright else (b, a)
                if across > 0 and along > 0 and depth[y, x] > distance:
                    out[y, x] += (np.float32(1) - out[y, x]) * np.float32(opacity * across * min(along, 1.0))


def falling(paths: Doubles, depth: Field) -> Field:
    """The opacity of drops that fall across an image, hidden by what is nearer than they are.

    A row of `paths` is (y, x) where a drop is when the exposure begins and where it ends, its width in
    pixels, its opacity and its depth in metres.
    """
    out = np.zeros(depth.shape, np.float32)
    _fall(paths, np.ascontiguousarray(depth), out)
    return out
