"""People on foot and on bicycles. Slots: skin, hair, top, legs, shoes, bag or hat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from stormproof.core.randomness import Draw
from stormproof.world.materials import CLOTH, MATTE
from stormproof.world.mesh import Mesh, Point, ball, circle, join, moved, painted_box, tube, turn

SKIN, HAIR, TOP, LEGS, SHOES, EXTRA = range(6)
WALKERS = 40
RIDERS = 6
BIKES = 3


@dataclass(frozen=True, slots=True)
class _Body:
    """Proportions in metres, and the phase of the stride in turns."""

    height: float
    girth: float
    stride: float
    phase: float
    coat: float  # how far a coat, skirt or dress reaches below the hip
    lean: float


@dataclass(frozen=True, slots=True)
class _Limb:
    """A leg from hip to ankle, or an arm from shoulder to hand."""

    start: Point
    bend: Point  # knee or elbow
    end: Point


def _leg_at(hip: Point, thigh: float, shin: float, swing: float, bend: float) -> _Limb:
    """A leg that swings by `swing` turns at the hip and bends back by `bend` turns at the knee."""
    c, s = turn(swing)
    knee = (hip[0], hip[1] + thigh * s, hip[2] - thigh * c)
    c, s = turn(swing - bend)
    return _Limb(hip, knee, (knee[0], knee[1] + shin * s, knee[2] - shin * c))


def _leg(at: _Limb, girth: float, bare: bool) -> list[Mesh]:
    hip, knee, ankle = at.start, at.bend, at.end
    toe = (ankle[0], ankle[1] + 0.17, ankle[2] - 0.035)
    lower = SKIN if bare else LEGS
    return [
        tube(knee, hip, 0.062 * girth, 0.088 * girth, CLOTH, LEGS, capped=False),
        tube(
            ankle, knee, 0.042 * girth, 0.062 * girth, CLOTH if lower == LEGS else MATTE, lower, capped=False
        ),
        tube((ankle[0], ankle[1] - 0.06, ankle[2] - 0.03), toe, 0.05, 0.035, MATTE, SHOES, sides=5),
    ]


def _arm_at(shoulder: Point, upper: float, fore: float, swing: float, bend: float) -> _Limb:
    c, s = turn(swing)
    out = 0.03 if shoulder[0] > 0 else -0.03
    elbow = (shoulder[0] + out, shoulder[1] + upper * s, shoulder[2] - upper * c)
    c, s = turn(swing + bend)
    return _Limb(shoulder, elbow, (elbow[0] - out * 0.5, elbow[1] + fore * s, elbow[2] - fore * c))


def _arm(at: _Limb, girth: float, sleeve: bool) -> list[Mesh]:
    shoulder, elbow, hand = at.start, at.bend, at.end
    return [
        tube(elbow, shoulder, 0.042 * girth, 0.055 * girth, CLOTH, TOP, capped=False),
        tube(
            hand, elbow, 0.033 * girth, 0.042 * girth, CLOTH if sleeve else MATTE, TOP if sleeve else SKIN,
            capped=False,
        ),
        ball(hand, (0.035, 0.045, 0.05), MATTE, SKIN, sides=5, rings=3),
    ]  # fmt: skip


def _head(neck: Point, size: float, long_hair: bool, hat: bool) -> list[Mesh]:
    x, y, z = neck
    r = 0.095 * size
    middle = (x, y + 0.015, z + 0.17 * size)
    parts = [
        tube((x, y, z - 0.04), (x, y + 0.01, z + 0.1), 0.05, 0.048, MATTE, SKIN, sides=5, capped=False),
        ball(middle, (r * 0.86, r, r * 1.22), MATTE, SKIN),
        ball(
            (x, y - 0.006, middle[2] + 0.012), (r * 0.95, r * 1.07, r * 1.25), MATTE, HAIR, bottom=0.25,
            rings=4,
        ),
        ball(
            (x, y - 0.028, middle[2]), (r * 0.92, r * 0.95, r * 1.15), MATTE, HAIR, bottom=-0.5, top=0.6,
            rings=3,
        ),
    ]  # fmt: skip
    if long_hair:
        parts.append(
            tube(
                (x, y - 0.06, middle[2]), (x, y - 0.085, z - 0.12), r * 0.85, r * 0.7, MATTE, HAIR,
                flatness=0.6,
            )
        )  # fmt: skip
    if hat:
        parts.append(
            ball((x, y, middle[2] + 0.035), (r * 1.1, r * 1.2, r * 1.2), MATTE, EXTRA, bottom=0.2, rings=3)
        )
    return parts


def _joints(neck: Point, size: float, arms: Sequence[_Limb], legs: Sequence[_Limb]) -> tuple[Point, ...]:
    """Where COCO's seventeen joints are; limbs are given left, then right."""
    x, y, z = neck[0], neck[1] + 0.015, neck[2] + 0.17 * size
    r = 0.095 * size
    nose = (x, y + r, z - 0.02 * size)
    eyes = [(x + side * 0.033 * size, y + 0.9 * r, z + 0.02 * size) for side in (-1, 1)]
    ears = [(x + side * 0.86 * r, y, z) for side in (-1, 1)]
    upper = [getattr(arm, part) for part in ("start", "bend", "end") for arm in arms]
    lower = [getattr(leg, part) for part in ("start", "bend", "end") for leg in legs]
    return (nose, *eyes, *ears, *upper, *lower)


