"""Evidence of a test: an in-toto Statement v1 with a test-result predicate and what a reader must know.

The statement says what was tested, on what, how, with which result and how sure that is. It is not signed;
`cosign attest-blob` and others sign it. It claims conformity with no standard.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from stormproof.core.condition import Condition
from stormproof.core.errors import counted
from stormproof.core.files import sha256
from stormproof.core.provenance import provenance
from stormproof.core.spec import Spec
from stormproof.corruptions import registered
from stormproof.corruptions.units import physical
from stormproof.datasets.dataset import Dataset
from stormproof.results.interval import NEW_IMAGES
from stormproof.results.intervals import few_images
from stormproof.results.pixels import SAMPLE, pixel_manifest
from stormproof.results.store.completeness import readable_images, unreadable_images
from stormproof.results.store.parts import read_failures
from stormproof.results.store.record import RunRecord
from stormproof.results.verdicts import Outcome, Verdict

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
_RESULTS = {Outcome.PASS: "PASSED", Outcome.INCONCLUSIVE: "WARNED", Outcome.FAIL: "FAILED"}


def statement(
    run: Path, record: RunRecord, dataset: Dataset, requirements: Path, verdicts: Sequence[Verdict], *,
    pixels: int = SAMPLE,
) -> dict[str, Any]:  # fmt: skip
    """The statement about a run; JSON-able."""
    ids = {outcome: [v.requirement.id for v in verdicts if v.outcome is outcome] for outcome in Outcome}
    tested = len(readable_images(run, record))
    worst = max((v.outcome for v in verdicts), key=[*_RESULTS].index)
    return {
        "_type": STATEMENT,
        "subject": [_subject(record)],
        "predicateType": PREDICATE,
        "predicate": {
            "result": _RESULTS[worst],
            "configuration": [
                {"name": requirements.name, "digest": {"sha256": sha256(requirements)}},
                {"name": "run.json", "digest": {"sha256": sha256(run / "run.json")}},
            ],
            "passedTests": ids[Outcome.PASS],
            "warnedTests": ids[Outcome.INCONCLUSIVE],
            "failedTests": ids[Outcome.FAIL],
            "stormproof": {
                "created": datetime.now(UTC).isoformat(timespec="seconds"),
                "requirements": [verdict.as_dict() for verdict in verdicts],
                "intervals": {"level": 0.95, "target": NEW_IMAGES, "warning": few_images(tested)},
                "model": record.model.model_dump(mode="json"),
                "dataset": record.dataset.model_dump(mode="json") | {"images_tested": tested},
                "seed": record.seed,
                "recipes": record.recipes,
                "files": record.files,
                "conditions": [_described(text) for text in record.conditions],
                "pixels": pixel_manifest(run, record, dataset, images=pixels),
                "environment": {"run": record.provenance, "check": provenance()},
                "deviations": _deviations(run, record),
                "operating_conditions": _operating(record),
            },
        },
    }


def _subject(record: RunRecord) -> dict[str, Any]:
    """The model by the SHA-256 of its file, where it is one, and by the fingerprint of the run."""
    digest = {"stormproofFingerprint": record.model.fingerprint}
    file = Path(Spec.parse(record.model.spec).main)
    if file.is_file():
        digest = {"sha256": sha256(file), **digest}
    return {"name": record.model.name, "digest": digest}


def _described(text: str) -> dict[str, Any]:
    quantities = physical(Condition.parse(text))
    return {
        "condition": text,
        "physical": [
            {"name": q.name, "value": q.value if math.isfinite(q.value) else None, "unit": q.unit}
            for q in quantities
        ],
    }


def _deviations(run: Path, record: RunRecord) -> list[str]:
    """What was not done as one would expect."""
    found = []
    if record.images < record.dataset.images:
        found.append(f"Only the first {record.images} of {record.dataset.images} images were tested.")
    unreadable = list(unreadable_images(run, record).values())
    if unreadable:
        found.append(f"Left out of every condition, since unreadable: {', '.join(unreadable)}.")
    failures = [failure for failure in read_failures(run) if failure["kind"] != "image"]
    if failures:
        found.append(f"Without a score, since the model failed: {counted(len(failures), 'cell')}.")
    if record.copies is not None:
        found.append("Corrupted images were read from copies that somebody made, not made by the run.")
    if "clean" not in record.conditions:
        found.append("The clean images were not tested.")
    if record.model.enhance:
        found.append(f"Images were enhanced first: {', '.join(record.model.enhance)}.")
    return found


def _operating(record: RunRecord) -> dict[str, Any]:
    """Which corruptions were tested and in which range, and which of those known were not."""
    tested: dict[str, list[str]] = {}
    for text in record.conditions:
        condition = Condition.parse(text)
        if condition.corruption is not None:
            quantities = ", ".join(map(str, physical(condition)))
            line = f"{text}: {quantities}" if quantities else text
            tested.setdefault(condition.corruption, []).append(line)
    return {"tested": tested, "untested": [name for name in registered() if name not in tested]}
