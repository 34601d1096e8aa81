"""`stormproof odd`: verdicts on every cell of an operational design domain."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from stormproof.cli import app, console
from stormproof.cli.options import AsJson, Data, Plugins, Replicates, Run
from stormproof.cli.outcome import VERDICTS, say_scored_on
from stormproof.core.errors import OutputError
from stormproof.core.table import Entry, Styled, Table

if TYPE_CHECKING:
    from stormproof.results.domain_verdicts import DomainVerdicts


@app.command()
def odd(
    domain: Annotated[Path, typer.Argument(help="The domain: odd.yaml.")],
    run: Run,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The folder to write to. Default: RUN/odd.")
    ] = None,
    map_: Annotated[
        list[Path] | None, typer.Option("--map", help="A folder of 'stormproof map'; repeatable.")
    ] = None,
    data: Data = None,
    replicates: Replicates = 200,
    as_json: AsJson = False,
    plugin: Plugins = None,
) -> None:
    """Judge a run by an operational design domain: pass, fail or inconclusive for every cell and requirement.

    The chance of any wrong pass, over all cells together, is stated and held. Writes a page (odd.html), a
    table (odd.csv), an in-toto statement (evidence.json) and the domain as OpenLABEL tags
    (odd.openlabel.json), and prints the commands that cover what was not tested and likely decide what is
    open.

    Exit code 0 when all pass, 1 when one fails, 3 when the worst is inconclusive, 2 for an error.

    Examples:

        stormproof odd odd.yaml runs/yolox

        stormproof odd odd.yaml runs/yolox --map runs/yolox-map --out evidence
    """
    from stormproof.core.files import make_folder, write_json, write_text
    from stormproof.report.odd_page import odd_page
    from stormproof.results.domain_file import read_domain
    from stormproof.results.domain_records import domain_statement, domain_tags, row_as_dict, verdicts_csv
    from stormproof.results.domain_verdicts import domain_look, judge_domain
    from stormproof.results.looks import read_looks, record_look
    from stormproof.results.map_file import read_map
    from stormproof.results.run import Run as OpenRun
    from stormproof.results.verdicts import Outcome

    asked, opened = read_domain(domain), OpenRun(run, data=data)
    maps = [read_map(folder, opened.record) for folder in map_ or ()]
    looks = read_looks(opened.folder)
    verdicts = judge_domain(asked, opened, looks, replicates=replicates)
    with suppress(OutputError):  # a folder that cannot be written cannot grow either
        record_look(opened.folder, domain_look(asked, opened))
    folder = make_folder(out or run / "odd")
    again = shlex.join(["stormproof", "odd", str(domain), str(run)])
    write_text(folder / "odd.html", odd_page(verdicts, again, maps))
    write_text(folder / "odd.csv", verdicts_csv(verdicts))
    write_json(
        folder / "evidence.json", domain_statement(verdicts, opened, domain, looks, replicates=replicates)
    )
    write_json(folder / "odd.openlabel.json", domain_tags(asked, domain.name))
    say_scored_on(opened)
    if as_json:
        console.print_json([row_as_dict(verdicts, row) for row in verdicts.rows])
    else:
        _print(verdicts, f"{asked.name}: {opened.name} (in %, with 95 % intervals)", folder / "odd.html")
    counts = verdicts.counts
    raise typer.Exit(1 if counts[Outcome.FAIL] else 3 if counts[Outcome.INCONCLUSIVE] else 0)


def _print(verdicts: DomainVerdicts, title: str, page: Path) -> None:
    """A row per verdict, what they say together, the commands to run next, and where the page is."""
    from stormproof.results.domain_records import row_id

    rows: list[list[Entry]] = []
    for row in verdicts.rows:
        worst = row.worst.interval if row.worst else None
        span = None if worst is None else f"{100 * worst.estimate:.0f} ({worst.span(digits=0)})"
        outcome = Styled(str(row.outcome), VERDICTS[row.outcome])
        rows.append([row_id(row), outcome, span, row.images, row.objects, row.reason])
    columns = ("cell", "verdict", "estimate", "images", "objects", "why")
    console.print_table(Table("verdicts", title, columns, rows))
    next_steps = (f"Next: {command}" for command in verdicts.commands)
    for line in (verdicts.sentence, verdicts.how_sure, *next_steps, f"The page: {page}"):
        console.say(line)
