"""How well Stormproof agrees with imagecorruptions; used by the tests and by docs/make_fidelity.py."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import cv2
import numpy as np
import skimage.data

from helpers import reference, replay
from stormproof.core.condition import Condition
from stormproof.corruptions import corrupt_image, find, textures

DETERMINISTIC = (
    "defocus_blur",
    "zoom_blur",
    "brightness",
    "contrast",
    "pixelate",
    "jpeg_compression",
    "gaussian_blur",
    "saturate",
)
REPLAYED = ("glass_blur", "motion_blur", "snow", "frost", "fog", "elastic_transform", "spatter")
RANDOM = ("gaussian_noise", "shot_noise", "impulse_noise", "speckle_noise", *REPLAYED)
SIZES = ((97, 131), (240, 320), (480, 640))
PHOTOS: dict[str, Callable[[], np.ndarray]] = {
    "astronaut": skimage.data.astronaut,
    "chelsea": skimage.data.chelsea,
    "coffee": skimage.data.coffee,
}


def photo(name: str, size: tuple[int, int]) -> np.ndarray:
    return _photo(name, size).copy()


@cache
def _photo(name: str, size: tuple[int, int]) -> np.ndarray:
    return cv2.resize(PHOTOS[name](), size[::-1], interpolation=cv2.INTER_AREA)


@dataclass(frozen=True)
class Agreement:
    """Shares of values that are equal, within one and within two grey levels, and the mean difference."""

    equal: float
    within_1: float
    within_2: float
    bias: float


def agreement(ours: np.ndarray, theirs: np.ndarray) -> Agreement:
    difference = ours.astype(np.int16) - theirs
    size = np.abs(difference)
    return Agreement(*(float((size <= k).mean()) for k in (0, 1, 2)), float(difference.mean()))


def deterministic(name: str, severity: int, image: np.ndarray) -> Agreement:
    return agreement(
        corrupt_image(image, Condition.of(name, severity)), reference.corrupt(image, name, severity)
    )


def replayed(name: str, severity: int, image: np.ndarray, seed: int) -> Agreement:
    """Our recipe fed with the reference's own draws, against the reference."""
    corruption = find(name)
    given = {"textures": "imagecorruptions"} if name == "frost" else {}
    values = corruption.parameters(Condition.of(name, severity, given))
    known = {"images": textures.load("imagecorruptions")} if name == "frost" else {}
    draw = getattr(replay, name)(image.shape[:2], seed, **values, **known)
    return agreement(
        corruption.recipe(image, draw, **values), reference.corrupt(image, name, severity, seed=seed)
    )


@dataclass(frozen=True)
class Statistics:
    """What an image is like: mean, standard deviation, SNR in dB, histogram, radial power spectrum in dB."""

    mean: float
    sd: float
    snr: float
    histogram: np.ndarray  # share of values in each of 32 bins
    spectrum: np.ndarray  # 8 rings, equal steps of frequency

    def vector(self) -> np.ndarray:
        return np.concatenate(([self.mean, self.sd, self.snr], self.histogram, self.spectrum))


def statistics(image: np.ndarray, clean: np.ndarray) -> Statistics:
    values = image.astype(np.float64)
    error = np.square(values - clean).sum()
    snr = 10 * np.log10(np.square(clean.astype(np.float64)).sum() / max(error, 1e-9))
    histogram = np.bincount(image.ravel() >> 3, minlength=32) / image.size
    return Statistics(values.mean(), values.std(), snr, histogram, radial_spectrum(values.mean(axis=2)))


def radial_spectrum(grey: np.ndarray) -> np.ndarray:
    """Mean power in 8 rings up to the Nyquist frequency, in dB."""
    power = np.abs(np.fft.fft2(grey - grey.mean())) ** 2 / grey.size
    ring, sizes = _rings(*grey.shape)
    rings = np.bincount(ring, power.ravel(), 9) / sizes
    return 10 * np.log10(rings[:8] + 1e-9)


@cache
def _rings(height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """The ring of every frequency, the ninth beyond Nyquist's, and how many frequencies each holds."""
    fy, fx = np.fft.fftfreq(height)[:, None], np.fft.fftfreq(width)
    ring = np.minimum((np.hypot(fy, fx) * 16).astype(int), 8).ravel()
    return ring, np.bincount(ring, minlength=9)


def sampled(name: str, severity: int, image: np.ndarray, seeds: int) -> tuple[np.ndarray, np.ndarray]:
    """Statistics of our images and the reference's, one row per seed."""
    given = {"textures": "imagecorruptions"} if name == "frost" else {}
    condition = Condition.of(name, severity, given)
    ours = [statistics(corrupt_image(image, condition, seed=s), image).vector() for s in range(seeds)]
    theirs = [
        statistics(reference.corrupt(image, name, severity, seed=s), image).vector() for s in range(seeds)
    ]
    return np.stack(ours), np.stack(theirs)


def standard_errors_apart(ours: np.ndarray, theirs: np.ndarray, floor: np.ndarray) -> np.ndarray:
    """|difference of means| over its standard error, which is taken to be at least `floor`."""
    error = np.sqrt(ours.var(axis=0, ddof=1) / len(ours) + theirs.var(axis=0, ddof=1) / len(theirs))
    return np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) / np.maximum(error, floor)


# Differences below these are of no account however small the scatter is: 0.05 grey levels in mean and
# spread, 0.02 dB, 0.0005 of all values in a bin, 0.05 dB of power in a ring.
FLOOR = np.concatenate(([0.05, 0.05, 0.02], np.full(32, 0.0005), np.full(8, 0.05)))
