"""The settings of a run, declared once: flags, Python keywords and `run.yaml` follow from `RunConfig`."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from pydantic.fields import FieldInfo

from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_yaml
from stormproof.core.spec import with_option

if TYPE_CHECKING:
    from stormproof.corruptions.presets import Preset


@dataclass(frozen=True, slots=True)
class Setting:
    """What the declaration of a setting says beyond its name, type, limits and default."""

    help: str
    flags: tuple[str, ...] = ()  # the spellings on the command line, if not just --name
    completes: str = ""  # the names that a shell offers: models, datasets, conditions, benchmarks
    default_words: str = ""  # if the value alone says too little
    replaces: tuple[str, ...] = ()  # the settings of a file that this one removes when given as a flag
    per_model: bool = False  # whether each entry of `models:` may have its own


def _setting(words: str, default: Any = ..., **further: Any) -> Any:
    """A field with its `Setting`, whose help is `words`; without a default, it must be given."""
    return Field(default, json_schema_extra={"setting": Setting(words, **further)})  # type: ignore[dict-item]


def _strings(value: Any) -> Any:
    """Values of tags as strings: YAML reads 2024 as a number."""
    if not isinstance(value, Mapping):
        return value
    return {key: str(text) if isinstance(text, int | float) else text for key, text in value.items()}


# A single string is a list of one, which is how people write it in YAML.
_AS_LIST = BeforeValidator(lambda value: (value,) if isinstance(value, str) else value)
Strings = Annotated[tuple[str, ...], _AS_LIST]
PLAN = ("models", "datasets")  # the settings of a plan of many runs, in place of model and data
EXPECTED = {  # keyed by pydantic's error types, which are part of its interface; its sentences are not
    "string_type": "a string",
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "tuple_type": "a list",
    "dict_type": "pairs of key: value",
    "bool_type": "true or false",
    "bool_parsing": "true or false",
    "greater_than_equal": "at least {ge}",
    "greater_than": "more than {gt}",
    "less_than": "less than {lt}",
}


class RunConfig(BaseModel):
    """The settings of one run. Unknown ones are errors."""

    # The validator is built when it is first used: the help of a command needs the declarations alone.
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=(), defer_build=True)

    model: str = _setting(
        "kind:file, package.module:attribute or script.py:function.", completes="models", per_model=True
    )
    data: str | None = _setting(
        "The dataset, e.g. coco:val.json,images=val2017.", None,
        completes="datasets", replaces=("benchmark", "root"),
    )  # fmt: skip
    out: str = _setting("The run folder. Naming an existing one continues its run.", flags=("--out", "-o"))
    name: str | None = _setting(
        "The run's name in tables.", None, default_words="the model's name", per_model=True
    )
    conditions: Strings = _setting(
        "Conditions and suites: 'imagenet-c', 'fog@3', 'fog@1-3', 'snow', 'haze[beta=0.04]', or several "
        "separated by commas.", (), flags=("--conditions", "-c"), completes="conditions",
    )  # fmt: skip
    benchmark: str | None = _setting(
        "A paper's benchmark: coco-c with --root FOLDER, or street-c. --conditions selects part of it.", None,
        completes="benchmarks", replaces=("data", "conditions"),
    )  # fmt: skip
    root: str | None = _setting(
        "The folder of the benchmark's dataset; street benchmarks bring their own.", None
    )
    enhance: Strings = _setting("Enhance images first: clahe, nlm[h=20], style.", (), per_model=True)
    seed: Annotated[int, Field(ge=0, lt=2**63)] = _setting("A different seed gives different noise.", 0)
    limit: Annotated[int | None, Field(ge=1)] = _setting("Only the first N images.", None)
    images: str | None = _setting(
        "Only the images that FILE lists, an id on every line, as 'stormproof explore' saves them.", None
    )
    workers: Annotated[int, Field(ge=0)] = _setting(
        "Worker processes, or Slurm jobs.", 0,
        flags=("--workers", "-j"), default_words="one per core; one with --device",
    )  # fmt: skip
    batch: Annotated[int, Field(ge=1)] = _setting("Images per model call.", 8)
    chunk: Annotated[int | None, Field(ge=1)] = _setting(
        "Images per part file; at most one chunk per worker is lost when a run is killed.", None
    )
    engine: str = _setting(
        "Where chunks are run: local, feed, pool, ray, slurm; options: ray,address=HOST:PORT,gpus=1.", "pool",
        completes="engines",
    )  # fmt: skip
    shard: str = _setting(
        "i/n: every n-th chunk, starting at the i-th; join shards with 'stormproof merge'.", "1/1"
    )
    timeout: Annotated[float | None, Field(gt=0)] = _setting("Seconds that one model call may take.", None)
    precision: Annotated[float, Field(ge=0, lt=50)] = _setting(
        "Stop as soon as the mean over corruptions is known to ± this many percentage points.", 0.0,
        default_words="0: run everything",
    )  # fmt: skip
    measure: str | None = _setting(
        "The measure that tables print first, and that --precision is about.", None,
        completes="measures", default_words="the benchmark's, or AP, mask AP or mIoU",
    )  # fmt: skip
    tags: Annotated[dict[str, str], BeforeValidator(_strings)] = _setting(
        "key=value, for grouping runs in reports.", {}, flags=("--tag",), per_model=True
    )
    track: Strings = _setting("mlflow, wandb or tensorboard.", ())
    plugin: Strings = _setting("A Python file that defines corruptions or metrics.", ())
    copies: str | None = _setting(
        "Read corrupted images from DIR/<condition>/<file> instead of making them.", None
    )
    expect: dict[str, float] = _setting(
        "The clean score to expect, e.g. AP=0.372; 'score' warns if it differs.", {}, per_model=True
    )
    device: str | None = _setting(
        "Corrupt in batches on this device: cuda, cuda:1, cpu. The pixels are the same.", None
    )
    timed: bool = _setting(
        "Keep the milliseconds that the model took for each image, as the measure model_ms; with --batch 1. "
        "They differ from run to run.", False,
    )  # fmt: skip
    profile: str | None = _setting(
        "Write to FILE how long the model took under each condition, in milliseconds an image. On a device a "
        "batch may be of two conditions, which share its time.", None,
    )  # fmt: skip
    allow_missing: bool = _setting(
        "Leave out images that are missing or cannot be read. Without it, such a run fails.", False
    )

    @model_validator(mode="after")
    def _consistent(self) -> RunConfig:
        if (self.data is None) == (self.benchmark is None):
            raise ValueError("give either data (--data) or a benchmark (--benchmark coco-c --root FOLDER)")
        if self.benchmark is None and self.root is not None:
            raise ValueError("root (--root) requires a benchmark: --benchmark coco-c --root FOLDER")
        if not re.fullmatch(r"[1-9]\d*/[1-9]\d*", self.shard):
            raise ValueError(f"shard is {self.shard!r}: write i/n, such as 2/8 for the second of eight")
        turn, turns = self.share
        if turn > turns:
            raise ValueError(f"shard {self.shard}: the first number must not exceed the second")
        if self.device is not None and self.copies is not None:
            raise ValueError("copies (--copies) are already corrupted: leave out device (--device)")
        if self.timed and self.batch != 1:
            raise ValueError(
                f"timed (--timed) measures calls with one image, but batch is {self.batch}: add --batch 1"
            )
        if self.precision and self.shard != "1/1":
            raise ValueError("precision (--precision) decides how much to run as it goes: leave out --shard")
        return self

    @property
    def share(self) -> tuple[int, int]:
        turn, _, turns = self.shard.partition("/")
        return int(turn), int(turns)

    @property
    def preset(self) -> Preset | None:
        if self.benchmark is None:
            return None
        from stormproof.corruptions.presets import find_preset  # loads every recipe

        return find_preset(self.benchmark)

    def data_spec(self) -> str:
        """The dataset as named, or the benchmark's; `images` becomes its option `only`."""
        spec = str(self.data)
        if self.preset is not None:
            spec = self.preset.locate(None if self.root is None else Path(self.root))
        return spec if self.images is None else with_option(spec, "only", self.images)


