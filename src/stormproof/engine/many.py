"""Many models in one plan: each is a run with a folder of its own, and all share the workers.

    models:
      - onnx:zoo/*.onnx                          # a pattern: one model for each file
      - {model: mine.py:detect, name: mine, tags: {family: own}, expect: {AP: 0.372}}
    datasets: [coco:val.json,images=val2017]
    suites: [imagenet-c]
    out: runs/zoo

Runs are planned one after the other, when a worker is free for the next; a model that fails is reported and
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
from stormproof.core.spec import Spec
from stormproof.engine.config import RunConfig, make_config
from stormproof.engine.executors import Executor
from stormproof.engine.plan import make_plan
from stormproof.engine.run import Summary, Task, Watch, started
from stormproof.engine.work import Attempt, ChunkResult

MANY = ("models", "datasets", "suites")
_OWN = {"model", "name", "tags", "expect", "enhance"}  # what an entry of `models` may hold


@dataclass(frozen=True, slots=True)
class Entry:
    """One run of a plan of many: its name there, and its settings."""

    name: str
    config: RunConfig


@dataclass(slots=True)
class Outcome:
    """What became of one run: its summary, and the error that ended it early."""

    entry: Entry
    summary: Summary | None = None
    error: StormproofError | None = None

    @property
    def complete(self) -> bool:
        return self.error is None and self.summary is not None and not self.summary.failed


def is_many(settings: Mapping[str, Any]) -> bool:
    """Whether settings describe several runs."""
    return any(name in settings for name in MANY)


def entries(settings: Mapping[str, Any], source: str = "") -> list[Entry]:
    """The runs that settings with `models:` describe, every one of them checked."""
    both = [f"{one} and {many}" for one, many in zip(("model", "data", "suite"), MANY, strict=True)
            if one in settings and many in settings]  # fmt: skip
    if both:
        raise InvalidOption(f"{source or 'run.yaml'}: {both[0]} exclude each other; keep one of them.")
    shared = {key: value for key, value in settings.items() if key not in (*MANY, "model", "data", "out")}
    if "suites" in settings:
        shared["suite"] = settings["suites"]
    models = [model for given in _listed(settings, "models", "model") for model in _models(given)]
    datasets = _listed(settings, "datasets", "data") or [None]
    out = settings.get("out")
    if not models or not isinstance(out, str):
        missing = "models" if not models else "out (--out)"
        raise InvalidOption(f"{source or 'run.yaml'}: {missing} is missing.")
    found = []
    for model in models:
        for data in datasets:
            name = model["name"] if len(datasets) == 1 else f"{model['name']}/{_data_name(str(data))}"
            own = {key: value for key, value in model.items() if key != "name"}
            mine = {**shared, **own, "tags": {**shared.get("tags", {}), **own.get("tags", {})}}
            mine |= {"out": str(Path(out) / name)} | ({} if data is None else {"data": data})
            found.append(Entry(name, make_config(mine, f"{source}: {name}" if source else name)))
    twice = [name for name, count in Counter(entry.name for entry in found).items() if count > 1]
    if twice:
        raise InvalidOption(f"Two models are called {twice[0]!r}; give one of them another name: ….")
    return found


def run_all(listed: Sequence[Entry], executor: Executor, watches: Sequence[Watch] = ()) -> list[Outcome]:
    """Do every run; results come in any order, and each run's folder is held until all are done."""
    outcomes = [Outcome(entry) for entry in listed]
    tasks: dict[Path, tuple[Task, Outcome]] = {}
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
    outcomes: Sequence[Outcome],
    tasks: dict[Path, tuple[Task, Outcome]],
    held: ExitStack,
    watches: Sequence[Watch],
) -> Iterator[Attempt]:
    """Chunks of one run after the other, each planned when its turn comes; a failed run ends early."""
    for outcome in outcomes:
        try:
            plan = make_plan(outcome.entry.config, keep_dataset=outcome is not outcomes[0])
            task = held.enter_context(started(plan, watches))
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


def _listed(settings: Mapping[str, Any], many: str, one: str) -> list[Any]:
    given = settings.get(many, settings.get(one))
    if given is None:
        return []
    listed = given if isinstance(given, list | tuple) else [given]
    for value in listed:
        if not isinstance(value, str | dict) or (isinstance(value, dict) and many != "models"):
            raise InvalidOption(f"{many}: {value!r} is not a spec such as kind:file.")
    return list(listed)


def _models(given: str | dict[str, Any]) -> list[dict[str, Any]]:
    """The models of an entry: one, or one for each file that its pattern finds."""
    own = {"model": given} if isinstance(given, str) else dict(given)
    unknown = own.keys() - _OWN
    if unknown or not isinstance(own.get("model"), str):
        what = f"{sorted(unknown)[0]!r} is not known" if unknown else "there is no model: …"
        raise InvalidOption(f"models: {given!r}: {what}; an entry takes {', '.join(sorted(_OWN))}.")
    spec = Spec.parse(own["model"]) if ":" in own["model"] else Spec(own["model"], "", {})
    if not re.search(r"[*?\[]", spec.main):
        return [{"name": _name(spec, own["model"]), **own}]
    files = sorted(glob.glob(str(Path(spec.main).expanduser()), recursive=True))  # noqa: PTH207  any root
    if not files:
        raise InvalidOption(f"models: no file fits {spec.main}; check the pattern.")
    if "name" in own and len(files) > 1:
        raise InvalidOption(f"models: {own['name']!r} cannot name the {len(files)} files of {spec.main}.")
    found = [Spec(spec.kind, file, spec.options) for file in files]
    return [{"name": _name(each, str(each)), **own, "model": str(each)} for each in found]


def _name(spec: Spec, text: str) -> str:
    """What a model's folder is called: its file's name, or the function's.

    >>> _name(Spec.parse("onnx:zoo/yolox.onnx"), "")
    'yolox'
    """
    is_script = spec.kind.endswith(".py")
    stem = f"{Path(spec.kind).stem}-{spec.main}" if is_script else Path(spec.main or spec.kind).stem
    return re.sub(r"[^\w.+-]+", "-", stem).strip("-.") or "model"


def _data_name(text: str) -> str:
    spec = Spec.parse(text)
    return re.sub(r"[^\w.+-]+", "-", f"{spec.kind}-{Path(spec.main).stem}").strip("-.")
