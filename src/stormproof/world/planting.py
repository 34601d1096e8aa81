"""Standing things along the street: which way they face, and trees of the right fineness."""

from __future__ import annotations

from stormproof.world.classes import VEGETATION
from stormproof.world.dice import Dice
from stormproof.world.light import Colour
from stormproof.world.models import plants
from stormproof.world.palette import BARKS, varied
from stormproof.world.stage import Placement
from stormproof.world.street import Street


def turned(street: Street, s: float, side: int) -> tuple[float, float]:
    """Heading of something whose x axis points away from the street."""
    hx, hy = street.ahead(s)
    return (hx, hy) if side > 0 else (-hx, -hy)


def grain(s: float) -> tuple[float, float]:
    """How finely a tree's leaves need to be drawn s metres down the street."""
    return plants.NEAR if s < 22 else plants.MIDDLE if s < 55 else plants.FAR


def planted(dice: Dice, street: Street, s: float, t: float, size: float, green: Colour) -> Placement:
    x, y, z = street.foot(s, t)
    k = size * dice.between(0.75, 1.2)
    tint = varied(dice, green, 0.8, 1.25)
    return Placement(
        plants.tree(dice.integer(plants.TREES), grain(s)),
        (x, y, z - 0.05),
        spun(dice),
        (k, k, k),
        (tint, dice.pick(BARKS)),
        semantic=VEGETATION,
        seed=dice.integer(1 << 20),
    )


def spun(dice: Dice) -> tuple[float, float]:
    """Any direction, by the rational points of the circle."""
    q = dice.between(-1, 1)
    c, s = (1 - q * q) / (1 + q * q), 2 * q / (1 + q * q)
    return (s, c) if dice.chance(0.5) else (-s, -c)
