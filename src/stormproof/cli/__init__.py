"""The command line: one file per verb."""

from __future__ import annotations

import io
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stormproof import __version__
from stormproof.cli import console
from stormproof.errors import StormproofError


class _Verbs(TyperGroup):
    """The verbs; whichever is interrupted, one line says so."""

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:
            console.fail("Stopped.")
            raise typer.Exit(130) from None


app = typer.Typer(
    name="stormproof",
    cls=_Verbs,
    help="Is your perception model stormproof? Test detectors and segmenters under image corruption.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def flowed(text: str) -> str:
    """Help as it is shown: a paragraph in one line, which the terminal breaks where its own width ends.

    >>> flowed("What it does.\\n\\nIt goes\\non.\\n\\n    an --example\\n")
    'What it does.\\n\\nIt goes on.\\n\\nan --example'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _say_version(asked: bool) -> None:
    if asked:
        typer.echo(f"stormproof {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # What every command takes. No docstring: it would replace the help of the app.
    del version


def main() -> None:
    """Run the command line; a Stormproof error becomes one line on standard error and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # where a log cannot hold a character, a ? must do
    try:
        app()
    except StormproofError as error:
        console.fail(str(error))
        sys.exit(2)


# Importing a verb's file registers it; the order is the order of the help page.
from stormproof.cli import demo as demo  # noqa: E402
from stormproof.cli import corrupt as corrupt  # noqa: E402
from stormproof.cli import stylize as stylize  # noqa: E402
from stormproof.cli import trainset as trainset  # noqa: E402
from stormproof.cli import depth as depth  # noqa: E402
from stormproof.cli import gallery as gallery  # noqa: E402
from stormproof.cli import inspect as inspect  # noqa: E402
from stormproof.cli import list as list  # noqa: E402, A004
from stormproof.cli import world as world  # noqa: E402
from stormproof.cli import run as run  # noqa: E402
from stormproof.cli import score as score  # noqa: E402
from stormproof.cli import curves as curves  # noqa: E402
from stormproof.cli import people as people  # noqa: E402
from stormproof.cli import detectors as detectors  # noqa: E402
from stormproof.cli import check as check  # noqa: E402
from stormproof.cli import evidence as evidence  # noqa: E402
from stormproof.cli import breaking as breaking  # noqa: E402
from stormproof.cli import merge as merge  # noqa: E402
from stormproof.cli import export as export  # noqa: E402
from stormproof.cli import verify as verify  # noqa: E402
from stormproof.cli import quality as quality  # noqa: E402
from stormproof.cli import show as show  # noqa: E402
from stormproof.cli import report as report  # noqa: E402
from stormproof.cli import figures as figures  # noqa: E402
from stormproof.cli import compare as compare  # noqa: E402
from stormproof.cli import submit as submit  # noqa: E402
from stormproof.cli import leaderboard as leaderboard  # noqa: E402

for verbs in (app, *(group.typer_instance for group in app.registered_groups)):
    for verb in verbs.registered_commands if verbs else ():
        verb.help = flowed((verb.callback and verb.callback.__doc__) or "")
