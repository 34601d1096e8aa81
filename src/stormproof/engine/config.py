"""What a run is asked to do: the settings of `run.yaml`, which are the flags of `stormproof run`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_yaml
from stormproof.corruptions.presets import Preset, find_preset


class Engine(StrEnum):
    """Where chunks are done."""

    local = "local"
    pool = "pool"
    ray = "ray"
    slurm = "slurm"


def _listed(value: Any) -> Any:
    """One string is a list of one, as people write it in YAML."""
    return (value,) if isinstance(value, str) else value


def _strings(value: Any) -> Any:
    """Values of tags are strings, though YAML reads 2024 as a number."""
    if not isinstance(value, Mapping):
        return value
    return {key: str(text) if isinstance(text, int | float) else text for key, text in value.items()}


Strings = Annotated[tuple[str, ...], BeforeValidator(_listed)]
_RIVALS = {  # settings that a flag removes, since both cannot hold
    "data": ("benchmark", "root"),
    "benchmark": ("data", "suite", "conditions"),
}
EXPECTED = {  # by pydantic's types of error, which are part of its interface, as its sentences are not
    "string_type": "a string",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "tuple_type": "a list",
    "dict_type": "pairs of key: value",
    "enum": "{expected}",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
}


class RunConfig(BaseModel):
    """Settings of a run. Each has a flag of the same name; unknown ones are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    model: str
    out: str
    data: str | None = None
    benchmark: str | None = None
    root: str | None = None
    suite: Strings = ()
    conditions: Strings = ()
    enhance: Strings = ()
    seed: Annotated[int, Field(ge=0, lt=2**63)] = 0
    limit: Annotated[int | None, Field(ge=1)] = None
    workers: Annotated[int, Field(ge=0)] = 0
    batch: Annotated[int, Field(ge=1)] = 8
    chunk: Annotated[int | None, Field(ge=1)] = None
    engine: Engine = Engine.pool
    address: str | None = None
    gpus: Annotated[float, Field(ge=0)] = 0.0
    slurm: dict[str, str | int] = {}
    shard: str = "1/1"
    timeout: Annotated[float | None, Field(gt=0)] = None
    precision: Annotated[float, Field(ge=0, lt=50)] = 0.0  # percentage points of mPC; 0: the full grid
    measure: str | None = None  # what tables print first and --precision is about; none: as usual
    tags: Annotated[dict[str, str], BeforeValidator(_strings)] = {}
    track: Strings = ()
    plugin: Strings = ()
    copies: str | None = None
    device: str | None = None
    expect: dict[str, float] = {}

    @model_validator(mode="after")
    def _consistent(self) -> RunConfig:
        if (self.data is None) == (self.benchmark is None):
            raise ValueError("give either data (--data) or a benchmark (--benchmark with --root)")
        if (self.benchmark is None) != (self.root is None):
            raise ValueError("benchmark and root go together: --benchmark coco-c --root FOLDER")
        if not re.fullmatch(r"[1-9]\d*/[1-9]\d*", self.shard):
            raise ValueError(f"shard is {self.shard!r}: write i/n, such as 2/8 for the second of eight")
        turn, turns = self.share
        if turn > turns:
            raise ValueError(f"shard {self.shard}: the first number must not exceed the second")
        if self.address is not None and self.engine is not Engine.ray:
            raise ValueError("address (--address) goes with --engine ray")
        if self.gpus and self.engine is not Engine.ray:
            raise ValueError("gpus (--gpus) goes with --engine ray; elsewhere the model's own options say it")
        if self.device is not None and self.copies is not None:
            raise ValueError("copies (--copies) are corrupted already: leave device (--device) out")
        if (self.device or "").startswith("cuda") and self.engine is Engine.ray and not self.gpus:
            raise ValueError(
                "device (--device cuda) with --engine ray: Ray shows a task no GPU without --gpus 1"
            )
        if self.slurm and self.engine is not Engine.slurm:
            raise ValueError("slurm options (--slurm) go with --engine slurm")
        return self

    @property
    def share(self) -> tuple[int, int]:
        turn, _, turns = self.shard.partition("/")
        return int(turn), int(turns)

    @property
    def preset(self) -> Preset | None:
        return None if self.benchmark is None else find_preset(self.benchmark)

    def data_spec(self) -> str:
        """The dataset, as named or as the benchmark finds it below its root."""
        if self.preset is not None and self.root is not None:
            return self.preset.locate(Path(self.root))
        return str(self.data)


def make_config(settings: Mapping[str, Any], source: str = "") -> RunConfig:
    """Checked settings; every complaint in one line, with `source` in front."""
    try:
        return RunConfig.model_validate(dict(settings))
    except ValidationError as error:
        complaints = "; ".join(_complaint(problem) for problem in error.errors())
        raise InvalidOption(f"{source + ': ' if source else ''}{complaints}.") from None


def overlay(settings: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file, overridden by flags; a flag also removes the settings it excludes.

    >>> overlay({"benchmark": "coco-c", "root": "coco", "seed": 1}, {"data": "images:x", "seed": None})
    {'seed': 1, 'data': 'images:x'}
    """
    given = {name: value for name, value in flags.items() if value is not None}
    gone = {rival for name in given for rival in _RIVALS.get(name, ())} - given.keys()
    return {name: value for name, value in settings.items() if name not in gone} | given


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a `run.yaml`, not yet checked: flags may add to them. Empty ones are not given."""
    content = read_yaml(path, error=InvalidOption)
    if not isinstance(content, dict):
        raise InvalidOption(f"{path} must hold settings (model: …, data: …), not a {type(content).__name__}.")
    known = (*RunConfig.model_fields, "models", "datasets", "suites")  # the latter in engine/many.py
    unknown = [str(key) for key in content if key not in known]
    if unknown:
        raise InvalidOption(f"{path}: {'; '.join(map(_unknown, unknown))}.")
    return {key: value for key, value in content.items() if value is not None}


def _complaint(problem: Any) -> str:
    name = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "missing":
        return f"{name} is missing (--{name})"
    if problem["type"] == "extra_forbidden":
        return _unknown(name)
    if problem["type"] == "value_error":  # from our own validators, about several settings
        return str(problem["ctx"]["error"])
    expected = EXPECTED.get(problem["type"])
    words = f"it must be {expected.format_map(problem.get('ctx', {}))}" if expected else problem["msg"]
    return f"{name} is {problem['input']!r}: {words}"


def _unknown(name: str) -> str:
    near = get_close_matches(name, RunConfig.model_fields, n=1)
    return f"{name!r} is not a setting" + (f"; did you mean {near[0]!r}?" if near else "")
