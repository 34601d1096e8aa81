"""Traffic lights and signs, with their posts."""

from __future__ import annotations

from collections.abc import Iterator

from stormproof.world.classes import LIGHT, POLE, SEMANTIC_OF, SIGN, STOP
from stormproof.world.dice import Dice
from stormproof.world.materials import METALS, tone, tones
from stormproof.world.models import furniture
from stormproof.world.plan import Plan
from stormproof.world.stage import Placement
from stormproof.world.street import Street

HEADS = tones("1c1e1e 2a2c28 22301f 4a4a48 c09a28")
LAMPS = (tone("ff3a28"), tone("ffb428"), tone("50f0a0"), tone("1a1616"))


def _post(
    street: Street, s: float, t: float, high: float, kind: int, tint: tuple[float, float, float]
) -> Placement:
    return Placement(
        furniture.pole(kind), street.foot(s, t), street.ahead(s), (1.0, 1.0, high), (tint,), semantic=POLE
    )


def signpost(
    dice: Dice, street: Street, s: float, t: float, kind: int, *, backwards: bool
) -> Iterator[Placement]:
    """A sign on its post, facing traffic going ahead, or oncoming traffic."""
    metal = dice.pick(METALS)
    high = dice.between(2.2, 2.8) if kind != furniture.DIRECTION else dice.between(2.9, 3.6)
    yield _post(street, s, t, high + 0.3, 1 if kind != furniture.DIRECTION else 2, metal)
    x, y, z = street.foot(s, t)
    hx, hy = street.ahead(s)
    hx, hy = (-hx, -hy) if backwards else (hx, hy)
    at = (x - 0.07 * hx, y - 0.07 * hy, z + high)
    k = dice.between(0.9, 1.25)
    stop = kind == furniture.STOP
    yield Placement(
        furniture.sign(kind), at, (hx, hy), (k, 1.0, k), (metal, tone("8a8c8c")), (float(kind),),
        SEMANTIC_OF[STOP] if stop else SIGN, STOP if stop else -1, seed=dice.integer(1 << 20),
    )  # fmt: skip


def _signal(
    dice: Dice, street: Street, s: float, t: float, lit: int, *, backwards: bool, arm: float
) -> Iterator[Placement]:
    """A traffic light on its post, and one on an arm over the road if `arm` is not 0."""
    metal, head = dice.pick(METALS), dice.pick(HEADS)
    hx, hy = street.ahead(s)
    ax, ay = (-hx, -hy) if backwards else (hx, hy)
    x, y, z = street.foot(s, t)
    colours = (head, *LAMPS)
    high = dice.between(2.6, 3.2)
    yield _post(street, s, t, 6.0 if arm else high + 0.6, 2 if not arm else 3, metal)
    yield Placement(
        furniture.traffic_light(lit), (x - 0.35 * ax, y - 0.35 * ay, z + high), (ax, ay), colours=colours,
        semantic=SEMANTIC_OF[LIGHT], label=LIGHT, seed=1,
    )  # fmt: skip
    if arm:
        inward = -1.0 if t > 0 else 1.0
        yield Placement(
            furniture.signal_mast(), (x, y, z + 5.8), (inward * hx, inward * hy), (arm, 1.0, 1.0), (metal,),
            semantic=POLE,
        )  # fmt: skip
        xx, yy, _ = street.point(s, t + inward * arm * 0.92)
        yield Placement(
            furniture.traffic_light(lit), (xx - 0.3 * ax, yy - 0.3 * ay, z + 5.45), (ax, ay),
            colours=colours, semantic=SEMANTIC_OF[LIGHT], label=LIGHT, seed=2,
        )  # fmt: skip


def junction(dice: Dice, plan: Plan) -> Iterator[Placement]:
    """Traffic lights or stop signs where streets meet, or lights at a pedestrian crossing."""
    street, m = plan.street, plan.street.marks
    lit = dice.pick((0, 2, 2, 0, 1))
    arm = dice.between(3.0, 5.5) if dice.chance(0.45) else 0.0
    if m.crossing < 500:
        near, far = m.crossing - m.crossing_half - 1.0, m.crossing + m.crossing_half + 1.0
        if dice.chance(0.6):
            for s, side, backwards in (
                (near, 1, False),
                (far, 1, False),
                (far, -1, False),
                (far, -1, True),
                (near, 1, True),
            ):
                if dice.chance(0.75):
                    edge = m.half + 0.45
                    yield from _signal(
                        dice, street, s + (0.5 if backwards else 0.0), side * edge, lit,
                        backwards=backwards, arm=arm if side > 0 and not backwards else 0.0,
                    )  # fmt: skip
        else:
            yield from signpost(dice, street, near - 1.0, m.half + 0.5, furniture.STOP, backwards=False)
            if dice.chance(0.7):
                yield from signpost(dice, street, far + 1.0, -m.half - 0.5, furniture.STOP, backwards=True)
            if dice.chance(0.5):
                yield from signpost(dice, street, far + 1.0, m.half + 0.5, furniture.STOP, backwards=False)
    elif m.zebra < 500:
        if dice.chance(0.5):
            for side in (-1, 1):
                yield from _signal(
                    dice, street, m.zebra - 2.2, side * (m.half + 0.45), lit, backwards=False, arm=0.0
                )
        else:
            for side in (-1, 1):
                yield from signpost(
                    dice, street, m.zebra - 2.0, side * (m.half + 0.5), furniture.CROSSING, backwards=False
                )


def along(dice: Dice, plan: Plan) -> Iterator[Placement]:
    """Signs at random places beside the road."""
    street, m = plan.street, plan.street.marks
    kinds = (
        furniture.SPEED, furniture.SPEED, furniture.WARNING, furniture.PARKING, furniture.PARKING,
        furniture.YIELD, furniture.NO_ENTRY, furniture.DIRECTION, furniture.NAME,
    )  # fmt: skip
    for _ in range(2 + dice.integer(5)):
        u = dice.unit()
        s, side = 4.0 + 40.0 * u * u, 1 if dice.chance(0.6) else -1
        kind = dice.pick(kinds)
        if not street.crosses(s, 1.0):
            yield from signpost(
                dice, street, s, side * (m.half + dice.between(0.35, 0.8)), kind, backwards=dice.chance(0.25)
            )
    if dice.chance(0.25):
        side = 1 if dice.chance(0.7) else -1
        yield from signpost(
            dice, street, dice.between(4, 16), side * (m.half + 0.5), furniture.STOP, backwards=False
        )
