"""`stormproof.run`: a run from Python, with the settings of the command line as keywords."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from inspect import Parameter
from os import PathLike
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, counted
from stormproof.core.sample import Image, Sample
from stormproof.core.spec import named_object
from stormproof.datasets.chosen import with_chosen
from stormproof.datasets.dataset import Dataset
from stormproof.datasets.opened import OpenedDataset, open_dataset
from stormproof.engine.config import SETTINGS, make_config, refuse_unknown
from stormproof.engine.executors import executor_for
from stormproof.engine.failures import group_failures
from stormproof.engine.pair import forget_pair, open_dataset_once
from stormproof.engine.plan import Plan, label_findings, make_plan
from stormproof.engine.progress import RunProgress
from stormproof.engine.run import Observer, Summary, execute, run_to_precision
from stormproof.engine.trackers import open_tracker
from stormproof.models.model import Model
from stormproof.models.opened import OpenedModel, open_model
from stormproof.results.run import Run

AnyModel = str | Model | Callable[[Sequence[Image]], Any]
AnyDataset = str | Dataset | Iterable[Sample]
Place = str | PathLike[str]
Conditions = str | Condition | Iterable[str | Condition]


def run(
    model: AnyModel,
    data: AnyDataset | None = None,
    *,
    out: Place,
    progress: bool = True,
    **settings: Any,
) -> Run:
    """Run a model on a dataset, clean and under every condition; the same call continues a stopped run.

    A model or dataset made in Python runs in this process (`engine="local"`, which is then the default);
    those that have a spec run in worker processes. The settings are the flags of `stormproof run`:
    """
    refuse_unknown(settings, SETTINGS)
    opened = open_model(model)
    dataset = None if data is None else _open_once(data)
    made_here = [thing for thing in (opened, dataset) if thing is not None and thing.spec is None]
    engine = settings.pop("engine", None) or ("local" if made_here else "pool")
    unseen = [thing for thing in made_here if engine != "feed" or thing is dataset]
    if unseen and engine != "local":
        raise InvalidOption(
            f"{unseen[0].name} was made in this Python process, but engine={engine!r} uses others, "
            "which cannot see it; use engine='local', or put it in a file and name it 'file.py:function'."
        )
    if dataset is not None and settings.get("limit") is None:
        settings["limit"] = dataset.limit
    with ExitStack() as stack:
        given = {
            "model": _spec(stack, opened),
            "data": None if dataset is None else _spec(stack, dataset),
            "out": out,
            "engine": engine,
            **settings,
        }
        config = make_config({key: _plain(value) for key, value in given.items() if value is not None})
        if made_here:
            stack.callback(forget_pair)  # the pair must not outlive the named objects

        def do(plan: Plan) -> Summary:
            for finding in label_findings(plan.record.dataset.spec, plan.record.images):
                warnings.warn(f"{plan.record.dataset.name}: {finding}", stacklevel=4)
            watches: list[Observer] = [RunProgress()] if progress else []
            watches += map(open_tracker, config.track)
            return execute(plan, executor_for(config, len(plan.chunks)), watches)

        whole = None if dataset is None else with_chosen(dataset.whole, only=config.images)
        if config.precision:
            summary, _ = run_to_precision(config, do, data=whole)
        else:
            summary = do(make_plan(config, keep_dataset=isinstance(data, str)))
    if summary.failures:
        warnings.warn(
            f"{counted(len(summary.failures), 'cell')} failed; {group_failures(summary.failures)[0]}. "
            "The same call tries only these again.",
            stacklevel=2,
        )
    return Run(out, data=whole)


def _signature() -> inspect.Signature:
    """The parameters of `run`: every setting, model and data also by position, and `progress`."""
    own = {"model": AnyModel, "data": AnyDataset | None, "out": Place, "conditions": Conditions}
    listed = [
        Parameter(
            name,
            Parameter.POSITIONAL_OR_KEYWORD if name in ("model", "data") else Parameter.KEYWORD_ONLY,
            default=Parameter.empty if field.is_required() else field.default,
            annotation=own.get(name, field.annotation),
        )
        for name, (field, _) in SETTINGS.items()
    ]
    progress = Parameter("progress", Parameter.KEYWORD_ONLY, default=True, annotation=bool)
    return inspect.Signature([*listed, progress], return_annotation=Run)


run.__signature__ = _signature()  # type: ignore[attr-defined]
run.__doc__ = f"{inspect.cleandoc(run.__doc__ or '')}\n\n" + "\n".join(
    f"{name}: {setting.help}" for name, (_, setting) in SETTINGS.items()
)


def _open_once(data: AnyDataset) -> OpenedDataset:
    """The dataset; the plan finds one that a spec names open already."""
    if not isinstance(data, str):
        return open_dataset(data)
    forget_pair(dataset=True)  # its files may have changed since
    return OpenedDataset(data, open_dataset_once(data))


def _spec(stack: ExitStack, thing: OpenedModel | OpenedDataset) -> str:
    """The spec of a model or dataset; an object made in Python gets a temporary name."""
    if thing.spec is not None:
        return thing.spec
    return stack.enter_context(
        named_object(thing.name, thing.model if isinstance(thing, OpenedModel) else thing.whole)
    )


def _plain(value: Any) -> Any:
    """Conditions and paths as the strings that settings hold."""
    if isinstance(value, Condition | PathLike):
        return str(value)
    listed = isinstance(value, Iterable) and not isinstance(value, str | Mapping)
    return tuple(map(_plain, value)) if listed else value
