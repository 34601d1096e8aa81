"""The command line: a file per verb, or for a few verbs about the same thing."""

from __future__ import annotations

import errno
import io
import sys
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.models import CommandInfo, DefaultPlaceholder, TyperInfo

from stormproof import __version__
from stormproof.cli import console
from stormproof.core.errors import StormproofError
from stormproof.core.loading import offered

# The groups of the help page with their verbs, in order. Packages that offer verbs of their own in the entry
# point group `stormproof.commands` name one of these groups as their rich_help_panel.
RUN_AND_SCORE, LOOK, BE_SURE, MAKE_DATA, SHARE = "Run and score", "Look", "Be sure", "Make data", "Share"
MORE = "More"  # verbs of other packages that name no group
VERBS = {
    RUN_AND_SCORE: ("run", "score", "report", "demo", "merge"),
    LOOK: ("inspect", "list", "gallery", "quality", "show", "figures"),
    BE_SURE: ("compare", "agree", "check", "breaking-point", "evidence", "verify"),
    MAKE_DATA: ("corrupt", "trainset"),
    SHARE: ("export", "submit", "leaderboard"),
}
# The files that define them; one with several verbs has the name of the main one.
FILES = (
    "run", "score", "report", "demo", "inspect", "list", "gallery", "quality", "compare", "check", "breaking",
    "verify", "corrupt", "export", "leaderboard",
)  # fmt: skip
PLUGINS = "stormproof.commands"


class _Verbs(TyperGroup):
    """The verbs; interrupting any of them prints one line."""

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
    """Help with each paragraph on one line, which the terminal breaks at its own width.

    >>> flowed("What it does.\\n\\nIt goes\\non.\\n\\n    an --example\\n")
    'What it does.\\n\\nIt goes on.\\n\\nan --example'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.split("\n\n"))


def _print_version(asked: bool) -> None:
    if asked:
        typer.echo(f"stormproof {__version__}")
        raise typer.Exit


@app.callback()
def common(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    # The options of every command. No docstring: it would replace the help of the app.
    del version


def main() -> None:
    """Run the command line; a Stormproof error becomes one line on standard error and exit code 2.

    So does the limit on open files, which any part of a program may hit.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that a log cannot hold becomes ?
    try:
        app()
    except StormproofError as error:
        console.fail(str(error))
        sys.exit(2)
    except OSError as error:
        if error.errno not in (errno.EMFILE, errno.ENFILE):
            raise
        console.fail(f"{error.strerror}: raise the limit, say with 'ulimit -n 1024', or use --engine local.")
        sys.exit(2)


def _load_verbs() -> None:
    """Import the files that define verbs, and the modules in which other packages do; put all into groups."""
    for file in FILES:
        import_module(f"{__name__}.{file}")
    panels = {verb: panel for panel, verbs in VERBS.items() for verb in verbs}
    app.registered_commands.sort(key=lambda verb: [*panels].index(_name(verb)))
    for verb in _verbs():
        verb.rich_help_panel = panels[_name(verb)]
    for point in offered(PLUGINS):
        point.load()
    for verb in _verbs():
        if isinstance(verb.rich_help_panel, DefaultPlaceholder) or verb.rich_help_panel is None:
            verb.rich_help_panel = MORE
    for verbs in (app, *(group.typer_instance for group in app.registered_groups)):
        for command in verbs.registered_commands if verbs else ():
            command.help = flowed((command.callback and command.callback.__doc__) or "")


def _verbs() -> list[CommandInfo | TyperInfo]:
    return [*app.registered_commands, *app.registered_groups]


def _name(verb: CommandInfo | TyperInfo) -> str:
    return str(verb.name or getattr(verb.callback, "__name__", ""))


_load_verbs()
