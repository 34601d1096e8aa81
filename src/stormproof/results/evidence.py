"""Evidence of a test: an in-toto Statement v1 with a test-result predicate.

The statement says what was tested, on what data, how, with which result and how sure that result is. It is
not signed; `cosign attest-blob` and other tools sign it. It does not claim conformity with any standard.

A run does not store corrupted pixels. Those of a sample of images are made again, as the run made them, and
hashed: equal hashes mean that two people tested the same pixels.

`check_evidence` computes everything that a statement says again from the run, and compares.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, StoreError, StormproofError, counted
from stormproof.core.files import read_json, sha256
from stormproof.core.private import shareable
from stormproof.core.provenance import provenance
from stormproof.core.randomness import Draw
from stormproof.core.sample import Image
from stormproof.core.spec import spec_file
from stormproof.core.text import json_safe
from stormproof.corruptions import CORRUPTIONS
from stormproof.corruptions.units import physical
from stormproof.results.documents import few_images
from stormproof.results.interval import WRONG, interval_target
from stormproof.results.looks import LOOKS, Look, Spent, read_looks, with_look
from stormproof.results.requirements import check_plan, read_requirements
from stormproof.results.run import Run
from stormproof.results.store.record import RECORD, RunRecord
from stormproof.results.verdicts import Outcome, Verdict, check_run, how_sure, look_at
from stormproof.results.weights import FEWEST_REPLICATES, REPLICATES

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
SAMPLE = 20  # images whose corrupted pixels are hashed, unless another number is asked for
_LARGEST = 1 << 26  # bytes of a file of evidence
_SAME = 1e-9  # the error of writing a number as text
_PARTS = ("subject", "predicateType", "predicate")
# Depends on when the statement was made. Digests of files are compared by `_configuration`.
_NOT_COMPARED = (("predicate", "configuration"), ("created",), ("environment", "check"))
_RESULTS = {Outcome.FAIL: "FAILED", Outcome.INCONCLUSIVE: "WARNED", Outcome.PASS: "PASSED"}  # worst first


def statement(
    run: Run, requirements: Path | None, verdicts: Sequence[Verdict], *,
    against: Run | None = None, pixels: int = SAMPLE, replicates: int = REPLICATES,
    looks: Sequence[Look] | None = None,
) -> dict[str, Any]:  # fmt: skip
    """The statement about a run and the verdicts on it; JSON-able. `requirements` is their file, `looks` are
    all at the run so far: those that its folder records, and these verdicts."""
    look = verdicts[0].look
    if looks is None:
        planned = None if look is None else look.planned
        this = look_at(run, [verdict.requirement for verdict in verdicts], against, planned)
        looks = with_look(read_looks(run.folder), this)
    return make_statement(
        run, requirements,
        {outcome: [v.requirement.id for v in verdicts if v.outcome is outcome] for outcome in Outcome},
        {
            "requirements": json_safe([verdict.as_dict() for verdict in verdicts]),  # a time has no limit
            "wrong_verdicts": {"at_most": WRONG, "words": how_sure(verdicts)},
        },
        look=look, looks=looks, against=against, pixels=pixels, replicates=replicates,
    )  # fmt: skip


def make_statement(
    run: Run, file: Path | None, ids: Mapping[Outcome, Sequence[str]], judged: Mapping[str, Any], *,
    look: Spent | None, looks: Sequence[Look], against: Run | None = None, pixels: int, replicates: int,
) -> dict[str, Any]:  # fmt: skip
    """The statement about a run of which `judged` was said, with the ids of its tests by their outcome.

    The model is identified as the run recorded it. If its file is present, it must be unchanged.
    """
    record = run.record
    compared = [compare_file(each.record) for each in (run, against) if each is not None]
    files: list[tuple[Path, type[StormproofError]]] = [(run.folder / RECORD, StoreError)]
    if file is not None:
        files.insert(0, (file, InvalidOption))
    baseline = None
    if against is not None:
        baseline = {"model": _model(against.record), "predictions": {"digest": against.digest}}
    tested = len(run.readable)
    told = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        **judged,
        "looks": {
            "planned_images": None if look is None else look.planned,
            "this": None if look is None else look.as_dict(),
            "all": [each.model_dump() for each in looks],
        },
        "intervals": {
            "level": 0.95, "target": interval_target(run.clips), "replicates": replicates,
            "warning": few_images(tested, run.clips),
        },
        "predictions": {"digest": run.digest}, "baseline": baseline, "model": _model(record),
        "dataset": record.dataset.model_dump(mode="json")
        | {"spec": _shareable(record, record.dataset.spec), "images_tested": tested},
        "seed": record.seed, "recipes": record.recipes,
        "files": {_shareable(record, name): digest for name, digest in record.files.items()},
        "conditions": [_describe(text) for text in record.conditions],
        "pixels": pixel_manifest(run, images=pixels),
        "environment": {
            "run": _environment(record.provenance),
            "check": {**_environment(provenance()), "model_file": compared[0]},
        },
        "deviations": _deviations(run), "operating_conditions": _operating(record),
    }  # fmt: skip
    return {
        "_type": STATEMENT, "subject": [_subject(record)], "predicateType": PREDICATE,
        "predicate": {
            "result": next(word for outcome, word in _RESULTS.items() if ids[outcome]),
            "configuration": [
                {"name": each.name, "digest": {"sha256": sha256(each, error=error)}} for each, error in files
            ],
            "passedTests": ids[Outcome.PASS], "warnedTests": ids[Outcome.INCONCLUSIVE],
            "failedTests": ids[Outcome.FAIL], "stormproof": told,
        },
    }  # fmt: skip


def _shareable(record: RunRecord, text: str) -> str:
    """A spec or a path without secrets, and relative to where the run was started: folders name people."""
    return shareable(text, str(record.provenance.get("folder") or "") or None)


def _model(record: RunRecord) -> dict[str, Any]:
    return record.model.model_dump(mode="json") | {"spec": _shareable(record, record.model.spec)}


def _environment(made: Mapping[str, Any]) -> dict[str, Any]:
    """Versions, machine and command; not the folder."""
    folder = str(made.get("folder") or "") or None
    command = [shareable(str(word), folder) for word in made.get("command", ())]
    return {key: value for key, value in made.items() if key != "folder"} | {"command": command}


def _subject(record: RunRecord) -> dict[str, Any]:
    """The model as the run recorded it: by the SHA-256 of its file, if it is a file, and its fingerprint."""
    digest = {"stormproofFingerprint": record.model.fingerprint}
    if record.model.sha256 is not None:
        digest = {"sha256": record.model.sha256, **digest}
    return {"name": record.model.name, "digest": digest}


def compare_file(record: RunRecord) -> str:
    """Whether the model's file is the one that was run; another one is refused.

    run.json may name any path, so the file there is only compared with the recorded digest; its own digest is
    never stated.
    """
    file, then = spec_file(record.model.spec), record.model.sha256
    if then is None:
        return "the run recorded no file"
    if file is None:
        return "not here"
    if sha256(file, error=StoreError) != then:
        raise StoreError(
            f"{file} is not the file of {record.model.name} that was run: its SHA-256 differs. Put the "
            "file back, or run again into another folder."
        )
    return "as it was run"


def _describe(text: str) -> dict[str, Any]:
    quantities = physical(Condition.parse(text))
    return {
        "condition": text,
        "physical": [
            {"name": q.name, "value": q.value if math.isfinite(q.value) else None, "unit": q.unit}
            for q in quantities
        ],
    }


def _deviations(run: Run) -> list[str]:
    """Deviations from a full test."""
    deviations, record = [], run.record
    if record.images < record.dataset.images:
        deviations.append(f"Only the first {record.images} of {record.dataset.images} images were tested.")
    unreadable = list(run.unreadable.values())
    if unreadable:
        deviations.append(f"Left out of every condition, since unreadable: {', '.join(unreadable)}.")
    failures = [failure for failure in run.failures if failure["kind"] != "image"]
    if failures:
        deviations.append(f"Without a score, since the model failed: {counted(len(failures), 'cell')}.")
    if record.copies is not None:
        deviations.append("Corrupted images were read from copies that somebody made, not made by the run.")
    if "clean" not in record.conditions:
        deviations.append("The clean images were not tested.")
    if record.model.enhance:
        deviations.append(f"Images were enhanced first: {', '.join(record.model.enhance)}.")
    return deviations


def _operating(record: RunRecord) -> dict[str, Any]:
    """The corruptions that were tested, with their ranges, and the known ones that were not."""
    tested: dict[str, list[str]] = {}
    for text in record.conditions:
        condition = Condition.parse(text)
        if condition.corruption is not None:
            quantities = ", ".join(map(str, physical(condition)))
            line = f"{text}: {quantities}" if quantities else text
            tested.setdefault(condition.corruption, []).append(line)
    # A corruption that was only a part of composed conditions was not tested on its own.
    return {"tested": tested, "untested": [name for name in CORRUPTIONS if name not in tested]}


def pixel_manifest(run: Run, *, images: int = SAMPLE) -> dict[str, Any]:
    """A digest of the images that the run read, cell by cell, and hashes of some under every condition."""
    chosen = sample_images(run, images)
    digests: dict[str, dict[str, str]] = {text: {} for text in run.conditions}
    for index in chosen:
        sample = run.dataset[index]
        for text in run.conditions:
            digests[text][sample.id] = _hash(run.corrupted(sample, Condition.parse(text)).image)
    return {
        "read": _read(run),
        "given": {
            "images": len(chosen),
            "of": len(run.readable),
            "chosen": "a sample: the images of the smallest random words keyed by (seed, image id)",
            "made": "again for this statement, as the run made them",
            "hash": "sha256 of the shape, as Python prints it, and the bytes of the pixels",
            "found": digests,
        },
    }


def sample_images(run: Run, images: int) -> list[int]:
    """Images chosen by identity, so that everyone hashes the same ones; in the dataset's order."""

    def word(index: int) -> int:
        return int(Draw.keyed(run.record.seed, run.dataset.ids[index]).words("pixel manifest", 1)[0])

    return sorted(sorted(run.readable, key=word)[:images])