def _torso(hip: float, shoulder: float, girth: float, lean: float) -> list[Mesh]:
    """Hips to shoulders, leaning forwards by `lean` metres at the top."""
    waist = hip + 0.45 * (shoulder - hip)
    a, b, c = (0.0, 0.0, hip - 0.04), (0.0, lean * 0.45, waist), (0.0, lean, shoulder)
    return [
        tube(a, b, 0.165 * girth, 0.150 * girth, CLOTH, TOP, sides=8, flatness=0.66, capped=False),
        tube(b, c, 0.150 * girth, 0.190 * girth, CLOTH, TOP, sides=8, flatness=0.62, capped=False),
        ball(c, (0.195 * girth, 0.115 * girth, 0.07), CLOTH, TOP, rings=3),
        tube(
            (0.0, 0.0, hip - 0.12), (0.0, 0.0, hip + 0.02), 0.15 * girth, 0.165 * girth, CLOTH, LEGS,
            sides=8, flatness=0.66,
        ),
    ]  # fmt: skip


def _walking(b: _Body, *, bare_legs: bool, sleeve: bool, long_hair: bool, hat: bool, bag: int) -> Mesh:
    k = b.height / 1.75
    hip, shoulder = 0.92 * k, 1.42 * k
    _, s = turn(b.phase)
    swing = b.stride * s
    parts: list[Mesh] = []
    legs, arms = list[_Limb](), list[_Limb]()
    for side, sign in ((-1, 1.0), (1, -1.0)):
        back = max(0.0, -sign * s) * b.stride * 1.1 + 0.01
        legs.append(_leg_at((side * 0.09 * b.girth, 0.0, hip), 0.43 * k, 0.42 * k, sign * swing, back))
        high = (side * 0.20 * b.girth, b.lean, shoulder - 0.02)
        arms.append(_arm_at(high, 0.29 * k, 0.27 * k, -sign * swing * 0.9, 0.05))
        parts += _leg(legs[-1], b.girth * k, bare_legs)
        parts += _arm(arms[-1], k, sleeve)
    parts += _torso(hip, shoulder, b.girth * k, b.lean)
    if b.coat > 0:
        parts.append(
            tube(
                (0, 0, hip - b.coat), (0, 0, hip + 0.1), 0.19 * b.girth + 0.08 * b.coat, 0.155 * b.girth,
                CLOTH, TOP if b.coat > 0.3 else LEGS, sides=8, flatness=0.8,
            )
        )  # fmt: skip
    neck = (0.0, b.lean + 0.01, shoulder + 0.05)
    parts += _head(neck, k, long_hair, hat)
    if bag == 1:  # a rucksack
        parts.append(
            painted_box(
                (-0.15, b.lean - 0.30, shoulder - 0.48), (0.15, b.lean - 0.10, shoulder - 0.02), MATTE, EXTRA
            )
        )
    elif bag == 2:  # a bag in the hand
        parts.append(painted_box((0.22, -0.14, 0.45 * k), (0.32, 0.16, 0.75 * k), MATTE, EXTRA))
    return replace(join(*parts), places=_joints(neck, k, arms, legs))


@lru_cache(maxsize=WALKERS)
def walker(kind: int) -> Mesh:
    """A person who walks towards +y or stands; one in eight is a child."""
    u = Draw.keyed(0, "world-walker", kind).uniforms("body", 12).tolist()
    child = kind % 8 == 7
    height = (1.05 + 0.35 * u[0]) if child else (1.56 + 0.32 * u[0])
    standing = kind % 4 == 1
    dress = u[6] < 0.3
    body = _Body(
        height, (0.82 if child else 0.9) + 0.3 * u[1], 0.015 if standing else 0.06 + 0.04 * u[2], u[3],
        (0.25 + 0.3 * u[4]) if dress else 0.0, 0.02 + 0.05 * u[5],
    )  # fmt: skip
    return _walking(
        body, bare_legs=dress or u[7] < 0.2, sleeve=u[8] < 0.65, long_hair=u[9] < 0.45, hat=u[10] < 0.2,
        bag=int(u[11] * 4),
    )  # fmt: skip


