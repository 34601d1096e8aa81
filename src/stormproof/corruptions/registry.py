"""The registry: what a corruption declares about itself, and how it is found by name."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from stormproof.condition import SEVERITIES, Condition, Value
from stormproof.errors import InvalidCondition, UnknownName
from stormproof.randomness import Draw
from stormproof.sample import Image

Recipe = Callable[..., Image]


@dataclass(frozen=True, slots=True)
class Ladder:
    """A parameter's five values, one per severity, and the values it may take freely."""

    values: tuple[Value, ...]
    low: float = -math.inf
    high: float = math.inf
    choices: tuple[str, ...] = ()

    @property
    def kind(self) -> type[int] | type[float] | type[str]:
        if isinstance(self.values[0], str):
            return str
        return int if all(isinstance(v, int) for v in self.values) else float

    def check(self, name: str, value: Value, where: str) -> Value:
        """The value in the parameter's own type, or an error that says what it may be."""
        if (self.kind is str) != isinstance(value, str):
            raise InvalidCondition(
                f"{where}: {name} must be a {'text' if self.kind is str else 'number'}, not {value!r}."
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
    *values: Value, low: float = -math.inf, high: float = math.inf, choices: tuple[str, ...] = ()
) -> Ladder:
    """Severities 1 to 5 of a parameter."""
    if len(values) != len(SEVERITIES):
        raise ValueError(f"a ladder has {len(SEVERITIES)} rungs, not {len(values)}")
    return Ladder(tuple(values), low, high, choices)


def constant(value: Value, *, low: float = -math.inf, high: float = math.inf) -> Ladder:
    """A parameter that severity does not change."""
    return Ladder((value,) * len(SEVERITIES), low, high)


@dataclass(frozen=True, slots=True)
class Corruption:
    """A recipe and its declaration."""

    name: str
    family: str
    cite: str
    version: int
    recipe: Recipe
    ladders: Mapping[str, Ladder] = field(default_factory=dict)

    @property
    def doc(self) -> str:
        """What happens in the world, in one line."""
        return (inspect.getdoc(self.recipe) or "").split("\n\n")[0].replace("\n", " ")

    @property
    def is_random(self) -> bool:
        """Whether the recipe draws: only then does the image's identity matter."""
        return "draw" in inspect.signature(self.recipe).parameters

    def parameters(self, condition: Condition) -> dict[str, Value]:
        """Every parameter's value under a condition; all of them are needed when no severity is given."""
        given = dict(condition.params)
        for key in given:
            if key not in self.ladders:
                raise UnknownName(
                    f"parameter of {self.name}", key, self.ladders, f"It takes: {', '.join(self.ladders)}."
                )
        values: dict[str, Value] = {}
        for key, rungs in self.ladders.items():
            if key in given:
                values[key] = rungs.check(key, given[key], str(condition))
            elif condition.severity is not None:
                values[key] = rungs.values[condition.severity - 1]
            elif len(set(rungs.values)) == 1:
                values[key] = rungs.values[0]
            else:
                raise InvalidCondition(
                    f"{condition} lacks {key}: without a severity every parameter is needed "
                    f"({', '.join(self.ladders)}); or write {self.name}@3[{key}=…]."
                )
        return values

    def apply(self, image: Image, condition: Condition, draw: Draw) -> Image:
        """Corrupt an H×W×C image."""
        values = self.parameters(condition)
        return self.recipe(image, draw, **values) if self.is_random else self.recipe(image, **values)


_REGISTRY: dict[str, Corruption] = {}


def corruption(*, family: str, cite: str, version: int = 1, **ladders: Ladder) -> Callable[[Recipe], Recipe]:
    """Register a recipe under its function's name."""

    def register(recipe: Recipe) -> Recipe:
        name = recipe.__name__
        if name in _REGISTRY and _REGISTRY[name].recipe.__module__ != recipe.__module__:
            raise ValueError(f"two corruptions are called {name!r}")
        _REGISTRY[name] = Corruption(name, family, cite, version, recipe, ladders)
        return recipe

    return register


def registered() -> dict[str, Corruption]:
    """Every corruption registered so far, in order."""
    return dict(_REGISTRY)


def find(name: str) -> Corruption:
    """The corruption of that name."""
    try:
        return _REGISTRY[name]
    except KeyError:
        hint = "List them with 'stormproof list corruptions'."
        raise UnknownName("corruption", name, _REGISTRY, hint) from None
