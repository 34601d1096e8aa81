"""Many models in one plan: each is a run with a folder of its own, and all share the workers.

    models:
      - onnx:zoo/*.onnx                          # a pattern: one model for each file
      - {model: mine.py:detect, name: mine, tags: {family: own}, expect: {AP: 0.372}}
    datasets: [coco:val.json,images=val2017]
    conditions: [imagenet-c]
    out: runs/zoo

Runs are planned one after the other, each when a worker is free for it. A model that fails is reported and
does not stop the others.
"""

from __future__ import annotations

import glob
import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from stormproof.core.errors import InvalidOption, OutputError, StormproofError
from stormproof.core.private import scrub, without_secrets
from stormproof.core.spec import Spec
from stormproof.engine.config import PLAN, SETTINGS, RunConfig, make_config
from stormproof.engine.executors import Executor
from stormproof.engine.plan import make_plan
from stormproof.engine.run import Observer, RunInProgress, Summary, running
from stormproof.engine.work import Attempt, ChunkResult

_SINGLE = dict(zip(PLAN, ("model", "data"), strict=True))
_OF_ONE = ("precision", "profile", "track")  # settings that one run obeys, and a plan would ignore or mix
_UNSAFE = re.compile(r"[^\w.+-]+")  # in the name of a folder


@dataclass(slots=True)
class RunOutcome:
    """The outcome of one run of a plan: its summary, and the error that ended it early."""

    config: RunConfig
    summary: Summary | None = None
    error: StormproofError | None = None

    @property
    def complete(self) -> bool:
        if self.error is not None or self.summary is None or self.summary.failed:
            return False
        return self.config.allow_missing or not self.summary.unreadable


def runs_of(settings: Mapping[str, Any], source: str = "") -> list[RunConfig]:
    """The runs that a plan describes, each with its name and its folder in `out`."""
    source = source or "run.yaml"
    for many, one in _SINGLE.items():
        if one in settings and many in settings:
            raise InvalidOption(f"{source}: {one} and {many} exclude each other; keep one of them.")
    out, models = settings.get("out"), _list_of(settings, "models")
    if not models or not isinstance(out, str):
        missing = "models" if not models else "out (--out)"
        raise InvalidOption(f"{source}: {missing} is missing.")
    datasets = _list_of(settings, "datasets") or [None]
    shared = {key: value for key, value in settings.items() if key not in (*PLAN, *_SINGLE.values())}
    runs = []
    for model in (model for given in models for model in _models(given)):
        for data in datasets:
            name = model["name"] if len(datasets) == 1 else f"{model['name']}/{_data_name(str(data))}"
            own = {**shared, **model, "name": name, "out": str(Path(out) / name)}
            both = shared.get("tags", {}), model.get("tags", {})
            if all(isinstance(tags, dict) for tags in both):  # else the configuration reports the error
                own["tags"] = {**both[0], **both[1]}
            own |= {} if data is None else {"data": data}
            runs.append(make_config(own, f"{source}: {name}"))
    for name in _OF_ONE:
        if any(getattr(config, name) for config in runs):
            raise InvalidOption(
                f"{source}: {name} (--{name}) is for a run of one model; leave it out, or run each alone."
            )
    twice = [name for name, count in Counter(config.name for config in runs).items() if count > 1]
    if twice:
        raise InvalidOption(
            f"{source}: two models are called {twice[0]!r}; give one of them another 'name:'."
        )
    return runs


def run_all(
    runs: Sequence[RunConfig], executor: Executor, watches: Sequence[Observer] = ()
) -> list[RunOutcome]:
    """Execute every run; results come in any order, and each folder stays locked until all runs are done."""
    outcomes = [RunOutcome(config) for config in runs]
    tasks: dict[Path, tuple[RunInProgress, RunOutcome]] = {}
    with ExitStack() as held:
        attempts = _attempts(outcomes, tasks, held, watches)
        with closing(cast(Generator[ChunkResult], executor.run(attempts))) as results:
            for result in results:
                task, outcome = tasks[result.out]
                try:
                    task.take(result)
                except OutputError:
                    raise
                except StormproofError as error:
                    outcome.error = outcome.error or error
    return outcomes


