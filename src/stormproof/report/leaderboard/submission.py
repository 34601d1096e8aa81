"""A submission: a model's grid on a dataset and where it comes from, as one JSON file.

A file is refused, with the field named, when its numbers do not follow from its own grid or its digest is
not that of its content. A grid with holes is kept as incomplete: it has no mean.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, InvalidOption, StoreError
from stormproof.core.files import open_regular, read_text
from stormproof.metrics.coco import MASKS
from stormproof.metrics.metric import measures
from stormproof.metrics.task import TASKS, task_of_measure
from stormproof.results.aggregates import aggregates, mean_of
from stormproof.results.run import Run
from stormproof.results.sets import sets_of

_SAME = 1e-9  # what rounding in JSON may cost
_LARGEST = 4 << 20  # bytes of a file: a full grid takes some kilobytes
_BLOCK = 1 << 20  # bytes read at a time
_KEPT = ("created", "stormproof", "python", "packages", "decoder")  # of provenance: no folder, no machine
Name = Annotated[str, Field(min_length=1, max_length=300)]
Words = Annotated[str, Field(max_length=4000)]
Score = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
_PEOPLE = "person detection"  # of ADR, which has no task of its own


def _known_task(name: str) -> str:
    if name != _PEOPLE and name not in TASKS:
        raise ValueError(f"unknown task {name!r}; there are {', '.join((*TASKS, _PEOPLE))}")
    return name


Task = Annotated[str, AfterValidator(_known_task)]


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())


class SubmittedModel(_Frozen):
    """`tags` say what it is made of: framework, backbone, neck, training data …"""

    name: Name
    fingerprint: Name | None = None
    tags: dict[Name, Name] = {}


class SubmittedDataset(_Frozen):
    """The dataset; scores are of `images` images, the first of the dataset except for unreadable ones."""

    name: Name
    fingerprint: Name | None = None
    images: Annotated[int, Field(ge=1)] | None = None
    unreadable: Annotated[int, Field(ge=0)] = 0  # images that could not be read and were left out


class Verification(_Frozen):
    """Cells that someone else ran again, and how far the scores lay apart at most."""

    conditions: tuple[Name, ...]
    largest_difference: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    tolerance: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    date: Name
    stormproof: Name


class Submission(_Frozen):
    """The contents of a submission. Scores are fractions.

    `grid` holds a score per condition; `by_corruption` means over severities, where a paper printed no more.
    `conditions` are what a complete grid holds beside clean. P is the clean score, mPC the mean under
    corruption (of errors: mCE), rPC their ratio.
    """

    schema_version: Literal[1] = 1
    origin: Literal["published", "self-reported"]
    task: Task
    model: SubmittedModel
    dataset: SubmittedDataset
    measure: Name
    conditions: tuple[Name, ...] = ()
    P: Score | None
    mPC: Score | None  # noqa: N815  # as the papers write it
    rPC: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None  # noqa: N815
    grid: dict[Name, Score] = {}
    by_corruption: dict[Name, Score] = {}
    benchmark: Name | None = None  # whose rule says which conditions the mean covers
    seed: int | None = None
    recipes: dict[Name, int] = {}
    predictions: Name | None = None  # a hash of the run's part files, in order
    citation: Words = ""
    note: Words = ""
    provenance: dict[str, Any] = {}
    verification: Verification | None = None

    @field_validator("measure")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in measures():
            raise ValueError(f"is not a measure of Stormproof, such as {', '.join(list(measures())[:3])}")
        return value

    @field_validator("conditions", "grid")
    @classmethod
    def _readable(cls, value: Any) -> Any:
        for text in value:
            try:
                parsed = Condition.parse(text)
            except InvalidCondition as error:
                raise ValueError(f"contains an invalid condition: {error}") from None
            if str(parsed) != text:
                raise ValueError(f"contains {text!r}, which should be written {str(parsed)!r}")
        return value

    @model_validator(mode="after")
    def _follows(self) -> Self:
        stray = [text for text in self.grid if text not in ("clean", *self.conditions)]
        if stray:
            raise ValueError(f"grid: {stray[0]!r} is not among the conditions")
        if self.grid and self.by_corruption:
            raise ValueError("by_corruption: give it only where there is no grid")
        for field, value in self.derived().items():
            given = getattr(self, field)
            if (given is None) != (value is None):
                raise ValueError(f"{field}: is {_show(given)}, but the grid gives {_show(value)}")
            if given is not None and value is not None and abs(given - value) > _SAME:
                raise ValueError(f"{field}: is {given}, but the grid gives {value}")
        return self

    @property
    def missing(self) -> tuple[str, ...]:
        """Conditions without a score."""
        if self.by_corruption:
            return ()
        return tuple(text for text in ("clean", *self.conditions) if text not in self.grid)

    @property
    def badge(self) -> str:
        """published, self-reported or re-run."""
        return "re-run" if self.verification else self.origin

    @property
    def higher(self) -> bool:
        """Whether more is better."""
        return measures()[self.measure].higher

    def derived(self) -> dict[str, float | None]:
        """P, mPC and rPC as they follow from the grid; none where it lacks what they need."""
        if self.by_corruption:
            mean = fmean(self.by_corruption.values())
            ratio = mean / self.P if self.higher and self.P else None
            return {"P": self.P, "mPC": mean, "rPC": ratio}
        return derive(self.measure, self.grid, self.conditions, self.benchmark)


def derive(
    measure: str, grid: Mapping[str, float], conditions: tuple[str, ...], benchmark: str | None
) -> dict[str, float | None]:
    """P, mPC and rPC of a grid, as `stormproof score` has them: over its benchmark, its suite, or what it
    holds."""
    clean = grid.get("clean")
    over = next(iter(sets_of(conditions, benchmark)), None)
    whole = over is not None and all(text in grid for text in conditions)
    mean = mean_of(aggregates(measure, grid, over)) if over is not None and whole else None
    ratio = mean / clean if measures()[measure].higher and mean is not None and clean else None
    return {"P": clean, "mPC": mean, "rPC": ratio}


def digest(content: Mapping[str, Any]) -> str:
    """The hash of a submission's content, whatever the order and layout of its file."""
    rest = {key: value for key, value in content.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
    return hashlib.blake2b(text.encode(), digest_size=32).hexdigest()


def as_json(submission: Submission) -> str:
    """A submission as its file, with its digest."""
    content = submission.model_dump(mode="json")
    return json.dumps({**content, "digest": digest(content)}, indent=1, ensure_ascii=False) + "\n"


def read_submission(path: Path) -> Submission:
    """A submission file, checked; what is wrong is named by its field."""
    try:
        text = read_text(path, at_most=_LARGEST, error=InvalidOption)
        content = json.loads(text, parse_constant=_no_constant)
    except InvalidOption:
        raise
    except (ValueError, RecursionError) as error:
        raise InvalidOption(f"{path} is not JSON: {error}.") from None
    if not isinstance(content, dict):
        raise InvalidOption(f"{path}: a submission is an object with fields, not a {type(content).__name__}.")
    return parse_submission(content, str(path))


def parse_submission(content: Mapping[str, Any], source: str) -> Submission:
    """A submission from its JSON."""
    given = content.get("digest")
    if given != digest(content):
        what = "is missing" if given is None else "does not match the content, which was changed since"
        raise InvalidOption(f"{source}: digest {what}. Make the file again with 'stormproof submit'.")
    try:
        rest = {key: value for key, value in content.items() if key != "digest"}
        return Submission.model_validate_json(json.dumps(rest), strict=True)
    except ValidationError as error:
        raise InvalidOption(f"{source}: {'; '.join(_complaint(e) for e in error.errors()[:5])}.") from None


def _complaint(problem: Any) -> str:
    field = ".".join(str(part) for part in problem["loc"])
    words = str(problem["msg"]).removeprefix("Value error, ")
    return f"{field}: {words}" if field else words


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is not a number in JSON")


def _show(value: float | None) -> str:
    return "null" if value is None or math.isnan(value) else str(value)


def submission_of(run: Run, *, measure: str | None = None, note: str = "") -> Submission:
    """The submission of a run, of its usual scores. One with holes says so and has no mean."""
    record, scores = run.record, run.score(partial=True)
    chosen = measure or scores.headline
    if chosen not in scores:
        raise InvalidOption(f"{run.folder} has no {chosen}; it has {', '.join(scores)}.")
    if not measures()[chosen].aggregate:
        raise InvalidOption(f"{chosen} cannot be submitted: its mean over conditions has no meaning.")
    grid = {text: value for text, value in scores.per_condition[chosen].items() if math.isfinite(value)}
    conditions = tuple(text for text in record.conditions if text != "clean")
    return Submission(
        origin="self-reported",
        task=task_name(chosen),
        model=SubmittedModel(
            name=" + ".join((record.model.name, *record.model.enhance)),
            fingerprint=record.model.fingerprint,
            tags=record.tags,
        ),
        dataset=SubmittedDataset(
            name=record.dataset.name,
            fingerprint=record.dataset.fingerprint,
            images=scores.images,
            unreadable=len(run.unreadable),
        ),
        measure=chosen,
        conditions=conditions,
        grid=grid,
        benchmark=record.benchmark,
        **derive(chosen, grid, conditions, record.benchmark),  # type: ignore[arg-type]
        seed=record.seed,
        recipes=record.recipes,
        predictions=predictions_hash(run),
        note=note,
        provenance={key: record.provenance[key] for key in _KEPT if key in record.provenance},
    )


def task_name(measure: str) -> Task:
    """The task that a measure is about, as leaderboards call it."""
    if measure == "ADR":
        return _PEOPLE
    own = task_of_measure(measure)
    if own is None:
        return "instance segmentation" if measure.startswith(MASKS) else "detection"
    return own.name


def predictions_hash(run: Run) -> str:
    """A hash over the part files of a run, in order: equal runs of one version have equal ones."""
    digest_so_far = hashlib.blake2b(digest_size=32)
    for path in run.parts:
        with open_regular(path, error=StoreError) as file:
            while block := file.read(_BLOCK):
                digest_so_far.update(block)
    return digest_so_far.hexdigest()
