"""The command line: one file per verb."""

from __future__ import annotations

import io
import sys
from importlib import import_module
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from stormproof import __version__
from stormproof.cli import console
from stormproof.core.errors import StormproofError


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
for file in (
    "demo", "corrupt", "stylize", "trainset", "gallery", "inspect", "list", "run",
    "score", "check", "evidence", "breaking", "merge", "export",
    "verify", "quality", "show", "report", "figures", "compare", "submit", "leaderboard",
):  # fmt: skip
    import_module(f"{__name__}.{file}")

for point in entry_points(group="stormproof.commands"):
    point.load()

for verbs in (app, *(group.typer_instance for group in app.registered_groups)):
    for verb in verbs.registered_commands if verbs else ():
        verb.help = flowed((verb.callback and verb.callback.__doc__) or "")
