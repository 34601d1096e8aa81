"""Every place that prints a number of a run, read back: score, report, show, compare, check, evidence,
submit, estimate and Python must say the same."""

from __future__ import annotations

import csv
import io
import json
import math
import random
import re
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from helpers import typed
from stormproof.metrics.metric import measures
from stormproof.metrics.object_error import ClassMatching, MatchingRule
from stormproof.report.comparison import compare_view
from stormproof.report.elements import View
from stormproof.report.leaderboard.submission import read_submission
from stormproof.report.sources import scores_of
from stormproof.report.view import make_view
from stormproof.results.aggregates import MEAN
from stormproof.results.documents import document
from stormproof.results.requirements import parse
from stormproof.results.run import Run
from stormproof.results.scores import Scores
from stormproof.results.verdicts import check_run

REPLICATES = 20


say = partial(typed.say, code=(0, 1, 3), columns=250)  # whatever a gate says


def agree(folder: Path, scratch: Path, measure: str | None = None) -> Scores:
    """Check that every place says of a complete run what Python says; its scores come back."""
    scores = Run(folder).score(interval=True)
    chosen = measure or scores.headline
    _agree_with_json(folder, scores)
    _agree_with_csv(folder, scores)
    _agree_with_tables(folder, scores, chosen)
    _agree_with_views(folder, scores, chosen)
    _agree_with_verdicts(folder, scores, chosen, scratch)
    _agree_with_submission(folder, scores, chosen, scratch)
    assert scores[chosen].p == scores.total(chosen, "P")
    if scores.over.whole and measures()[chosen].higher:
        assert scores[chosen].mpc == scores.mean(chosen)
    return scores


def agree_with_options(folder: Path, dice: random.Random) -> None:
    """Scores with any options: the command line says of them what Python says."""
    known = Run(folder).score().classes
    classes = dice.choice([None, "all", dice.choice(known)])
    rule = MatchingRule(
        classes=dice.choice([*ClassMatching]), one_to_one=dice.random() < 0.5,
        min_score=dice.choice((0.0, 0.1, 0.4, 0.9)), min_overlap=dice.choice((0.0, 0.1, 0.3)),
    )  # fmt: skip
    words = ["--matching", rule.classes, "--min-score", rule.min_score, "--min-overlap", rule.min_overlap]
    words += ["--one-to-one"] * rule.one_to_one + (["--classes", classes] if classes else [])
    scores = Run(folder).score(classes=classes, rule=rule)
    _agree_with_json(folder, scores, *words)
    _agree_with_csv(folder, scores, *words)


def _agree_with_json(folder: Path, scores: Scores, *options: object) -> None:
    for words in ((),) if options else ((), ("--interval",)):
        printed = json.loads(say("score", folder, "--json", *words, *options))
        assert printed["scores"] == json.loads(document(scores.per_condition))
        assert printed["aggregates"] == json.loads(document(dict(scores.aggregates)))
        assert printed["per_class"] == json.loads(document(scores.per_class))
        for each, held in zip(printed["sets"], scores.sets, strict=True):
            assert each["covered"] == list(held.covered)
        if words:
            spread = printed["intervals"]
            for name in scores.per_condition:
                known = {**spread["cells"][name], **spread["aggregates"][name]}
                values = {key: interval["estimate"] for key, interval in known.items()}
                wanted = scores.values(name)
                assert values == json.loads(document({key: wanted[key] for key in values}))


def _agree_with_csv(folder: Path, scores: Scores, *options: object) -> None:
    rows = csv.DictReader(io.StringIO(say("score", folder, "--csv", *options)))
    found = {(row["measure"], row["condition"], row["class"]): row["value"] for row in rows}
    for name, cells in scores.per_condition.items():
        for text, value in cells.items():
            assert found[name, text, ""] == ("" if math.isnan(value) else repr(value))


def _agree_with_tables(folder: Path, scores: Scores, measure: str) -> None:
    """The tables of `score` and `show`, to the digits that they print."""
    printed = say("score", folder, "--measure", measure, "--all")
    total = scores.aggregates[measure]
    heads, row = (_cells(line) for line in (_line(printed, "┃ measure"), _line(printed, f"│ {measure} ")))
    shown = dict(zip(heads, row, strict=True))
    named = next((name for name in ("mPC", "mCE") if name in total), None)
    if named is not None:
        assert shown[named] == f"{100 * total[named]:.1f}"
    elif MEAN in total:
        assert shown[scores.over.mean_name] == f"{100 * total[MEAN]:.1f}"
        assert scores.over.mean_name == _mean_over(scores)
    if "P" in total and not math.isnan(total["P"]):
        assert shown["P"] == f"{100 * total['P']:.1f}"
    drawn = say("show", folder, "--measure", measure)
    for name, value in scores.by_corruption(measure).items():
        means = [_cells(line) for line in drawn.splitlines() if _cells(line)[:1] == [name]]
        assert means, (name, drawn)
        assert means[0][-2] == f"{100 * value:.1f}", name