def _attempts(
    outcomes: Sequence[RunOutcome],
    tasks: dict[Path, tuple[RunInProgress, RunOutcome]],
    held: ExitStack,
    watches: Sequence[Observer],
) -> Iterator[Attempt]:
    """The chunks of one run after the other, each planned when its turn comes; a failed run ends early."""
    for outcome in outcomes:
        try:
            plan = make_plan(outcome.config, keep_dataset=outcome is not outcomes[0])
            task = held.enter_context(running(plan, watches))
        except OutputError:
            raise
        except StormproofError as error:
            outcome.error = error
            continue
        tasks[plan.work.out] = task, outcome
        outcome.summary = task.summary
        for chunk in task.summary.survey.chunks:
            if outcome.error is not None:
                break
            yield Attempt(plan.work, chunk)


def _list_of(settings: Mapping[str, Any], many: str) -> list[Any]:
    given = settings.get(many, settings.get(_SINGLE[many]))
    if given is None:
        return []
    listed = given if isinstance(given, list | tuple) else [given]
    for value in listed:
        if not isinstance(value, str | dict) or (isinstance(value, dict) and many != "models"):
            raise InvalidOption(f"{many}: {scrub(value)!r} is not a spec such as kind:file.")
    return list(listed)


def _models(given: str | dict[str, Any]) -> list[dict[str, Any]]:
    """The models of an entry: one, or one for each file that its pattern matches."""
    own = {"model": given} if isinstance(given, str) else dict(given)
    known = [name for name, (_, setting) in SETTINGS.items() if setting.per_model]
    unknown = own.keys() - {*known}
    if unknown or not isinstance(own.get("model"), str):
        what = f"{sorted(unknown)[0]!r} is not known" if unknown else "model: … is missing"
        raise InvalidOption(f"models: {scrub(given)!r}: {what}; an entry takes {', '.join(known)}.")
    if "name" in own and not _is_folder_name(own["name"]):
        fix = "use letters, digits, spaces and . _ + -"
        raise InvalidOption(f"models: the name {own['name']!r} cannot be the name of a folder; {fix}.")
    spec = Spec.parse(own["model"]) if ":" in own["model"] else Spec(own["model"], "", {})
    if spec.kind in ("http", "https") or not re.search(r"[*?\[]", spec.main):
        return [{"name": _model_name(spec), **own}]
    files = sorted(glob.glob(str(Path(spec.main).expanduser()), recursive=True))  # noqa: PTH207  any root
    if not files:
        raise InvalidOption(f"models: no file matches {spec.main}; check the pattern.")
    if "name" in own and len(files) > 1:
        raise InvalidOption(f"models: {own['name']!r} cannot name all {len(files)} files of {spec.main}.")
    specs = [Spec(spec.kind, file, spec.options) for file in files]
    return [{"name": _model_name(each), **own, "model": str(each)} for each in specs]


def _is_folder_name(name: object) -> bool:
    return isinstance(name, str) and bool(name.strip(". ")) and not _UNSAFE.search(name.replace(" ", ""))


def _model_name(spec: Spec) -> str:
    """The name of a model's folder: that of its file, or of the function.

    >>> _model_name(Spec.parse("onnx:zoo/yolox.onnx"))
    'yolox'
    """
    is_script = spec.kind.endswith(".py")
    spec = Spec.parse(without_secrets(str(spec))) if spec.kind in ("http", "https") else spec
    stem = f"{Path(spec.kind).stem}-{spec.main}" if is_script else Path(spec.main or spec.kind).stem
    return _UNSAFE.sub("-", stem).strip("-.") or "model"


def _data_name(text: str) -> str:
    spec = Spec.parse(text)
    return _UNSAFE.sub("-", f"{spec.kind}-{Path(spec.main).stem}").strip("-.") or "data"
