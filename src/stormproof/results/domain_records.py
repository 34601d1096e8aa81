"""Verdicts on a domain as files: rows for traceability tools, an in-toto statement, OpenLABEL tags."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption
from stormproof.core.text import as_csv
from stormproof.datasets.tags import write_openlabel
from stormproof.results.domain import Domain, describe
from stormproof.results.domain_file import read_domain
from stormproof.results.domain_verdicts import DomainVerdict, DomainVerdicts, domain_look, judge_domain
from stormproof.results.evidence import SAMPLE, compare_statements, make_statement, other_looks, read_stated
from stormproof.results.interval import WRONG
from stormproof.results.looks import Look, with_look
from stormproof.results.run import Run
from stormproof.results.verdicts import Outcome
from stormproof.results.weights import REPLICATES

_VALUES = {"WeatherRain": "weatherRainValue", "DaySunElevation": "daySunElevationValue"}


def row_id(row: DomainVerdict) -> str:
    """The id of a verdict: R1/fog/night/near."""
    return "/".join([row.requirement.id, *(part for _, part in row.cell)])


def row_as_dict(verdicts: DomainVerdicts, row: DomainVerdict) -> dict[str, Any]:
    """A verdict as plain data."""
    worst = row.worst
    numbers = (
        (None,) * 3 if worst is None else (worst.interval.estimate, worst.interval.low, worst.interval.high)
    )
    estimate, low, high = map(_number, numbers)
    return {
        "id": row_id(row), "requirement": row.requirement.text, "threshold": row.requirement.threshold,
        "cell": dict(row.cell), "verdict": str(row.outcome), "reason": row.reason,
        "coverage": str(row.coverage), "conditions": [t.condition for t in row.tested],
        "worst_condition": None if worst is None else worst.condition,
        "images": row.images, "objects": row.objects,
        "estimate": estimate, "low": low, "high": high, "p_pass": row.passes, "p_fail": row.fails,
        "to_do": verdicts.advice(row),
    }  # fmt: skip


def _number(value: float | None) -> float | None:
    return None if value is None or not math.isfinite(value) else value


def verdicts_csv(verdicts: DomainVerdicts) -> str:
    """A line for each verdict, with a column for each dimension."""
    names = [d.name for d in verdicts.domain.dimensions]
    lines = []
    for row in verdicts.rows:
        made = row_as_dict(verdicts, row)
        cell = [made["cell"].get(name, "") for name in names]
        plain = [
            " ".join(value) if isinstance(value, list) else value
            for key, value in made.items()
            if key != "cell"
        ]
        lines.append([verdicts.domain.name, *cell, *plain])
    first = row_as_dict(verdicts, verdicts.rows[0])
    return as_csv(["odd", *names, *(key for key in first if key != "cell")], lines)


def domain_statement(
    verdicts: DomainVerdicts, run: Run, file: Path, looks: Sequence[Look], *,
    pixels: int = SAMPLE, replicates: int = REPLICATES,
) -> dict[str, Any]:  # fmt: skip
    """The in-toto statement about a run, with the domain and the verdict on each of its cells."""
    ids = {o: [row_id(row) for row in verdicts.rows if row.outcome is o] for o in Outcome}
    made = make_statement(
        run, file, ids, {"wrong_verdicts": {"at_most": WRONG, "words": verdicts.how_sure}},
        look=verdicts.look, looks=with_look(looks, domain_look(verdicts.domain, run)), pixels=pixels,
        replicates=replicates,
    )  # fmt: skip
    made["predicate"]["stormproof"]["domain"] = describe(verdicts.domain) | {
        "verdicts": [row_as_dict(verdicts, row) for row in verdicts.rows],
        "outside_of_it": list(verdicts.apart),
    }
    return made


def domain_tags(domain: Domain, file: str) -> dict[str, Any]:
    """The domain as OpenLABEL tags: those of the ontology where it has them, our own names elsewhere."""
    tags: list[dict[str, Any]] = []
    for d in domain.dimensions:
        if d.kind == "tag":
            values = [value for part in d.parts for value in part.values]
            tags.append({"type": d.name, "tag_data": {"vec": [{"type": "values", "val": values}]}})
            continue
        low, high = min(part.low for part in d.parts), max(part.high for part in d.parts)
        known = next((q.openlabel for q in d.quantities if q.openlabel), "")
        name = _VALUES.get(known, d.name)
        tag: dict[str, Any] = {"type": known or d.name}
        if known:
            tag["ontology_uid"] = "0"
        ends = {"min": low, "max": high}
        finite = {kind: value for kind, value in ends.items() if math.isfinite(value)}
        if len(finite) == 2:
            tag["tag_data"] = {"vec": [{"name": name, "type": "range", "val": [low, high]}]}
        else:
            tag["tag_data"] = {
                "num": [{"name": name, "type": kind, "val": value} for kind, value in finite.items()]
            }
        tags.append(tag)
    return write_openlabel(tags, file)


def is_about_a_domain(content: Mapping[str, Any]) -> bool:
    """Whether evidence is of a domain: `stormproof odd` wrote it."""
    predicate = content.get("predicate")
    body = predicate.get("stormproof") if isinstance(predicate, dict) else None
    return isinstance(body, dict) and "domain" in body


def check_domain_evidence(content: Mapping[str, Any], run: Run, file: Path) -> list[str]:
    """The parts of evidence of a domain that do not follow from the run and the file of the domain; empty if
    all do. Everything is computed again, with as many replicates and pixels, at the looks taken by then."""
    try:
        stated = read_stated(content)
    except InvalidOption as error:
        return [str(error)]
    looks, replicates = stated.looks.all, stated.intervals.replicates
    domain = read_domain(file)
    this = domain_look(domain, run)
    if this not in looks:
        return [f"it is about another domain than {file}, or about other images"]
    if differences := other_looks(looks, run, this):
        return differences
    before = [look for look in looks if look != this]
    verdicts = judge_domain(domain, run, before, replicates=replicates)
    made = domain_statement(
        verdicts, run, file, looks, pixels=stated.pixels.given.images, replicates=replicates
    )
    return compare_statements(content, made, file)