def _mean_over(scores: Scores) -> str:
    count = len([c for c in scores.over.covered if not math.isnan(scores.score(scores.headline, c))])
    return f"mean over {count} condition{'' if count == 1 else 's'}"


def _line(printed: str, start: str) -> str:
    return next(line for line in printed.splitlines() if line.startswith(start))


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split("[│┃]", line)[1:-1]]


def _summary(view: View) -> dict[str, Any]:
    return dict(zip(view.summary.columns, view.summary.rows[0], strict=True))


def _agree_with_views(folder: Path, scores: Scores, measure: str) -> None:
    """A report and a comparison, in full precision."""
    for interval in (False, True):
        line = _summary(make_view(scores_of(str(folder), interval=interval), measure=measure))
        total = scores.aggregates[measure]
        wanted = {"P": total.get("P"), "mPC": total.get("mPC"), "rPC": total.get("rPC")}
        if MEAN in total:
            wanted = {"P": total.get("P"), scores.over.mean_name: total[MEAN]}
        for name, value in wanted.items():
            assert line.get(name) == (
                None if value is None or math.isnan(value) else pytest.approx(100 * value, rel=1e-12)
            )
        if interval and (sure := scores.intervals(measure)["P"]).se >= 0:
            assert line["95 % of P"] == f"{100 * sure.low:.1f} – {100 * sure.high:.1f}"
    view = compare_view(*(scores_of(str(folder))[0] for _ in range(2)), measure=measure)
    for table in (t for t in view.tables() if t.id == "changes"):
        found = {row[0]: row[1:4] for row in table.rows}
        for name, value in {"clean": scores.score(measure), **scores.by_corruption(measure)}.items():
            if not math.isnan(value):
                assert found[name] == (100 * value, 100 * value, 0)


def _agree_with_verdicts(folder: Path, scores: Scores, measure: str, scratch: Path) -> None:
    """Gates and evidence: the estimate and its interval."""
    higher = measures()[measure].higher
    bound = {"at_least": 0.001} if higher else {"at_most": 0.999}
    rows = [{"id": f"C{k}", "metric": measure, "condition": text, **bound}
            for k, text in enumerate(scores.conditions)]  # fmt: skip
    total = scores.aggregates[measure]
    wanted: dict[str, Any] = {f"C{k}": scores.score(measure, t) for k, t in enumerate(scores.conditions)}
    mean = scores.mean(measure)
    if isinstance(mean, float):
        rows.append({"id": "M", "metric": "mPC" if higher else "mCE", "of": measure, **bound})
        wanted["M"] = mean
        if higher and total.get("P"):
            rows.append({"id": "R", "metric": "rPC", "of": measure, "at_least": 0.001})
            wanted["R"] = mean / total["P"]
    rows = [row for row in rows if not math.isnan(wanted[str(row["id"])])]
    known = scores.intervals(measure)
    rows = [row for row in rows if row.get("condition") is None or known[str(row["condition"])].se >= 0]
    for verdict in check_run(Run(folder), [parse(row, "r") for row in rows]):
        assert verdict.interval.estimate == pytest.approx(wanted[verdict.requirement.id], rel=1e-12)
        if verdict.requirement.condition is not None:
            alone = known[verdict.requirement.condition]
            if verdict.look is not None and verdict.look.words:  # of part of a dataset: it is wider
                assert verdict.interval.low <= alone.low <= alone.high <= verdict.interval.high
            else:
                assert verdict.interval == alone
    path = scratch / "requirements.yaml"
    path.write_text(yaml.safe_dump({"requirements": rows}))
    checked = json.loads(say("check", folder, "--require", path, "--json"))
    say("evidence", folder, "--require", path, "--out", scratch / "evidence.json", "--pixels", "1")
    stated = json.loads((scratch / "evidence.json").read_text())["predicate"]["stormproof"]["requirements"]
    for found in (checked, stated):
        values: Mapping[str, float] = {row["id"]: row["estimate"] for row in found}
        assert values == pytest.approx({str(row["id"]): wanted[str(row["id"])] for row in rows}, rel=1e-12)


def _agree_with_submission(folder: Path, scores: Scores, measure: str, scratch: Path) -> None:
    out = scratch / "entry.json"
    say("submit", folder, "--measure", measure, "--out", out, "--overwrite")
    entry = read_submission(out)
    held = {text: value for text, value in scores.per_condition[measure].items() if math.isfinite(value)}
    assert entry.grid == held
    assert held.get("clean") == entry.P
    mean = scores.mean(measure)
    assert entry.mPC == (pytest.approx(mean, rel=1e-12) if mean is not None else None)
    again = scores_of(str(out))[0]
    assert _summary(make_view([again], measure=measure))["P"] == pytest.approx(100 * held["clean"])
    if mean is not None:
        assert again.mean(measure) == pytest.approx(mean, rel=1e-12)
        assert again.mean_name(measure) == scores.mean_name(measure)
