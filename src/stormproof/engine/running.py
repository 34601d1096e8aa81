"""`run`, and `Run`: the folder of one, with what it holds."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from os import PathLike
from typing import TYPE_CHECKING, Any

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, counted
from stormproof.core.sample import Image, Sample
from stormproof.core.spec import named_object
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.opened import OpenedDataset, open_dataset
from stormproof.engine.config import make_config
from stormproof.engine.notebook import watch_here
from stormproof.engine.pair import forget_pair
from stormproof.engine.run import Summary
from stormproof.engine.run import run as run_config
from stormproof.engine.trackers import open_tracker
from stormproof.engine.work import alike
from stormproof.models.model import Model
from stormproof.models.opened import OpenedModel, open_model
from stormproof.results.run import Run

if TYPE_CHECKING:
    from stormproof.engine.run import Watch

Conditions = str | Condition | Iterable[str | Condition]
AnyModel = str | Model | Callable[[Sequence[Image]], Any]
AnyDataset = str | Dataset | Iterable[Sample]


def run(
    model: AnyModel,
    data: AnyDataset | None = None,
    *,
    out: str | PathLike[str],
    suite: Conditions = (),
    conditions: Conditions = (),
    benchmark: str | None = None,
    root: str | PathLike[str] | None = None,
    enhance: str | Sequence[str] = (),
    seed: int = 0,
    limit: int | None = None,
    engine: str | None = None,
    workers: int = 0,
    batch: int = 8,
    timeout: float | None = None,
    device: str | None = None,
    tags: Mapping[str, str] | None = None,
    track: str | Sequence[str] = (),
    progress: bool = True,
) -> Run:
    """Run a model on a dataset, clean and under every condition; the same call continues a stopped run.

    Arguments are the flags of `stormproof run`. A model or dataset made in Python runs in this process
    (`engine="local"`, which is then the default); those that have a spec run in worker processes.
    """
    opened = open_model(model)
    dataset = None if data is None else open_dataset(data)
    made_here = [thing for thing in (opened, dataset) if thing is not None and thing.spec is None]
    engine = engine or ("local" if made_here else "pool")
    if made_here and engine != "local":
        raise InvalidOption(
            f"{made_here[0].name} was made in this Python process, and engine={engine!r} works in others, "
            "which cannot see it; use engine='local', or put it in a file and name it 'file.py:function'."
        )
    with ExitStack() as stack:
        settings = {
            "model": _spec(stack, opened), "out": str(out), "benchmark": benchmark,
            "data": None if dataset is None else _spec(stack, dataset),
            "root": None if root is None else str(root),
            "suite": _strings(suite), "conditions": _strings(conditions), "enhance": enhance, "seed": seed,
            "limit": limit or (dataset.limit if dataset is not None else None), "engine": engine,
            "workers": workers, "batch": batch, "timeout": timeout, "tags": dict(tags or {}), "track": track,
            "device": device,
        }  # fmt: skip
        config = make_config({key: value for key, value in settings.items() if value is not None})
        watches: list[Watch] = [watch_here()] if progress else []
        if made_here:
            stack.callback(forget_pair)  # it must not outlive the names of what it was made of
        summary = run_config(config, [*watches, *(open_tracker(name) for name in config.track)])
    _warn(summary)
    return Run(out, data=None if dataset is None else dataset.whole)


def _spec(stack: ExitStack, thing: OpenedModel | OpenedDataset) -> str:
    """The name by which a run knows a model or dataset."""
    if thing.spec is not None:
        return thing.spec
    return stack.enter_context(
        named_object(thing.name, thing.model if isinstance(thing, OpenedModel) else thing.whole)
    )


def _strings(given: Conditions) -> tuple[str, ...]:
    return (str(given),) if isinstance(given, str | Condition) else tuple(map(str, given))


def _warn(summary: Summary) -> None:
    if summary.failures:
        causes = alike(summary.failures)
        warnings.warn(
            f"{counted(len(summary.failures), 'cell')} failed; {causes[0]}. The same call tries them again.",
            stacklevel=3,
        )
