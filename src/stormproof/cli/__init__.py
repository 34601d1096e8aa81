"""The command line: a file per verb, or for a few verbs about the same thing."""

from __future__ import annotations

import errno
import io
import sys
from collections.abc import MutableMapping
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup
from typer.main import get_group

import stormproof.engine  # noqa: F401  chooses Arrow's allocator, so before any verb imports Arrow
from stormproof import __version__
from stormproof.cli import console
from stormproof.core.errors import StormproofError
from stormproof.core.extensions import COMMANDS
from stormproof.core.first_use import on_first_compile
from stormproof.core.registry import entry_points_of

# The groups of the help page with their verbs, in order, and the file that defines each verb. Packages that
# offer verbs of their own in the entry point group `stormproof.commands` name one of these groups as their
# rich_help_panel.
RUN_AND_SCORE, LOOK, BE_SURE, MAKE_DATA, SHARE = "Run and score", "Look", "Be sure", "Make data", "Share"
MORE = "More"  # verbs of other packages that name no group
VERBS = {
    RUN_AND_SCORE: {"run": "run", "score": "score", "report": "report", "demo": "demo", "merge": "run"},
    LOOK: {
        "explore": "explore", "inspect": "inspect", "list": "list", "gallery": "gallery",
        "quality": "quality", "show": "report", "figures": "report", "explain": "explain",
    },
    BE_SURE: {
        "compare": "compare", "agree": "compare", "check": "check", "breaking-point": "breaking",
        "map": "map", "odd": "odd",
        "evidence": "check", "verify": "verify",
    },
    MAKE_DATA: {"corrupt": "corrupt", "trainset": "corrupt"},
    SHARE: {"export": "export", "submit": "leaderboard", "leaderboard": "leaderboard"},
}  # fmt: skip
_PANELS = {verb: panel for panel, verbs in VERBS.items() for verb in verbs}
_FILES = {verb: file for verbs in VERBS.values() for verb, file in verbs.items()}


class _Verbs(TyperGroup):
    """The verbs. Naming one imports its file alone; the help page imports all of them."""

    def get_command(self, context: Any, name: str) -> Any:
        if name not in self.commands:
            self.commands = _load(name)
        return self.commands.get(name)

    def list_commands(self, context: Any) -> list[str]:
        self.commands = _load()
        return [*_FILES, *(name for name in self.commands if name not in _FILES)]

    def invoke(self, context: Any) -> Any:
        try:
            return super().invoke(context)
        except KeyboardInterrupt:  # in any verb
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


def reflow(text: str) -> str:
    """Help with each paragraph on one line, which the terminal breaks at its own width.

    >>> reflow("What it does.\\n\\nIt goes\\non.\\n\\n    an --example\\n")
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
    on_first_compile(console.note)  # compiling would look like a hang


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


def _load(name: str = "") -> MutableMapping[str, Any]:
    """Import the file of a verb, and return every verb that has been imported.

    A verb that is not ours may come from another package, or be misspelt: then all are imported.
    """
    is_ours = name in _FILES
    for file in [_FILES[name]] if is_ours else _FILES.values():
        import_module(f"{__name__}.{file}")
    for point in () if is_ours else entry_points_of(COMMANDS.group):
        point.load()
    known: list[Any] = [*app.registered_commands, *app.registered_groups]
    for verb in known:
        stated = verb.rich_help_panel if isinstance(verb.rich_help_panel, str) else MORE
        verb.rich_help_panel = _PANELS.get(str(verb.name or getattr(verb.callback, "__name__", "")), stated)
    for verbs in (app, *(group.typer_instance for group in app.registered_groups)):
        for command in verbs.registered_commands if verbs else ():
            command.help = reflow((command.callback and command.callback.__doc__) or "")
    return get_group(app).commands