def _hash(image: Image) -> str:
    return hashlib.sha256(repr(image.shape).encode() + image.tobytes()).hexdigest()


def _read(run: Run) -> dict[str, Any] | None:
    """One digest of every cell's image as the run read it; None if no pixels were read."""
    lines, record, dataset = [], run.record, run.dataset
    for path in run.parts:
        table = run.read(path, ("index", "condition", "content"))
        for index, text, content in zip(*(column.to_pylist() for column in table.columns), strict=True):
            if index < record.images and text in record.conditions:
                if content is None:
                    return None
                lines.append((index, text, f"{dataset.ids[index]}\t{text}\t{content}\n"))
    total = hashlib.sha256()
    for *_, line in sorted(lines):
        total.update(line.encode())
    return {
        "cells": len(lines),
        "sha256": total.hexdigest(),
        "of": "lines of image id, condition and content (bytes of the file, or of the pixels where there is "
        "no file, and their 8-byte BLAKE2b), separated by tabs, by image and condition",
    }


# Checking evidence: everything it states is computed again from the run and compared.


class _Intervals(BaseModel):
    replicates: Annotated[int, Field(ge=FEWEST_REPLICATES, le=100_000)]


class _Given(BaseModel):
    images: Annotated[int, Field(ge=0)]


class _Pixels(BaseModel):
    given: _Given


