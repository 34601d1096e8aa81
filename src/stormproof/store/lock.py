"""One writer per share of a run: a lock that the system drops when its holder dies."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from stormproof.errors import OutputError

LOCK, _OF = ".lock-", "-of-"


def shares(run: Path) -> set[str]:
    """The shares of a run folder that have had a writer, such as 2/8."""
    return {path.name.removeprefix(LOCK).replace(_OF, "/") for path in run.glob(f"{LOCK}*")}


@contextmanager
def sole_writer(run: Path, share: str) -> Iterator[None]:
    """Hold `share` of a run folder; another process that wants the same is told so."""
    try:
        import fcntl
    except ImportError:  # Windows: parts are still whole, only the warning is lost
        yield
        return
    path = run / f"{LOCK}{share.replace('/', _OF)}"
    try:
        opened = path.open("w")
    except OSError as error:
        raise OutputError(f"Cannot write to {run}: {error.strerror}; check that it is writable.") from error
    with opened as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(f"Another process is writing to {run}; wait for it, or stop it.") from None
        except OSError:  # file systems without locks: as on Windows
            pass
        yield
