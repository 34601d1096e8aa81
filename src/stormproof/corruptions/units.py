"""Conditions in physical units: metres of visibility, pixels of blur, decibels of noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from stormproof.core.condition import Condition
from stormproof.corruptions.corruption import find
from stormproof.corruptions.recipes.mutators import KOSCHMIEDER, METEOROLOGICAL
from stormproof.corruptions.recipes.physical import rain_extinction


@dataclass(frozen=True, slots=True)
class Quantity:
    """A physical quantity; `unit` is empty for a plain ratio."""

    name: str
    value: float
    unit: str = ""

    def __str__(self) -> str:
        """
        >>> str(Quantity("visibility", 97.8, "m"))
        'visibility 97.8 m'
        """
        return f"{self.name} {self.value:.4g}{' ' + self.unit if self.unit else ''}"


Parameters = Mapping[str, Any]
# A quantity's name; a parameter, or what makes it from parameters; its unit.
Rule = tuple[str, str | Callable[[Parameters], float], str]


def _decibels(deviation: float) -> float:
    """The signal-to-noise ratio of a white surface for noise of this deviation."""
    return -20 * math.log10(deviation) if deviation > 0 else math.inf


def _over(constant: float, value: float) -> float:
    return constant / value if value > 0 else math.inf


_SIGHT: tuple[Rule, ...] = (
    ("visibility", lambda v: _over(KOSCHMIEDER, v["beta"]), "m"),
    ("meteorological optical range", lambda v: _over(METEOROLOGICAL, v["beta"]), "m"),
    ("extinction β", "beta", "1/m"),
)
_RULES: dict[str, tuple[Rule, ...]] = {
    "gaussian_noise": (
        ("noise σ", lambda v: 255 * v["sigma"], "grey levels"),
        ("SNR at white", lambda v: _decibels(v["sigma"]), "dB"),
    ),
    "speckle_noise": (("noise σ of the signal", "sigma", ""), ("SNR", lambda v: _decibels(v["sigma"]), "dB")),
    "shot_noise": (
        ("photons at white", "photons", ""),
        ("SNR at white", lambda v: 10 * math.log10(v["photons"]), "dB"),
    ),
    "impulse_noise": (
        ("values hit", lambda v: 100 * v["amount"], "%"),
        ("pixels hit", lambda v: 100 * (1 - (1 - v["amount"]) ** 3), "%"),  # in one channel at least
    ),
    "gaussian_blur": (("blur σ", "sigma", "px"),),
    "defocus_blur": (("blur radius", "radius", "px"),),
    "glass_blur": (("blur σ", "sigma", "px"), ("displacement", "reach", "px")),
    "motion_blur": (
        ("blur σ along the path", "sigma", "px"),
        ("path", lambda v: 2 * float(v["radius"]), "px"),
    ),
    "zoom_blur": (("largest zoom", "reach", "×"),),
    "focus_motor_damage": (("blur σ", "sigma", "px"),),
    "contrast": (("contrast left", lambda v: 100 * v["factor"], "%"),),
    "brightness": (("added brightness", lambda v: 100 * v["amount"], "%"),),
    "pixelate": (("pixel", lambda v: _over(1.0, v["factor"]), "px"),),
    "jpeg_compression": (("JPEG quality", "quality", ""),),
    "gamma_damage": (("gamma", "gamma", ""),),
    "bad_pixel_damage": (("bad pixels", lambda v: 100 * v["share"], "%"),),
    "haze": _SIGHT,
    "ray_fog": _SIGHT,
    "rain": (
        ("rain", "rate", "mm/h"),
        ("meteorological optical range", lambda v: METEOROLOGICAL / rain_extinction(v["rate"]), "m"),
    ),
    "night": (("light in the street", "lux", "lux"),),
    "sun_glare": (("light of the sun", "lux", "lux"),),
    "defocus": (
        ("blur σ of the far background", lambda v: v["kappa"] / v["focus"], "px"),
        ("focus", "focus", "m"),
    ),
}


def physical(condition: Condition) -> tuple[Quantity, ...]:
    """A condition in physical units; where none are known, its numeric parameters.

    >>> str(physical(Condition.parse("haze[visibility=100]"))[0])
    'visibility 100 m'
    """
    if condition.corruption is None or condition.is_composed:
        return tuple(quantity for part in condition.chain for quantity in physical(part))
    values = find(condition.corruption).parameters(condition)
    rules = _RULES.get(condition.corruption)
    if rules is not None:
        return tuple(
            Quantity(name, float(values[rule]) if isinstance(rule, str) else rule(values), unit)
            for name, rule, unit in rules
        )
    return tuple(Quantity(key, float(v)) for key, v in values.items() if not isinstance(v, str))