def _ring(y: float, radius: float) -> Mesh:
    """A bicycle wheel: a thin tyre with a few spokes, in the plane x = 0."""
    rim = [(y + radius * c, radius * s + radius) for c, s in circle(14)]
    parts = [
        tube((0, *rim[k]), (0, *rim[(k + 1) % 14]), 0.022, 0.022, MATTE, 1, sides=4, capped=False)
        for k in range(14)
    ]
    parts += [
        tube((0, y, radius), (0, *rim[k]), 0.006, 0.006, MATTE, 2, sides=3, capped=False)
        for k in range(0, 14, 2)
    ]
    return join(*parts)


@lru_cache(maxsize=BIKES)
def bicycle(kind: int) -> Mesh:
    """A bicycle heading towards +y. Slots: frame, tyre, metal, saddle, basket."""
    r, y = 0.34, 0.54
    crank, seat, head = (0.0, -0.08, 0.30), (0.0, -0.24, 0.86), (0.0, 0.36, 0.86)
    low = kind == 1  # a step-through frame
    bars = (0.0, 0.33, 1.0)
    t = 0.024
    joint = (0.0, -0.15, 0.55) if low else (0.0, -0.23, 0.82)
    parts = [
        _ring(-y, r), _ring(y, r), tube(crank, seat, t, t, MATTE, 0, sides=4),
        tube(crank, (0, 0.40, 0.76), t, t, MATTE, 0, sides=4), tube(joint, head, t, t, MATTE, 0, sides=4),
        tube((0, -y, r), crank, t, t, MATTE, 0, sides=4),
        tube((0, -y, r), joint, t * 0.8, t * 0.8, MATTE, 0, sides=4),
        tube((0, y, r), bars, t, t, MATTE, 0, sides=4),
        tube((-0.27, 0.28, 1.02), (0.27, 0.28, 1.02), 0.018, 0.018, MATTE, 2, sides=4),
        painted_box((-0.07, -0.38, 0.88), (0.07, -0.12, 0.94), MATTE, 3),
        tube((-0.03, -0.08, 0.30), (0.06, -0.08, 0.30), 0.09, 0.09, MATTE, 2, sides=8),
    ]  # fmt: skip
    if kind == 2:
        parts.append(painted_box((-0.17, 0.45, 0.82), (0.17, 0.72, 1.02), MATTE, 4))
    return join(*parts)


@lru_cache(maxsize=RIDERS)
def rider(kind: int) -> Mesh:
    """A cyclist without the bicycle, hands on the bars, one pedal up."""
    u = Draw.keyed(0, "world-rider", kind).uniforms("body", 6).tolist()
    girth, up = 0.95 + 0.2 * u[0], 0.10 * (1 - 2 * (kind % 2))
    hip: Point = (0.0, -0.24, 0.98)
    lean = 0.20 + 0.18 * u[1]
    parts = [moved(m, (0, hip[1], 0)) for m in _torso(hip[2], hip[2] + 0.47, girth, lean)]
    legs, arms = list[_Limb](), list[_Limb]()
    for side, sign in ((-1, 1.0), (1, -1.0)):
        low = (side * 0.09, hip[1], hip[2] - 0.02)
        legs.append(_leg_at(low, 0.42, 0.42, 0.12 + sign * up * 0.7, 0.14 + sign * up * 0.9))
        parts += _leg(legs[-1], girth, u[2] < 0.3)
        shoulder = (side * 0.20 * girth, hip[1] + lean, hip[2] + 0.44)
        elbow = (side * 0.27, hip[1] + lean + 0.10, hip[2] + 0.20)
        arms.append(_Limb(shoulder, elbow, (side * 0.25, 0.28, 1.04)))
        parts.append(tube(elbow, shoulder, 0.042, 0.055, CLOTH, TOP))
        parts.append(
            tube(
                arms[-1].end, elbow, 0.033, 0.042, CLOTH if u[3] < 0.6 else MATTE,
                TOP if u[3] < 0.6 else SKIN,
            )
        )  # fmt: skip
    neck = (0.0, hip[1] + lean + 0.02, hip[2] + 0.52)
    parts += _head(neck, 1.0, u[4] < 0.3, u[5] < 0.6)
    if kind % 3 == 0:
        parts.append(
            painted_box(
                (-0.14, hip[1] - 0.12, hip[2] + 0.05), (0.14, hip[1] + 0.08, hip[2] + 0.42), MATTE, EXTRA
            )
        )
    return replace(join(*parts), places=_joints(neck, 1.0, arms, legs))
