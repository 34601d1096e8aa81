"""What the verbs that run models have in common: how they stop, and what they report."""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Any

import typer

from stormproof.cli import console
from stormproof.core.errors import InvalidOption, OutputError, counted, first_few
from stormproof.core.private import without_secrets

if TYPE_CHECKING:
    from stormproof.engine.run import Summary
    from stormproof.results.run import Run

_CAUSES = 20  # of failures, in the terminal
VERDICTS = {"pass": "green", "fail": "bold red", "inconclusive": "yellow"}  # and their styles


@contextmanager
def stoppable(out: Path) -> Iterator[None]:
    """While the block runs, Ctrl-C and SIGTERM end the command and print the one that continues `out`."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        console.fail("Stopped; finished chunks are kept.")
        say_continue()
        raise typer.Exit(130) from None
    except OutputError as error:  # the disk was full; other errors would recur when the command is repeated
        console.fail(str(error))
        if out.exists():
            say_continue()
        raise typer.Exit(2) from None


def _interrupt(signum: int, frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def runner(settings: Mapping[str, Any]) -> Callable[[Iterable[object]], None]:
    """A function that runs conditions into the folder of the settings; a failed cell ends the command."""
    from stormproof.engine.config import make_config
    from stormproof.engine.progress import RunProgress
    from stormproof.engine.run import run

    def run_conditions(conditions: Iterable[object]) -> None:
        config = make_config({**settings, "conditions": list(map(str, conditions))})
        with stoppable(Path(config.out)):
            failed = run(config, [RunProgress(console.err)]).failed
        if failed:
            raise InvalidOption(f"{counted(len(failed), 'cell')} failed; the first: {failed[0]}")

    return run_conditions


def require_success(summary: Summary, *, allow_missing: bool) -> None:
    """End the command if cells failed, or if images could not be read and that is not allowed."""
    if summary.failed:
        list_failures(summary)
        if summary.retry_may_help:
            say_continue()
        raise typer.Exit(1)
    say_unreadable(summary, allow_missing=allow_missing)
    if summary.unreadable and not allow_missing:
        raise typer.Exit(1)


def list_failures(summary: Summary) -> None:
    """Failures by cause; the cells themselves are in the failures folder."""
    from stormproof.engine.failures import group_failures

    causes = group_failures(summary.failed)
    for cause in causes[:_CAUSES]:
        console.note(f"failed: {cause}")
    if len(causes) > _CAUSES:
        console.note(f"… and {len(causes) - _CAUSES} more, in the folder 'failures'.")
    fix = (
        ""
        if summary.retry_may_help
        else " Remove the cause; the same command then runs only the failed ones."
    )
    console.fail(
        f"{counted(len(summary.failed), 'cell')} failed; {summary.done.total()} were done and are kept.{fix}"
    )


def say_unreadable(summary: Summary, *, allow_missing: bool) -> None:
    """Count and name the images that could not be read; they do not stop the run."""
    names = list(summary.unreadable.values())
    if names:
        said = f"{left_out(len(names))} of every condition: {first_few(names)}."
        if allow_missing:
            console.note(said)
        else:
            console.fail(f"{said} Repair them and repeat the command, or accept this with --allow-missing.")


def say_findings(findings: Sequence[str], spec: str) -> None:
    """Warn about likely errors in a dataset's annotations, in at most two lines."""
    for finding in findings[:1]:
        console.warn(finding)
    if findings:
        more = f"{len(findings) - 1} more, and the images" if len(findings) > 1 else "The images"
        console.note(f"{more}: stormproof inspect {shlex.quote(spec)} --check")


def left_out(images: int) -> str:
    """The beginning of a sentence about images that have no prediction under any condition."""
    return f"{counted(images, 'image')} could not be read and {'is' if images == 1 else 'are'} left out"


def say_continue() -> None:
    shown = [without_secrets(argument, mark="?…") for argument in sys.argv[1:]]
    console.note(f"Continue with: {shlex.join(['stormproof', *shown])}")


def say_scored_on(run: Run) -> int:
    """The number of images that a run is scored on; warns about images left out, and if there are too few."""
    from stormproof.datasets.groups import frames_warning
    from stormproof.results.documents import few_images

    images = len(run.readable)
    if run.unreadable:
        console.note(f"{left_out(len(run.unreadable))}.")
    doubt = frames_warning(run.dataset) if run.clips is None else None
    for warning in filter(None, (few_images(images, run.clips), doubt)):
        console.note(warning)
    return images