class _Predictions(BaseModel):
    digest: str


class _Baseline(BaseModel):
    predictions: _Predictions


class _Looks(BaseModel):
    planned_images: int | None
    all: list[Look]


class Stated(BaseModel):
    """The parts needed to make a statement again."""

    requirements: list[dict[str, Any]] = []  # a domain has its own
    intervals: _Intervals
    looks: _Looks
    predictions: _Predictions
    baseline: _Baseline | None
    pixels: _Pixels


def read_stated(content: Mapping[str, Any]) -> Stated:
    """What evidence states of its making; the first part that is missing or wrong is named."""
    predicate = content.get("predicate")
    try:
        return Stated.model_validate(predicate.get("stormproof") if isinstance(predicate, dict) else None)
    except ValidationError as error:
        place = ".".join(map(str, ("predicate", "stormproof", *error.errors()[0]["loc"])))
        raise InvalidOption(f"{place} is missing or wrong") from None


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
    try:
        stated = read_stated(content)
    except InvalidOption as error:
        return [str(error)]
    differences = _other_runs(stated, run, against)
    if differences:
        return differences
    try:
        asked = read_requirements([_as_written(row) for row in stated.requirements])
        planned = check_plan(stated.looks.planned_images, "predicate.stormproof.looks")
        differences = other_looks(stated.looks.all, run, look_at(run, asked, against, planned))
        if differences:
            return differences
        verdicts = check_run(
            run, asked, against=against, replicates=stated.intervals.replicates, looks=stated.looks.all,
            planned=planned,
        )  # fmt: skip
    except InvalidOption as error:
        return [f"predicate.stormproof.requirements: {error}"]
    made = statement(
        run, requirements, verdicts, against=against, pixels=stated.pixels.given.images,
        replicates=stated.intervals.replicates, looks=stated.looks.all,
    )  # fmt: skip
    return compare_statements(content, made, requirements)


