"""What a corruption is: a recipe, its declaration and its parameters; and every corruption by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Literal

from stormproof.core import extensions
from stormproof.core.condition import SEVERITIES, Condition, Value, grid
from stormproof.core.errors import InvalidCondition, MissingContext, UnknownName
from stormproof.core.randomness import OWNERS, Draw, Owner
from stormproof.core.registry import Registry
from stormproof.core.sample import Camera, Context, Image
from stormproof.corruptions.needs import part_of, pinhole, usable_depth
from stormproof.imaging import Field

Recipe = Callable[..., Image]
Mover = Callable[..., tuple[Field, Field]]
Rule = Callable[..., float]

LABELS = ("moved", "fixed")
# Parameters of any condition, which recipes do not take: whether truth follows the pixels, which part of the
# image changes, whether lengths follow the image's size, and what random numbers belong to in a clip.
RESERVED = ("labels", "on", "scale", "owner")
_PIXELS = ("px", "px·m")  # the units of parameters that scale=auto adapts
USUAL_SIDE = math.sqrt(640 * 480)  # px; the size of image that the common corruptions are made for

Between = Literal["linear", "log", "round", "switch"]


@dataclass(frozen=True, slots=True)
class Ladder:
    """A parameter's values, one per severity, and the values it may take freely.

    A single value holds at every severity; a parameter without values must always be given. `between` says
    how the value changes between two severities: linearly, by equal factors (log), in whole numbers (round),
    or not at all (switch). `unit` is the unit of its numbers.
    """

    values: tuple[Value, ...]
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()
    between: Between = "linear"
    unit: str = ""

    @property
    def rises(self) -> bool:
        """Whether the parameter changes with severity; such parameters give a corruption its severities."""
        return len(self.values) > 1

    @property
    def kind(self) -> type[int] | type[float] | type[str]:
        if self.choices or any(isinstance(v, str) for v in self.values):
            return str
        return int if self.values and all(isinstance(v, int) for v in self.values) else float

    def at(self, severity: float) -> Value:
        """The value at a severity; between two of them, as `between` says.

        >>> ladder(1.0, 4.0).at(1.5), ladder(1.0, 4.0, between="log").at(1.5), ladder(10, 15).at(1.3)
        (2.5, 2.0, 12)
        """
        if not self.rises:
            return self.values[0]
        step = int(severity)
        if step == severity:
            return self.values[step - 1]
        low, high = self.values[step - 1], self.values[step]
        assert not isinstance(low, str) and not isinstance(high, str), "refused before: strings switch"  # noqa: PT018
        share = severity - step
        if self.between == "log":
            return float(low * (high / low) ** share)
        value = low + (high - low) * share
        return round(value) if self.between == "round" else float(value)

    def check(self, name: str, value: Value, where: str) -> Value:
        """The value in the parameter's type; the error says which values are allowed."""
        if (self.kind is str) != isinstance(value, str):
            raise InvalidCondition(
                f"{where}: {name} must be a {'string' if self.kind is str else 'number'}, not {value!r}."
            )
        if isinstance(value, str):
            if self.choices and value not in self.choices:
                raise InvalidCondition(
                    f"{where}: {name} must be one of {', '.join(self.choices)}, not {value!r}."
                )
            return value
        if self.kind is int and value != int(value):
            raise InvalidCondition(f"{where}: {name} must be a whole number, not {value!r}.")
        if not self.low <= value <= self.high:
            raise InvalidCondition(
                f"{where}: {name} must lie in {self.low:g} … {self.high:g}, not {value!r}."
            )
        return self.kind(value)


def ladder(
    *values: Value,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    between: Between | None = None,
    unit: str = "",
) -> Ladder:
    """A parameter's values at severities 1, 2, 3 …: usually five, fewer where a paper has fewer.

    By default strings switch, whole numbers round and other numbers change linearly between severities.
    """
    if not 2 <= len(values) <= len(SEVERITIES):
        raise ValueError(f"a ladder has 2 to {len(SEVERITIES)} values, not {len(values)}")
    plain = Ladder(tuple(values), low, high, choices, unit=unit)
    usual: dict[type, Between] = {str: "switch", int: "round", float: "linear"}
    return replace(plain, between=between or usual[plain.kind])


