"""Which conditions a run is about: those its settings name, its benchmark has, or its predictions are of."""

from __future__ import annotations

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import InvalidOption
from stormproof.corruptions.grammar import read_conditions
from stormproof.engine.config import RunConfig
from stormproof.models.model import Model, Precomputed


def asked(config: RunConfig) -> tuple[Condition, ...]:
    """The conditions named, clean first; none if nothing is named."""
    named = read_conditions((*config.suite, *config.conditions))
    if config.preset is None:
        return tuple(dict.fromkeys((CLEAN, *named))) if named else ()
    own = config.preset.conditions()
    for condition in named:
        if condition not in own:
            fix = "leave it out, or run it by itself with --data"
            raise InvalidOption(f"{condition} is not part of {config.benchmark}; {fix}.")
    return tuple(c for c in own if not named or c in named or c == CLEAN)


def conditions_for(config: RunConfig, model: Model | Precomputed) -> tuple[Condition, ...]:
    """What a model is run under; predictions made beforehand stand for all that they are of."""
    wanted = asked(config)
    if not isinstance(model, Precomputed):
        if not wanted:
            raise InvalidOption(
                "Say what to test: --conditions imagenet-c, --conditions fog@3 or --benchmark coco-c "
                "(--conditions clean for the clean images alone)."
            )
        return wanted
    offered = model.conditions
    missing = [str(condition) for condition in wanted if condition not in offered]
    if missing:
        raise InvalidOption(
            f"{config.model} has no predictions for {', '.join(missing)}; "
            f"it has: {', '.join(map(str, offered))}."
        )
    # Clean predictions come first whenever there are any: every relative score needs them.
    return wanted or tuple(dict.fromkeys((*(c for c in offered if c == CLEAN), *offered)))
