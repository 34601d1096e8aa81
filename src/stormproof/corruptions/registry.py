"""The registry: what a corruption declares about itself, and how it is found by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path

from stormproof.core.condition import SEVERITIES, Condition, Value, grid
from stormproof.core.errors import InvalidCondition, MissingContext, UnknownName
from stormproof.core.randomness import Draw
from stormproof.core.sample import Context, Image
from stormproof.corruptions.registry import Ladder, constant, free, ladder
from stormproof.corruptions.needs import missing, needed
from stormproof.imaging import Field

__all__ = [
    "Corruption",
    "Ladder",
    "constant",
    "corruption",
    "every_severity",
    "find",
    "free",
    "ladder",
    "registered",
]

Recipe = Callable[..., Image]
Mover = Callable[..., tuple[Field, Field]]
Rule = Callable[..., float]

LABELS = ("moved", "fixed")
# Parameters of any condition. They say what is treated, not how: neither recipes nor draws depend on them.
RESERVED = ("labels", "on")


@dataclass(frozen=True, slots=True)
class Corruption:
    """A recipe and its declaration.

    `needs` names the context the recipe takes as keywords. `moves` gives the field (dy, dx) of where
    each output pixel is read from, by size, draw and parameters; `labels` says whether truth follows it
    unless a condition says otherwise. `derived` maps a parameter to a function of the quantities that
    may be given in its stead.
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
    derived: Mapping[str, Rule] = field(default_factory=dict)
    one_image_only: str = ""  # why it cannot run on batches on a device, if so
    absent: str = ""  # why only the declaration is known, if the code is missing

    @property
    def doc(self) -> str:
        """What happens in the world, in one line."""
        return (inspect.getdoc(self.recipe) or "").split("\n\n")[0].replace("\n", " ")

    @property
    def is_random(self) -> bool:
        """Whether the recipe draws: only then does the image's identity matter."""
        return _draws(self.recipe)

    @property
    def severities(self) -> tuple[int, ...]:
        """The severities it has: 1 to 5, fewer, or none where only parameters describe it."""
        return SEVERITIES[
            : max((len(rungs.values) for rungs in self.ladders.values() if rungs.rises), default=0)
        ]

    def parameters(self, condition: Condition) -> dict[str, Value]:
        """Every parameter's value under a condition; all of them are needed when no severity is given."""
        if self.absent:
            raise MissingContext(self.absent)
        self._check_severity(condition)
        self.moves_labels(condition)
        part_of(condition)
        given = {key: value for key, value in condition.params if key not in RESERVED}
        given = self._derive(given, condition)
        return {key: self._value(key, given, condition) for key in self.ladders}

    def moves_labels(self, condition: Condition) -> bool:
        """Whether truth and depth follow the pixels under a condition."""
        chosen = dict(condition.params).get("labels", self.labels)
        if "labels" in dict(condition.params):
            if self.moves is None:
                raise InvalidCondition(f"{condition}: {self.name} moves nothing, so it takes no labels=….")
            if chosen not in LABELS:
                raise InvalidCondition(f"{condition}: labels must be {' or '.join(LABELS)}, not {chosen!r}.")
        if chosen == "moved" and part_of(condition) is not None:
            fix = "add labels=fixed, or leave out on=…"
            raise InvalidCondition(f"{condition}: truth cannot move on part of the image only; {fix}.")
        return chosen == "moved"

    def field(self, size: tuple[int, int], condition: Condition, draw: Draw) -> tuple[Field, Field]:
        """(dy, dx) such that output pixel (y, x) is read from (y + dy, x + dx)."""
        assert self.moves is not None, f"{self.name} declares no field"
        values = self.parameters(condition)
        return self.moves(size, draw, **values) if _draws(self.moves) else self.moves(size, **values)

    def apply(self, image: Image, condition: Condition, draw: Draw, context: Context | None = None) -> Image:
        """Corrupt an H×W×C image."""
        values = self.parameters(condition)
        scene = {kind: needed(kind, self.name, image, context or Context()) for kind in self.needs}
        if self.is_random:
            return self.recipe(image, draw, **scene, **values)
        return self.recipe(image, **scene, **values)

    def check_alone(self, condition: Condition) -> None:
        """Say beforehand why a condition cannot be applied to an image without truth and context."""
        self.parameters(condition)
        refuse_part(condition)
        if self.needs:
            raise missing(self.name)

    def files(self, condition: Condition) -> tuple[Path, ...]:
        """Files and folders that a condition names: textures, a lens. Pixels depend on what is in them."""
        free = {key for key, rungs in self.ladders.items() if not rungs.choices}
        named = (Path(value) for key, value in condition.params if key in free and isinstance(value, str))
        return tuple(path for path in named if path.exists())

    def _check_severity(self, condition: Condition) -> None:
        if condition.severity is None or condition.severity in self.severities:
            return
        if condition.rung is None and self.severities and condition.severity < self.severities[-1]:
            return
        allowed = ", ".join(map(str, self.severities))
        names = ",".join(f"{key}=…" for key in self.ladders)
        fix = f"its severities are {allowed}" if allowed else f"it has none; write {self.name}[{names}]"
        raise InvalidCondition(f"{condition}: {self.name} has no severity {condition.severity}; {fix}.")

    def _derive(self, given: dict[str, Value], condition: Condition) -> dict[str, Value]:
        """Quantities a parameter follows from, replaced by the parameter."""
        for key, rule in self.derived.items():
            inputs = tuple(inspect.signature(rule).parameters)
            if not any(name in given for name in inputs):
                continue
            if key in given or any(name not in given for name in inputs):
                fix = f"give either {key} or all of {', '.join(inputs)}"
                raise InvalidCondition(f"{condition}: {fix}.")
            numbers = {name: given.pop(name) for name in inputs}
            wrong = [name for name, value in numbers.items() if isinstance(value, str) or value <= 0]
            if wrong:
                raise InvalidCondition(
                    f"{condition}: {wrong[0]} must be a number > 0, not {numbers[wrong[0]]!r}."
                )
            given[key] = rule(**numbers)
        known = [
            *self.ladders,
            *(name for rule in self.derived.values() for name in inspect.signature(rule).parameters),
        ]
        for key in given:
            if key not in self.ladders:
                hint = f"It takes: {', '.join(known)}; and on{', labels' if self.moves else ''}."
                raise UnknownName(f"parameter of {self.name}", key, known, hint)
        return given

    def _value(self, key: str, given: Mapping[str, Value], condition: Condition) -> Value:
        rungs = self.ladders[key]
        if key in given:
            return rungs.check(key, given[key], str(condition))
        if condition.severity is not None or len(set(rungs.values)) == 1:
            self._refuse_switch(key, condition)
            return rungs.at(condition.severity or 1)
        fix = f"; or write {self.name}@{self.severities[-1]}[{key}=…]" if self.severities else ""
        raise InvalidCondition(
            f"{condition} lacks {key}: without a severity every parameter is needed "
            f"({', '.join(self.ladders)}){fix}."
        )

    def _refuse_switch(self, key: str, condition: Condition) -> None:
        severity, rungs = condition.severity, self.ladders[key]
        if severity is None or condition.rung is not None or not rungs.rises or rungs.between != "switch":
            return
        why = f"{self.name} has nothing between its severities, because its {key} switches rather than grows"
        below = f"{self.name}@{int(severity)}"
        raise InvalidCondition(f"{condition}: {why}; take {below} or {self.name}@{int(severity) + 1}.")