def constant(
    value: Value,
    *,
    low: float = -math.inf,
    high: float = math.inf,
    choices: tuple[str, ...] = (),
    unit: str = "",
) -> Ladder:
    """A parameter that severity does not change."""
    return Ladder((value,), low, high, choices, unit=unit)


def free(
    *, low: float = -math.inf, high: float = math.inf, choices: tuple[str, ...] = (), unit: str = ""
) -> Ladder:
    """A parameter that every condition must give: a string if it has choices, else a number."""
    return Ladder((), low, high, choices, unit=unit)


@dataclass(frozen=True, slots=True)
class Corruption:
    """A recipe and its declaration.

    `needs` names the context that the recipe takes as keywords. `moves` computes, from size, draw and
    parameters, the field (dy, dx) of where each output pixel is read from; `labels` says whether truth
    follows it by default. `derived` maps a parameter to functions, each of quantities that may be given
    instead. Corruptions that need a camera have the parameter `view`: the horizontal field of view in degrees
    that is assumed where the dataset has no focal length. `owner` is what its random numbers belong to in a
    clip: the frame, the camera or the scene; `streams` names those that belong to another. All severities of
    a `nested` corruption draw the same numbers, so that what a weak one destroys a stronger one destroys too.
    """

    name: str
    family: str
    cite: str
    version: int
    recipe: Recipe
    ladders: Mapping[str, Ladder] = field(default_factory=dict)
    needs: tuple[str, ...] = ()
    moves: Mover | None = None
    labels: str = "fixed"
    derived: Mapping[str, tuple[Rule, ...]] = field(default_factory=dict)
    one_image_only: str = ""  # why it cannot run on batches on a device, if so
    owner: Owner = "frame"
    streams: Mapping[str, Owner] = field(default_factory=dict)
    nested: bool = False
    absent: str = ""  # why only the declaration is known, if the code is missing

    @property
    def doc(self) -> str:
        """What happens in the world: the first paragraph of the recipe's docstring."""
        return (inspect.getdoc(self.recipe) or "").split("\n\n")[0].replace("\n", " ")

    @property
    def is_random(self) -> bool:
        """Whether the recipe draws random numbers; only then does the image's id matter."""
        return _draws(self.recipe)

    @property
    def severities(self) -> tuple[int, ...]:
        """Its severities: 1 to 5, fewer, or none if only parameters describe it."""
        count = max((len(rungs.values) for rungs in self.ladders.values() if rungs.rises), default=0)
        return SEVERITIES[:count]

    def parameters(self, condition: Condition, size: tuple[int, ...] | None = None) -> dict[str, Value]:
        """Every parameter's value under a condition; without a severity, all of them must be given.

        For an image of `size` (height, width), `scale=auto` multiplies lengths in pixels by
        √(height·width / (640·480)).
        """
        if self.absent:
            raise MissingContext(self.absent)
        self._check_severity(condition)
        self.moves_labels(condition)
        self.owners(condition)
        part_of(condition)
        given = {key: v for key, v in condition.params if key not in RESERVED or key in self.ladders}
        given = self._derive(given, condition)
        values = {key: self._value(key, given, condition) for key in self.ladders}
        return self._scaled(values, condition, size)

    def _scaled(
        self, values: dict[str, Value], condition: Condition, size: tuple[int, ...] | None
    ) -> dict[str, Value]:
        chosen = dict(condition.params).get("scale", "")
        if not chosen or "scale" in self.ladders:  # a few corruptions have a parameter of that name
            return values
        if chosen != "auto":
            raise InvalidCondition(f"{condition}: scale must be auto, not {chosen!r}, or be left out.")
        factor = 1.0 if size is None else math.sqrt(size[0] * size[1]) / USUAL_SIDE
        for key, rungs in self.ladders.items():
            value = values[key]
            if rungs.unit in _PIXELS and not isinstance(value, str):
                length = min(max(value * factor, rungs.low), rungs.high)
                values[key] = round(length) if rungs.kind is int else length
        return values

    def moves_labels(self, condition: Condition) -> bool:
        """Whether truth and depth follow the pixels under a condition."""
        chosen = dict(condition.params).get("labels", self.labels)
        if "labels" in dict(condition.params):
            if self.moves is None:
                raise InvalidCondition(
                    f"{condition}: {self.name} does not move pixels, so it takes no labels=…."
                )
            if chosen not in LABELS:
                raise InvalidCondition(f"{condition}: labels must be {' or '.join(LABELS)}, not {chosen!r}.")
        if chosen == "moved" and part_of(condition) is not None:
            fix = "add labels=fixed, or leave out on=…"
            raise InvalidCondition(f"{condition}: truth cannot move on part of the image only; {fix}.")
        return chosen == "moved"

    def owners(self, condition: Condition) -> tuple[Owner, Mapping[str, Owner]]:
        """The owner of random numbers under a condition, and the streams that belong to another."""
        chosen = dict(condition.params).get("owner")
        if chosen is None:
            return self.owner, self.streams
        if not self.is_random:
            raise InvalidCondition(f"{condition}: {self.name} draws nothing, so it takes no owner=….")
        owner = next((known for known in OWNERS if known == chosen), None)
        if owner is None:
            raise InvalidCondition(f"{condition}: owner must be {', '.join(OWNERS)}, not {chosen!r}.")
        return owner, {}

    def field(self, size: tuple[int, int], condition: Condition, draw: Draw) -> tuple[Field, Field]:
        """(dy, dx) such that output pixel (y, x) is read from (y + dy, x + dx)."""
        assert self.moves is not None, f"{self.name} declares no field"
        values = self.parameters(condition, size)
        return self.moves(size, draw, **values) if _draws(self.moves) else self.moves(size, **values)

    def apply(self, image: Image, condition: Condition, draw: Draw, context: Context | None = None) -> Image:
        """Corrupt an H×W×C image."""
        values = self.parameters(condition, image.shape)
        context = context or Context()
        scene: dict[str, Field | Camera] = {}
        if "depth" in self.needs:
            scene["depth"] = usable_depth(context.depth, image.shape[:2], self.name)
        if "camera" in self.needs:
            view = float(values.pop("view"))
            scene["camera"] = context.camera or pinhole((image.shape[0], image.shape[1]), view)
        if self.is_random:
            return self.recipe(image, draw, **scene, **values)
        return self.recipe(image, **scene, **values)

    def files(self, condition: Condition) -> tuple[Path, ...]:
        """Files and folders that a condition names (textures, a lens); pixels depend on their content."""
        free = {key for key, rungs in self.ladders.items() if not rungs.choices}
        named = (Path(value) for key, value in condition.params if key in free and isinstance(value, str))
        return tuple(path for path in named if path.exists())

    def _check_severity(self, condition: Condition) -> None:
        if condition.severity is None or condition.severity in self.severities:
            return
        if condition.whole_severity is None and self.severities and condition.severity < self.severities[-1]:
            return
        allowed = ", ".join(map(str, self.severities))
        names = ",".join(f"{key}=…" for key in self.ladders)
        fix = f"its severities are {allowed}" if allowed else f"it has none; write {self.name}[{names}]"
        raise InvalidCondition(f"{condition}: {self.name} has no severity {condition.severity}; {fix}.")

    def alternatives(self) -> list[tuple[str, Rule, tuple[str, ...]]]:
        """Each parameter that follows from other quantities, the rule, and the names of the quantities."""
        return [
            (key, rule, tuple(inspect.signature(rule).parameters))
            for key, rules in self.derived.items()
            for rule in rules
        ]

    def _derive(self, given: dict[str, Value], condition: Condition) -> dict[str, Value]:
        """Replace quantities by the parameter that follows from them."""
        rules = self.alternatives()
        for key, rule, inputs in rules:
            if not any(name in given for name in inputs):
                continue
            if key in given or any(name not in given for name in inputs):
                fix = f"give either {key} or all of {', '.join(inputs)}"
                if len(self.derived[key]) > 1:
                    others = [name for other, _, names in rules if other == key for name in names]
                    fix = f"give only one of {', '.join([key, *others])}"
                raise InvalidCondition(f"{condition}: {fix}.")
            numbers = {name: given.pop(name) for name in inputs}
            wrong = [name for name, value in numbers.items() if isinstance(value, str) or value <= 0]
            if wrong:
                raise InvalidCondition(
                    f"{condition}: {wrong[0]} must be a number > 0, not {numbers[wrong[0]]!r}."
                )
            given[key] = rule(**numbers)
        for key in given:
            if key not in self.ladders:
                known = [*self.ladders, *(name for _, _, inputs in rules for name in inputs)]
                if_any = {"owner": self.is_random, "labels": self.moves is not None}
                common = ("on", "scale", *(name for name, takes in if_any.items() if takes))
                reserved = [name for name in common if name not in self.ladders]
                hint = f"It takes: {', '.join(known)}; and {', '.join(reserved)}."
                raise UnknownName(f"parameter of {self.name}", key, known, hint)
        return given

    def _value(self, key: str, given: Mapping[str, Value], condition: Condition) -> Value:
        rungs, severity = self.ladders[key], condition.severity
        if key in given:
            return rungs.check(key, given[key], str(condition))
        if isinstance(severity, float) and rungs.rises and rungs.between == "switch":
            why = f"{self.name} has no values between severities, because its {key} switches"
            below, above = (f"{self.name}@{int(severity) + step}" for step in (0, 1))
            raise InvalidCondition(f"{condition}: {why}; use {below} or {above}.")
        if severity is not None or len(set(rungs.values)) == 1:
            return rungs.at(severity or 1)
        fix = f"; or write {self.name}@{self.severities[-1]}[{key}=…]" if self.severities else ""
        raise InvalidCondition(
            f"{condition} lacks {key}: without a severity, every parameter is needed "
            f"({', '.join(self.ladders)}){fix}."
        )


