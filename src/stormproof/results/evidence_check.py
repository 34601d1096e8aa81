"""Check evidence against a run: everything it states is computed again from the run and compared."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from stormproof.core.errors import InvalidOption
from stormproof.core.files import read_json, sha256
from stormproof.results.evidence import PREDICATE, STATEMENT, statement
from stormproof.results.requirements import read_requirements
from stormproof.results.run import Run
from stormproof.results.verdicts import check_run

_LARGEST = 1 << 26  # bytes of a file of evidence
_SAME = 1e-9  # the error of writing a number as text
_PARTS = ("subject", "predicateType", "predicate")
# Parts that depend on the moment, not the run; the file of requirements is compared if it is given.
_PASSING = (("predicate", "configuration"), ("created",), ("environment", "check"))


class _Intervals(BaseModel):
    replicates: Annotated[int, Field(ge=2, le=100_000)]


class _Given(BaseModel):
    images: Annotated[int, Field(ge=0)]


class _Pixels(BaseModel):
    given: _Given


class _Predictions(BaseModel):
    digest: str


class _Baseline(BaseModel):
    predictions: _Predictions


class _Stated(BaseModel):
    """The parts needed to make a statement again."""

    requirements: list[dict[str, Any]]
    intervals: _Intervals
    predictions: _Predictions
    baseline: _Baseline | None
    pixels: _Pixels


def read_evidence(path: Path) -> dict[str, Any]:
    """A file that `stormproof evidence` wrote."""
    content = read_json(path, at_most=_LARGEST, error=InvalidOption)
    if not isinstance(content, dict) or content.get("_type") != STATEMENT:
        raise InvalidOption(f"{path} is not an in-toto statement; 'stormproof evidence' writes one.")
    if content.get("predicateType") != PREDICATE:
        raise InvalidOption(f"{path} is not about a test result; 'stormproof evidence' writes it.")
    return content


def check_evidence(
    content: Mapping[str, Any], run: Run, *, against: Run | None = None, requirements: Path | None = None
) -> list[str]:
    """The statements of the evidence that do not follow from the run, in words; empty if all do.

    Checked are the digest of the predictions, the baseline and its digest, then every verdict with its
    interval from the same number of replicates, the sample of pixels, and what was tested. `requirements` is
    the file that the evidence names.
    """
    predicate = content.get("predicate")
    try:
        stated = _Stated.model_validate(predicate["stormproof"] if isinstance(predicate, dict) else None)
    except (ValidationError, KeyError) as error:
        what = error.errors()[0] if isinstance(error, ValidationError) else {"loc": ("stormproof",)}
        return [f"predicate.stormproof.{'.'.join(map(str, what['loc']))} is missing or wrong"]
    found = _other_runs(stated, run, against)
    if found:
        return found
    try:
        requirements_again = read_requirements([_required(row) for row in stated.requirements])
        verdicts = check_run(run, requirements_again, against=against, replicates=stated.intervals.replicates)
    except InvalidOption as error:
        return [f"predicate.stormproof.requirements: {error}"]
    made = statement(
        run, requirements, verdicts, against=against, pixels=stated.pixels.given.images,
        replicates=stated.intervals.replicates,
    )  # fmt: skip
    again = json.loads(json.dumps(made))
    found = [*_configuration(content, again, requirements)]
    told, right = ({part: each.get(part) for part in _PARTS} for each in (content, again))
    return [*found, *(_named(place) for place in _differences(told, right) if not _passes(place))]


def _other_runs(stated: _Stated, run: Run, against: Run | None) -> list[str]:
    """Whether the predictions of the run and of its baseline are those that were judged."""
    if stated.predictions.digest != run.digest:
        return [f"it is about other predictions than those in {run.folder}"]
    if stated.baseline is None:
        return [] if against is None else ["it has no baseline; leave --against out"]
    if against is None:
        return ["it was judged against a baseline; name its run with --against RUN"]
    if stated.baseline.predictions.digest != against.digest:
        return [f"its baseline has other predictions than those in {against.folder}"]
    return []


def _required(row: Mapping[str, Any]) -> dict[str, Any]:
    """A requirement as it was written in its file."""
    known = {name: row[name] for name in ("id", "metric", "of", "condition", "suite") if row.get(name)}
    return {**known, str(row.get("bound")): row.get("threshold")}


def _configuration(
    content: Mapping[str, Any], again: Mapping[str, Any], requirements: Path | None
) -> Iterator[str]:
    """Check the digests of run.json and, if given, of the file of requirements."""
    listed = content["predicate"].get("configuration")
    entries = listed if isinstance(listed, list) else []
    digests = [entry.get("digest") for entry in entries if isinstance(entry, dict)]
    if again["predicate"]["configuration"][-1]["digest"] not in digests:
        yield "predicate.configuration does not have the digest of run.json"
    if requirements is not None and {"sha256": sha256(requirements, error=InvalidOption)} not in digests:
        yield f"predicate.configuration does not have the digest of {requirements}"


def _differences(told: Any, right: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places where two documents differ."""
    if isinstance(told, dict) and isinstance(right, dict):
        for name in dict.fromkeys((*right, *told)):
            if name in told and name in right:
                yield from _differences(told[name], right[name], (*place, str(name)))
            else:
                yield (*place, str(name))
    elif isinstance(told, list) and isinstance(right, list) and len(told) == len(right):
        for k, (one, two) in enumerate(zip(told, right, strict=True)):
            yield from _differences(one, two, (*place, str(k)))
    elif not _equal(told, right):
        yield place


def _equal(told: Any, right: Any) -> bool:
    if isinstance(right, float) and type(told) in (int, float):
        return bool(abs(told) < 1e300 and math.isclose(told, right, rel_tol=_SAME, abs_tol=_SAME))
    return type(told) is type(right) and bool(told == right)


def _passes(place: tuple[str, ...]) -> bool:
    inner = place[2:] if place[:2] == ("predicate", "stormproof") else place
    return any(inner[: len(passing)] == passing for passing in _PASSING)


def _named(place: tuple[str, ...]) -> str:
    return f"{'.'.join(place)} does not follow from the run"