# Every setting with its declaration, in order.
SETTINGS: dict[str, tuple[FieldInfo, Setting]] = {
    name: (field, cast(Any, field.json_schema_extra)["setting"])
    for name, field in RunConfig.model_fields.items()
}


def shown_default(field: FieldInfo, setting: Setting) -> str:
    """The default as the help shows it; empty if it needs no explanation."""
    value = field.default
    if setting.default_words or field.is_required() or isinstance(value, tuple | dict | bool | None):
        return setting.default_words
    return f"{value:g}" if isinstance(value, float) else str(value)


def make_config(settings: Mapping[str, Any], source: str = "") -> RunConfig:
    """Checked settings, with the kinds of bare files, so that every process and every record reads the same.

    All complaints are raised as one line that starts with `source`.
    """
    from stormproof import datasets, models  # the help of a command needs neither

    try:
        config = RunConfig.model_validate(dict(settings))
    except ValidationError as error:
        complaints = "; ".join(_complaint(problem) for problem in error.errors())
        raise InvalidOption(f"{source + ': ' if source else ''}{complaints}.") from None
    data = None if config.data is None else datasets.full_spec(config.data)
    return config.model_copy(update={"model": models.full_spec(config.model), "data": data})


def overlay(settings: Mapping[str, Any], flags: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of a file, overridden by flags; a flag also removes the settings that it replaces.

    >>> overlay({"benchmark": "coco-c", "root": "coco", "seed": 1}, {"data": "images:x", "seed": None})
    {'seed': 1, 'data': 'images:x'}
    """
    given = {name: value for name, value in flags.items() if value is not None}
    gone = {other for name in given for other in SETTINGS[name][1].replaces} - given.keys()
    return {name: value for name, value in settings.items() if name not in gone} | given


def read_settings(path: Path) -> dict[str, Any]:
    """The settings of a `run.yaml`, unchecked because flags may add to them. Empty ones count as absent."""
    content = read_yaml(path, error=InvalidOption)
    if not isinstance(content, dict):
        raise InvalidOption(f"{path} must hold settings (model: …, data: …), not a {type(content).__name__}.")
    refuse_unknown([str(key) for key in content], (*SETTINGS, *PLAN), f"{path}: ")
    return {key: value for key, value in content.items() if value is not None}


def refuse_unknown(names: Iterable[str], known: Collection[str], source: str = "") -> None:
    """Refuse names that are not settings, and suggest the nearest one."""
    unknown = [_unknown(name) for name in names if name not in known]
    if unknown:
        raise InvalidOption(f"{source}{'; '.join(unknown)}.")


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
    near = get_close_matches(name, SETTINGS, n=1)
    return f"{name!r} is not a setting" + (f"; did you mean {near[0]!r}?" if near else "")