def part_of(condition: Condition) -> str | None:
    """The part of the image a condition is confined to: objects, background or classes; None is all of it."""
    part = dict(condition.params).get("on")
    if part is not None and (not isinstance(part, str) or not all(part.split("+"))):
        fix = "write on=objects, on=background or class names joined by +, as in on=car+person"
        raise InvalidCondition(f"{condition}: {fix}.")
    return part


def refuse_part(condition: Condition) -> None:
    """Say what is missing when a plain image is to be corrupted in part."""
    if part_of(condition) is not None:
        fix = "apply it to a Sample with truth, from a dataset with masks or boxes"
        raise MissingContext(f"{condition} needs to know where objects are; {fix}.")


@cache
def _draws(function: Callable[..., object]) -> bool:
    return "draw" in inspect.signature(function).parameters


_REGISTRY: dict[str, Corruption] = {}
_NO_CODE = "stormproof.corruptions.plugins"  # of corruptions known only as data, until their code comes


def corruption(
    *,
    family: str,
    cite: str,
    version: int = 1,
    needs: tuple[str, ...] = (),
    moves: Mover | None = None,
    labels: str = "fixed",
    derived: Mapping[str, Rule] | None = None,
    one_image_only: str = "",
    **ladders: Ladder,
) -> Callable[[Recipe], Recipe]:
    """Register a recipe under its function's name."""
    if len({len(rungs.values) for rungs in ladders.values() if rungs.rises}) > 1:
        raise ValueError("the ladders of a corruption have as many rungs as each other")

    def register(recipe: Recipe) -> Recipe:
        name = recipe.__name__
        if name in _REGISTRY and _REGISTRY[name].recipe.__module__ not in (recipe.__module__, _NO_CODE):
            raise ValueError(f"two corruptions are called {name!r}")
        _REGISTRY[name] = Corruption(
            name, family, cite, version, recipe, ladders, needs, moves, labels, derived or {}, one_image_only
        )
        return recipe

    return register


def registry() -> dict[str, Corruption]:
    """The registry itself, for what adds to it."""
    return _REGISTRY


def registered() -> dict[str, Corruption]:
    """Every corruption registered so far, in order."""
    load_offered()
    return dict(_REGISTRY)


@cache
def load_offered() -> None:
    """Import the modules that installed packages offer in the entry point group `stormproof.corruptions`."""
    for entry in entry_points(group="stormproof.corruptions"):
        entry.load()


def every_severity(name: str) -> tuple[Condition, ...]:
    """A corruption at each severity it has; one that only parameters describe is refused."""
    found = find(name)
    if not found.severities:
        example = ",".join(f"{key}=…" for key in found.ladders)
        raise InvalidCondition(f"{name} has no severities; write {name}[{example}].")
    return grid([name], found.severities)


def recipe_versions(conditions: Iterable[str]) -> dict[str, int]:
    """The versions of the recipes that conditions need, by name."""
    names = {Condition.parse(text).corruption for text in {*conditions}} - {None}
    return {name: find(name).version for name in sorted(map(str, names))}


def find(name: str) -> Corruption:
    """The corruption of that name."""
    try:
        return _REGISTRY[name] if name in _REGISTRY else registered()[name]
    except KeyError:
        hint = "List them with 'stormproof list corruptions'."
        raise UnknownName("corruption", name, _REGISTRY, hint) from None
