"""Composed conditions: the steps of a condition, one corruption after the other, and their physical order.

Each step acts on the image, the truth and the depth that the step before it left. Its random numbers are
keyed as if it stood alone, plus its place among the steps; the first step has the pixels that it has alone.

Light passes through the scene, the optics, the sensor and the processor. Parts written in another order are
applied as they are written, with a warning: JPEG before rain is a photograph in the rain, not a camera.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from stormproof.core.condition import Condition
from stormproof.core.errors import first_few
from stormproof.core.randomness import Draw, Frame, KeyedDraws
from stormproof.corruptions.corruption import CORRUPTIONS, Corruption, find
from stormproof.corruptions.needs import missing, refuse_part
from stormproof.imaging import Field

STAGES = ("scene", "optics", "sensor", "processor")
# Where on the light's way a family acts. What has no physical cause, such as patterns, may stand anywhere.
_OF_FAMILY = {
    "weather": "scene",
    "light": "scene",
    "style": "scene",
    "blur": "optics",
    "optics": "optics",
    "noise": "sensor",
    "digital": "processor",
    "isp": "processor",
    "channels": "processor",
    "board": "processor",
}
_OF_NAME: dict[str, str | None] = {
    **dict.fromkeys(("frost", "spatter"), "optics"),  # on the pane before the lens
    **dict.fromkeys(("camera_fog", "lens_obstruction", "focus_motor_damage"), "optics"),
    **dict.fromkeys(("ccd_sensor_damage", "cmos_sensor_damage", "low_light"), "sensor"),
    "contrast": "scene",  # it varies with the light, as brightness does (hendrycks)
    "elastic_transform": None,
}


class Step(NamedTuple):
    """One part of a condition: its corruption, the part as a condition, and its place among the parts."""

    corruption: Corruption
    condition: Condition
    place: int

    @property
    def moves_labels(self) -> bool:
        return self.corruption.moves_labels(self.condition)

    def draw(self, identity: str | Frame, seed: int) -> Draw:
        """The random numbers of an image.

        Conditions without a whole severity draw as severity 0. In a clip, what belongs to the camera or the
        scene is keyed by the sequence.
        """
        frame = identity if isinstance(identity, Frame) else Frame(identity)
        alone = Draw.keyed(seed, frame.id, *self._key)
        if not frame.sequence:
            return alone
        owner, streams = self.corruption.owners(self.condition)
        clip = Draw.keyed(seed, "sequence", frame.sequence, *self._key).key
        keys = {"frame": alone.key, "camera": clip, "scene": clip}
        moving = "scene" in (owner, *streams.values())
        others = {stream: keys[other] for stream, other in streams.items()}
        return Draw(keys[owner], alone.identity, frame.time if moving else 0.0, others)

    def draws(self, identities: Sequence[str | Frame], seed: int) -> Sequence[Draw]:
        """`draw` for each of many images."""
        ids = [name for name in identities if isinstance(name, str)]
        if len(ids) == len(identities):
            return KeyedDraws(seed, ids, *self._key)
        return [self.draw(identity, seed) for identity in identities]

    @property
    def _key(self) -> tuple[str | int, ...]:
        """What keys random numbers besides the seed and the image; the first step draws as it does alone."""
        severity = 0 if self.corruption.nested else self.condition.whole_severity or 0
        return (self.corruption.name, severity, *([self.place] if self.place else []))

    def field(self, size: tuple[int, int], identity: str | Frame, seed: int) -> tuple[Field, Field]:
        """(dy, dx) such that output pixel (y, x) is read from (y + dy, x + dx)."""
        return self.corruption.field(size, self.condition, self.draw(identity, seed))


def steps(condition: Condition) -> tuple[Step, ...]:
    """What is done to an image, in order; nothing for clean.

    >>> [step.corruption.family for step in steps(Condition.parse("fog@3+gaussian_noise@1"))]
    ['weather', 'noise']
    """
    return tuple(Step(find(str(part.corruption)), part, place) for place, part in enumerate(condition.parts))


def check(condition: Condition) -> None:
    """Raise an error if a corruption is unknown, or if a parameter of a part is wrong."""
    for step in steps(condition):
        step.corruption.parameters(step.condition)


def check_alone(condition: Condition) -> None:
    """Raise an error if a condition cannot be applied to an image without truth and context."""
    check(condition)
    for step in steps(condition):
        refuse_part(step.condition)
        if step.corruption.needs:
            raise missing(step.corruption.name)


def moves_labels(condition: Condition) -> bool:
    """Whether truth and depth follow the pixels under a condition."""
    return any(step.moves_labels for step in steps(condition))


def needs(condition: Condition) -> frozenset[str]:
    """The context that a condition needs: depth, a camera."""
    return frozenset(name for step in steps(condition) for name in step.corruption.needs)


def is_random(condition: Condition) -> bool:
    """Whether a condition draws random numbers; only then does the image's id matter."""
    return any(step.corruption.is_random for step in steps(condition))


def stage(corruption: str) -> str | None:
    """Where on the light's way a corruption acts; None if nowhere in particular.

    >>> stage("rain"), stage("frost"), stage("jpeg_compression"), stage("sparkles")
    ('scene', 'optics', 'processor', None)
    """
    if corruption in _OF_NAME:
        return _OF_NAME[corruption]
    known = CORRUPTIONS.get(corruption)
    return None if known is None else _OF_FAMILY.get(known.family)


def in_order(condition: Condition) -> Condition:
    """The condition with its parts in the order of light; those of one stage, or of none, keep theirs.

    >>> str(in_order(Condition.parse("jpeg_compression@2+rain@3+sparkles@1")))
    'rain@3+jpeg_compression@2+sparkles@1'
    """
    parts = list(condition.parts)
    staged = [place for place, part in enumerate(parts) if stage(str(part.corruption))]
    ranked = sorted(
        (parts[place] for place in staged), key=lambda part: STAGES.index(stage(str(part.corruption)) or "")
    )
    for place, part in zip(staged, ranked, strict=True):
        parts[place] = part
    return Condition.composed(parts) if condition.is_composed else condition


def order_doubts(conditions: Iterable[Condition]) -> str:
    """A warning about composed conditions whose parts are not in the order of light; else empty."""
    wrong = [c for c in conditions if c.is_composed and in_order(c) != c]
    if not wrong:
        return ""
    first = wrong[0]
    acts = ", ".join(f"{p.corruption} in the {stage(str(p.corruption)) or 'image'}" for p in first.parts)
    return (
        f"{first_few([*map(str, wrong)])}: parts act in the order written, but light passes through "
        f"{', '.join(STAGES)} ({acts}); the physical order is {in_order(first)}."
    )
