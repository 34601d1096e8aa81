"""Light and colour: brightness, contrast, saturation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.sample import Image
from stormproof.corruptions.registry import corruption, ladder

_CUT = 1e-9  # keeps a value that is whole but for rounding noise from being truncated to the one below


@lru_cache(maxsize=16)
def _brighter(amount: float) -> npt.NDArray[np.uint8]:
    """table[V, v]: v in a pixel whose brightest channel is V, after HSV value has grown by `amount`."""
    v = np.arange(256) / 255
    value = np.clip(v + amount, 0, 1)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        saturation = np.where(v[:, None] > 0, (v[:, None] - v) / v[:, None], 0)
        table = np.clip(value * (1 - saturation) * 255, 0, 255)
    return np.asarray(table + _CUT, np.uint8)


@corruption(
    family="weather",
    cite="hendrycks2019",
    amount=ladder(0.1, 0.2, 0.3, 0.4, 0.5, low=0, high=1, unit="of full scale"),
)
def brightness(image: Image, *, amount: float) -> Image:
    """Bright daylight: HSV value raised by a fraction of full scale, hue and saturation kept.

    V, the brightest channel on a scale of 0 to 1, becomes min(V + amount, 1), and the others grow with it.
    """
    return imaging.by_brightest(image, _brighter(amount))


@corruption(
    family="digital",
    cite="hendrycks2019",
    factor=ladder(0.4, 0.3, 0.2, 0.1, 0.05, low=0, high=10, between="log", unit="×"),
)
def contrast(image: Image, *, factor: float) -> Image:
    """Contrast lost around each channel's mean.

    A value v becomes mean + factor·(v − mean).
    """
    means = imaging.channel_means(image)[:, None] / 255
    levels = np.arange(256) / 255
    tables = np.clip((levels - means) * factor + means, 0, 1) * 255
    return imaging.look_up(image, tables.astype(np.uint8))


@lru_cache(maxsize=16)
def _spread(gain: float, offset: float) -> imaging.Field:
    """spread[V, m]: what the distance to the brightest channel is multiplied by."""
    top = np.arange(256)[:, None]
    low = np.minimum(np.arange(256), top)
    chroma = np.maximum(top - low, 1)  # greys are treated apart
    saturation = np.clip(gain * chroma / np.maximum(top, 1) + offset, 0, 1)
    return np.asarray(top * saturation / chroma, np.float32)


@corruption(
    family="digital",
    cite="hendrycks2019",
    gain=ladder(0.3, 0.1, 2, 5, 20.0, low=0, high=1000, between="switch", unit="×"),
    offset=ladder(0, 0, 0, 0.1, 0.2, low=0, high=1, unit="of full saturation"),
)
def saturate(image: Image, *, gain: float, offset: float) -> Image:
    """HSV saturation scaled and shifted: 1 and 2 wash colours out, 3 to 5 exaggerate them.

    S becomes gain·S + offset, cut to 0 … 1; hue and brightness stay.
    A positive offset tints neutral pixels red, the hue HSV gives to grey. A grey image has no
    colour to change and comes back as it is.
    """
    if image.shape[2] == 1:
        return image.copy()
    return imaging.resaturate(image, _spread(gain, offset), 1 - offset)