def compare_statements(
    content: Mapping[str, Any], made: Mapping[str, Any], requirements: Path | None
) -> list[str]:
    """What a statement says differently from the one that was made again, in words."""
    again = json.loads(json.dumps(made))
    given, computed = ({part: each.get(part) for part in _PARTS} for each in (content, again))
    places = [place for place in _differences(given, computed) if _is_compared(place)]
    return [
        *_configuration(content, again, requirements),
        *(f"{'.'.join(place)} does not follow from the run" for place in places),
    ]


def _other_runs(stated: Stated, run: Run, against: Run | None) -> list[str]:
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


def other_looks(stated: Sequence[Look], run: Run, this: Look) -> list[str]:
    """Whether the looks are those that the run folder recorded by then; later ones may have followed."""
    if this not in stated:
        return ["predicate.stormproof.looks are not those at its requirements and images"]
    if stated == with_look(read_looks(run.folder), this)[: len(stated)]:
        return []
    return [f"predicate.stormproof.looks are not those that {run.folder / LOOKS} records"]


def _as_written(row: Mapping[str, Any]) -> dict[str, Any]:
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


def _differences(given: Any, computed: Any, place: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The places where two documents differ."""
    if isinstance(given, dict) and isinstance(computed, dict):
        for name in dict.fromkeys((*computed, *given)):
            if name in given and name in computed:
                yield from _differences(given[name], computed[name], (*place, str(name)))
            else:
                yield (*place, str(name))
    elif isinstance(given, list) and isinstance(computed, list) and len(given) == len(computed):
        for k, (one, two) in enumerate(zip(given, computed, strict=True)):
            yield from _differences(one, two, (*place, str(k)))
    elif not _equal(given, computed):
        yield place


def _equal(given: Any, computed: Any) -> bool:
    if isinstance(computed, float) and type(given) in (int, float):
        return bool(abs(given) < 1e300 and math.isclose(given, computed, rel_tol=_SAME, abs_tol=_SAME))
    return type(given) is type(computed) and bool(given == computed)


def _is_compared(place: tuple[str, ...]) -> bool:
    inner = place[2:] if place[:2] == ("predicate", "stormproof") else place
    return not any(inner[: len(start)] == start for start in _NOT_COMPARED)
