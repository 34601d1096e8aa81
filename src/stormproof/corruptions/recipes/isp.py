"""The image signal processor: a chain of corrections, and what remains when one of them fails.

    sensor ─► black level ─► lens shading ─► white balance ─► bad pixels ─► colour interpolation ─►
              gamma ─► luma and chroma ─► image

A photograph is what a sound camera delivers: every stage has undone exactly what the lens and the sensor did.
So a pass without faults returns the photograph, and a faulty stage shows what it failed to undo. The stages
up to white balance scale and shift each colour separately, which commutes with interpolation, so they work on
the photograph directly. Bad pixels do not: they are set on the photograph's RGGB mosaic, and only pixels
whose interpolation reads one are interpolated again (`imaging.demosaic`). Developing the whole photograph a
second time would blur it as well (28 dB with plain interpolation, on COCO), which no camera does.

Values stay in the photograph's encoding, as in the authors' scripts, hence in the published rows, except that
lens shading scales light, as a lens does. A grey image is the luma of a neutral scene, so a colour fault
shows as the luma of its effect on that scene. A grey sensor has no filters, so its bad pixels do not spread.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import U16, Draw, normal_quantiles
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import constant, corruption, ladder

fault = partial(corruption, family="isp", cite="liu2024")

_PROFILE = 1024  # steps of a radial profile, interpolated linearly
_LEVELS = np.arange(256, dtype=np.float64)

Tables = npt.NDArray[np.uint8]


def _tables(levels: npt.NDArray[np.float64], channels: int) -> Tables:
    """Look-up tables for R, G and B; for a grey image, one for its luma."""
    rgb = np.clip(levels, 0, 255)
    shown = rgb if channels == 3 else np.array(imaging.LUMA) @ rgb
    return np.rint(shown).astype(np.uint8).reshape(channels, 256)


@lru_cache(maxsize=64)
def _lifted(channel: int, share: float, level: float, channels: int) -> Tables:
    """(1 − share)·v + share·level in one colour."""
    rgb = np.tile(_LEVELS, (3, 1))
    rgb[channel] += share * (level - rgb[channel])
    return _tables(rgb, channels)


@lru_cache(maxsize=64)
def _amplified(gains: tuple[float, float, float], channels: int) -> Tables:
    return _tables(np.array(gains)[:, None] * _LEVELS, channels)


def _off_black(image: Image, law: str, *, gain: float, channel: int, share: float, level: float) -> Image:
    """A wrong black level: green amplified if the law is "gain", else one channel lifted."""
    channels = image.shape[2]
    wrong = _amplified((1, gain, 1), channels) if law == "gain" else _lifted(channel, share, level, channels)
    return imaging.look_up(image, wrong)


@fault(
    share=ladder(0.15, 0.20, 0.25, 0.30, 0.40, low=0, high=1, unit="weight"),
    level=constant(255.0, low=0, high=255, unit="grey levels"),
    law=constant("pedestal", choices=("pedestal", "gain")),
)
def insufficient_black_level(image: Image, *, share: float, level: float, law: str) -> Image:
    """Too little black level subtracted: red keeps a pedestal, and shadows turn red.

    Red becomes (1 − share)·v + share·level. The authors' script keeps the share at 0.3 and raises the
    level (suite `camera-variants`). law="gain" follows the paper's text instead, too small a gain on
    green: green becomes (1 − share)·v, and the image turns magenta.
    """
    return _off_black(image, law, gain=1 - share, channel=0, share=share, level=level)


@fault(
    share=ladder(0.10, 0.15, 0.20, 0.25, 0.30, low=0, high=1, unit="weight"),
    level=constant(255.0, low=0, high=255, unit="grey levels"),
    law=constant("pedestal", choices=("pedestal", "gain")),
)
def excessive_black_level(image: Image, *, share: float, level: float, law: str) -> Image:
    """Black level corrected too far: green is lifted, and shadows turn green.

    Green becomes (1 − share)·v + share·level, as in the authors' script, which keeps the share at 0.3
    and raises the level. law="gain" follows the paper's text, too large a gain: (1 + share)·v.
    """
    return _off_black(image, law, gain=1 + share, channel=1, share=share, level=level)


_DISPLAY = 2.2  # light is value^2.2, so light × g is value × g^(1/2.2)


@lru_cache(maxsize=16)
def _falloff(strength: float, profile: str) -> imaging.Field:
    """The gain of values from the centre to the corner; of light, (1 + k·q²)⁻² is the law of cos⁴."""
    q = np.linspace(0, 1, _PROFILE)
    if profile == "linear":
        return np.maximum(1 - strength * q, 0).astype(np.float32)
    return ((1 + strength * q**2) ** (-2 / _DISPLAY)).astype(np.float32)


@fault(
    version=2,
    strength=ladder(0.5, 1.0, 1.5, 2.25, 3.0, low=0, high=100, unit="squared focal lengths"),
    profile=constant("cos4", choices=("cos4", "linear")),
)
def lens_shading_damage(image: Image, *, strength: float, profile: str) -> Image:
    """The lens's falloff left uncorrected: the image darkens towards its corners.

    Light falls by (1 + k·q²)⁻², the cos⁴ law for a half-diagonal of √k focal lengths; q goes from 0 at the
    centre to 1 in the corners. Values stand for light by a power of 2.2, so they fall by the 2.2th root of
    that: at k = 1 to 25 % of the light and 53 % of the value. The severities are lenses one could buy, of
    71° to 120° across the diagonal. The paper's SSIM of 0.36 requires k = 5 … 50, corners at 2.8 % down to
    0.04 % of their light, and may be a measurement error (docs/fidelity.md; suite `camera-variants` has
    them). profile="linear" is max(0, 1 − k·q) of the values themselves, close to the authors' script at
    k = 1.
    """
    height, width = image.shape[:2]
    centre = (height - 1) / 2, (width - 1) / 2
    reach = max(float(np.hypot(*centre)), 1.0)
    return imaging.radial(image, _falloff(strength, profile), centre=centre, reach=reach, grey=0)


@fault(
    version=2,
    error=ladder(0.2, 0.4, 0.6, 0.8, 1.0, low=0, high=2.5, unit="× 100 grey levels"),
    law=constant("misread", choices=("misread", "grey_world", "gains")),
)
def white_balance_damage(image: Image, *, error: float, law: str) -> Image:
    """White balance from wrong measurements: the image turns red.

    The camera divides grey by its measured mean of each colour, and reads green and blue 100·error grey
    levels too high. The photograph has the right balance, so its gains are those of the wrong measurements
    relative to those of the right ones: an error of 0 changes nothing, and every gain moves in one direction.
    law="grey_world" is the authors' script, which balances the photograph a second time, by grey world, so
    that a weak fault may undo a cast of the photograph and change it less than none. law="gains" does not
    depend on the image: red ×(1 + error), blue ×(1 − error), then all three scaled so that a neutral grey
    keeps its luma.
    """
    if law == "gains":
        gains = _sided_gains(error)
    else:
        gains = _misread_gains(imaging.channel_means(image), error, again=law == "grey_world")
    levels = np.clip(np.array(gains)[:, None] * _LEVELS, 0, 255)
    if law == "grey_world":  # truncated, as in the script; the tiny amount keeps whole products whole
        levels = np.floor(levels + 1e-9)
    return imaging.look_up(image, _tables(levels, image.shape[2]))


def _misread_gains(means: npt.NDArray[np.float64], error: float, *, again: bool) -> tuple[float, ...]:
    true = np.maximum(np.broadcast_to(means, 3), 1e-3)
    read = true + 100 * error * np.array([0, 1, 1])
    gains = np.floor(read.sum()) / 3 / read if again else read.sum() / true.sum() * true / read
    return tuple(map(float, gains))


def _sided_gains(error: float) -> tuple[float, ...]:
    gains = np.array([1 + error, 1, max(1 - error, 0)])
    return tuple(map(float, gains / (np.array(imaging.LUMA) @ gains)))


@fault(
    owner="camera",
    version=2,
    nested=True,
    share=ladder(0.02, 0.05, 0.08, 0.12, 0.20, low=0, high=1, unit="of all sites"),
    fault=constant("dead", choices=("dead", "dead_and_hot")),
    law=constant("black", choices=("black", "mosaic")),
)
def bad_pixel_damage(image: Image, draw: Draw, *, share: float, fault: str, law: str) -> Image:
    """Dead pixels left uncorrected: a share of them reads black, in all colours.

    This is the paper's text. law="mosaic" is the authors' script: sites of the sensor's mosaic read black,
    and interpolation spreads each over its neighbours, as a dark or coloured blot of 3×3 pixels; pixels
    without a bad site in their 5×5 keep the photograph's values. fault="dead_and_hot" makes half of them
    white; in real sensors their share is 0.001 to 0.1 (suite `camera-variants`).
    """
    bits = draw.bits("sites", image.shape[:2])
    if law == "black" and fault == "dead_and_hot":
        return imaging.black_and_white_pixels(image, share, bits)
    if law == "black":
        return imaging.dissolve(image, np.zeros_like(image), share, bits)
    raw = imaging.mosaic(image)
    if fault == "dead":
        faulty = np.where(bits < round(share * U16), np.uint8(0), raw)
    else:
        faulty = imaging.salt_and_pepper(raw, share, bits)
    return _interpolate(faulty, raw, image)


def _interpolate(faulty: Image, raw: Image, image: Image) -> Image:
    """The image that a faulty raw develops into; if there is no whole cell of filters, sites are pixels."""
    if image.shape[2] == 3 and min(image.shape[:2]) >= 2:
        return imaging.demosaic(faulty, image)
    return np.where((faulty != raw)[..., None], faulty[..., None], image)


@fault(
    owner="camera",
    share=ladder(0.2, 0.4, 0.6, 0.8, 1.0, low=0, high=1, unit="of all pixels"),
    law=constant("luma", choices=("luma", "bilinear")),
)
def cfa_interpolation_damage(image: Image, draw: Draw, *, share: float, law: str) -> Image:
    """Colour interpolation fails in a share of the pixels, which keep their luma and lose their colour.

    This is the authors' script. law="bilinear" is the milder fault: those pixels interpolate each missing
    colour from its neighbours without regard to the other colours, so that edges fray (zipper) and fine
    detail shows false colours. A grey image has no colour to lose and is returned unchanged.
    """
    if image.shape[2] == 1:
        return image.copy()
    if law == "luma":
        failed = np.repeat(imaging.grey_of(image), 3, axis=2)
    elif min(image.shape[:2]) >= 2:
        failed = imaging.demosaic(imaging.mosaic(image), np.zeros_like(image))
    else:
        failed = image
    return imaging.dissolve(image, failed, share, draw.bits("pixels", image.shape[:2]))


@fault(gamma=ladder(1.2, 1.4, 1.6, 1.8, 2.2, low=0.05, high=20, unit="exponent"))
def gamma_damage(image: Image, *, gamma: float) -> Image:
    """A wrong gamma curve: v becomes v^γ on a scale of 0 to 1, and mid-tones darken.

    Below 1 they brighten: suite `camera-variants` has γ 0.8 … 0.4.
    """
    table = np.rint((_LEVELS / 255) ** gamma * 255).astype(np.uint8)
    return imaging.look_up(image, np.tile(table, (image.shape[2], 1)))


@lru_cache(maxsize=16)
def _chroma_steps(sd: float) -> npt.NDArray[np.int16]:
    return np.clip(np.rint(sd * normal_quantiles()), -256, 256).astype(np.int16)


@fault(
    owner="frame",
    version=2,
    noise=ladder(30.0, 45, 60, 80, 100, low=0, high=1000, unit="grey levels"),
    blur=ladder(1.2, 1.7, 2.2, 2.8, 3.5, low=0, high=50, unit="px"),
)
def colour_space_damage(image: Image, draw: Draw, *, noise: float, blur: float) -> Image:
    """Neither colour noise removed nor edges sharpened: noisy chroma, soft luma.

    Normal noise of `noise` grey levels on Cr and Cb, a Gaussian of `blur` pixels on Y, as in the paper;
    `colour_space_wraparound` is what its script does. A grey image has only luma. The severities match the
    paper's VIF; noise of 8 to 52 with blur of 0.5 to 1.8 (suite `camera-variants`) matches its SSIM.
    """
    yuv = imaging.to_yuv(image)
    luma = imaging.gaussian_blur(yuv[..., :1], blur)
    if image.shape[2] == 1:
        return luma
    bits = draw.bits("chroma", (*image.shape[:2], 2))
    chroma = imaging.add_noise(yuv[..., 1:], _chroma_steps(noise), bits)
    return imaging.from_yuv(np.concatenate((luma, chroma), axis=2))


@fault(owner="frame", share=ladder(0.02, 0.06, 0.12, 0.25, 0.40, low=0, high=1, unit="of all pixels"))
def colour_space_wraparound(image: Image, draw: Draw, *, share: float) -> Image:
    """Offsets subtracted twice in a share of the pixels: Y − 16, Cr − 128, Cb − 128, wrapping at 0.

    The authors' script for `colour_space_damage`: garish dots. On a grey image only Y wraps.
    """
    offsets = np.array([16, 128, 128], np.uint8)[: image.shape[2]]
    wrapped = imaging.from_yuv(imaging.to_yuv(image) - offsets)
    return imaging.dissolve(image, wrapped, share, draw.bits("pixels", image.shape[:2]))
