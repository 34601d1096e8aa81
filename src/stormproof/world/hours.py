"""The hour of the day: where the sun stands, and what it and the sky give."""

from __future__ import annotations

from math import sqrt

from stormproof.world.dice import Dice
from stormproof.world.light import Colour, Light
from stormproof.world.stage import tone


def _unit(x: float, y: float, z: float) -> Colour:
    size = sqrt(x * x + y * y + z * z)
    return x / size, y / size, z / size


def _scaled(code: str, k: float) -> Colour:
    r, g, b = tone(code)
    return r * k, g * k, b * k


# hour: the sun's height per metre of ground; beam, zenith, horizon, ambient and bounce, each as colour
# and strength; the share of clouds.
# fmt: off
_HOURS = {
    "noon": ((1.0, 2.2), "fff4e2", 2.3, "5a8fd0", 0.75, "c4d8ee", 0.95, "b4cbea", 0.75,
        "a49a88", 0.40, (0.0, 0.65)),
    "morning": ((0.5, 0.9), "ffe6c0", 2.1, "6f9fd6", 0.75, "e2e0da", 0.95, "b0c4e4", 0.62,
        "a8967c", 0.36, (0.0, 0.6)),
    "golden": ((0.28, 0.45), "ffc680", 2.2, "6c8fc4", 0.62, "f4cf9c", 0.95, "a8b4d2", 0.50,
        "a88868", 0.34, (0.1, 0.7)),
    "overcast": ((1.0, 1.6), "ffffff", 0.0, "b4bcc6", 0.85, "ced3d8", 0.90, "d8dee6", 1.10,
        "a8a6a0", 0.55, (0.75, 1.0)),
    "bright": ((0.7, 1.4), "fffaf0", 0.9, "9cb4d2", 0.85, "dfe4e8", 0.95, "cdd6e2", 0.95,
        "aaa69c", 0.5, (0.5, 0.9)),
    "dusk": ((0.3, 0.5), "ffb070", 0.40, "4c6a9c", 0.60, "f2c096", 0.75, "96a0b6", 0.55,
        "7c7268", 0.30, (0.2, 0.7)),
}
# fmt: on
_WHEN = ("noon", "noon", "morning", "morning", "golden", "overcast", "overcast", "bright", "bright", "dusk")


def make_light(dice: Dice) -> Light:
    """An hour of the day, a place of the sun, some clouds."""
    hour = dice.pick(_WHEN)
    rise, beam, bk, zenith, zk, horizon, hk, ambient, ak, bounce, gk, clouds = _HOURS[hour]
    # The sun stands anywhere around, at a height of `rise` per metre of ground.
    x, y = dice.between(-1, 1), dice.between(-1, 1)
    flat = sqrt(x * x + y * y) + 1e-3
    up = dice.between(*rise)
    sun = _unit(x / flat, y / flat, up)
    warm = dice.between(0.92, 1.08)
    beam_at = _scaled(beam, bk * dice.between(0.8, 1.1))
    return Light(
        sun,
        (sun[0] / sun[2], sun[1] / sun[2]),
        (beam_at[0] * warm, beam_at[1], beam_at[2] / warm),
        _scaled(zenith, zk),
        _scaled(horizon, hk),
        _scaled(ambient, ak),
        _scaled(bounce, gk),
        dice.between(*clouds),
        1.0 if hour == "dusk" else 0.25,
        dice.between(1.1, 1.65) * (1.7 if hour == "dusk" else 1.0),
        dice.integer(1 << 20),
    )