@cache
def _draws(function: Callable[..., object]) -> bool:
    return "draw" in inspect.signature(function).parameters


CORRUPTIONS: Registry[Corruption] = Registry(extensions.CORRUPTIONS, "stormproof.corruptions.recipes")


def corruption(
    *,
    family: str,
    cite: str,
    version: int = 1,
    needs: tuple[str, ...] = (),
    moves: Mover | None = None,
    labels: str = "fixed",
    derived: Mapping[str, tuple[Rule, ...]] | None = None,
    one_image_only: str = "",
    owner: Owner = "frame",
    streams: Mapping[str, Owner] | None = None,
    nested: bool = False,
    **ladders: Ladder,
) -> Callable[[Recipe], Recipe]:
    """Register a recipe under its function's name."""
    if unknown := {*needs} - {"depth", "camera"}:
        raise ValueError(f"a corruption can need depth and camera, not {', '.join(sorted(unknown))}")
    if len({len(rungs.values) for rungs in ladders.values() if rungs.rises}) > 1:
        raise ValueError("all ladders of a corruption must have the same number of values")

    def register(recipe: Recipe) -> Recipe:
        name = recipe.__name__
        declared = Corruption(
            name, family, cite, version, recipe, ladders, needs, moves, labels, derived or {}, one_image_only,
            owner, streams or {}, nested,
        )  # fmt: skip
        CORRUPTIONS.add(name, declared, module=recipe.__module__)
        return recipe

    return register


def every_severity(name: str) -> tuple[Condition, ...]:
    """A corruption at each of its severities; an error if it has none."""
    corruption = find(name)
    if not corruption.severities:
        example = ",".join(f"{key}=…" for key in corruption.ladders)
        raise InvalidCondition(f"{name} has no severities; write {name}[{example}].")
    return grid([name], corruption.severities)


def recipe_versions(conditions: Iterable[str]) -> dict[str, int]:
    """The versions of the recipes of some conditions, by name."""
    names = {str(part.corruption) for text in {*conditions} for part in Condition.parse(text).parts}
    return {name: find(name).version for name in sorted(names)}


def find(name: str) -> Corruption:
    """The corruption of that name."""
    return CORRUPTIONS.find(name, "List them with 'stormproof list corruptions'.")
