"""Verdicts as machines and people read them: JUnit XML, a Markdown table, and a helper for pytest."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree  # only written here, never parsed

from stormproof.results.requirements import read_requirements
from stormproof.results.verdicts import Outcome, Verdict, check_run

_MARKS = {Outcome.PASS: "✅ pass", Outcome.FAIL: "❌ fail", Outcome.INCONCLUSIVE: "❔ inconclusive"}


def junit(name: str, verdicts: Sequence[Verdict]) -> str:
    """JUnit XML. It knows no third outcome, so an inconclusive requirement is a skipped test that says so."""
    counts = {outcome: sum(v.outcome is outcome for v in verdicts) for outcome in Outcome}
    root = ElementTree.Element("testsuites")
    suite = ElementTree.SubElement(
        root, "testsuite", name=f"stormproof {name}", tests=str(len(verdicts)),
        failures=str(counts[Outcome.FAIL]), errors="0", skipped=str(counts[Outcome.INCONCLUSIVE]),
    )  # fmt: skip
    for verdict in verdicts:
        title = f"{verdict.requirement.id}: {verdict.requirement.text}"
        case = ElementTree.SubElement(
            suite, "testcase", classname="stormproof.requirements", name=title, time="0"
        )
        if verdict.outcome is Outcome.FAIL:
            ElementTree.SubElement(case, "failure", message=verdict.text)
        elif verdict.outcome is Outcome.INCONCLUSIVE:
            ElementTree.SubElement(case, "skipped", message=verdict.text)
        ElementTree.SubElement(case, "system-out").text = verdict.text
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def markdown(name: str, verdicts: Sequence[Verdict]) -> str:
    """A table for a pull request or a job's summary."""
    lines = [
        f"### Stormproof: {name}",
        "",
        "| id | requirement | verdict | estimate | 95 % interval | margin |",
        "|---|---|---|---|---|---|",
    ]
    for v in verdicts:
        i = v.interval
        span = f"{100 * i.low:.2f} … {100 * i.high:.2f}"
        cells = (v.requirement.id, v.requirement.text.replace("|", "\\|"), _MARKS[v.outcome])
        numbers = (f"{100 * i.estimate:.2f}", span, f"{100 * v.margin:+.2f}")
        lines.append(f"| {' | '.join((*cells, *numbers))} |")
    return "\n".join([*lines, "", "Estimates, intervals and margins in %.", ""])


def assert_requirements(
    run: Path | str, requirements: Path | str, *, against: Path | str | None = None, data: str | None = None
) -> None:
    """For pytest: fails unless every requirement passes, and says which did not.

        def test_robustness():
            assert_requirements("runs/mine", "requirements.yaml")

    An inconclusive requirement fails, too: more images would decide it.
    """
    asked = read_requirements(Path(requirements))
    verdicts = check_run(Path(run), asked, against=None if against is None else Path(against), data=data)
    open_ones = [verdict.text for verdict in verdicts if verdict.outcome is not Outcome.PASS]
    if open_ones:
        raise AssertionError("\n".join(open_ones))
