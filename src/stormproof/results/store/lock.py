"""One writer per share of a run: a file lock, which the system releases when its holder dies."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from stormproof.core.errors import OutputError

LOCK, _OF = ".lock-", "-of-"
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP}  # the file system has no locks; parts stay whole


def shares(run: Path) -> set[str]:
    """The shares of a run folder that have had a writer, such as 2/8."""
    return {path.name.removeprefix(LOCK).replace(_OF, "/") for path in run.glob(f"{LOCK}*")}


@contextmanager
def held_lock(path: Path, run: Path, *, wait: bool = True) -> Iterator[None]:
    """Hold a lock, if need be after waiting for it; a file system without locks is tolerated."""
    lock = FileLock(path, blocking=wait, fallback_to_soft=False)
    try:
        lock.acquire()
    except Timeout:
        raise OutputError(f"Another process is writing to {run}; wait for it, or stop it.") from None
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            fix = "check that it is writable"
            raise OutputError(f"Cannot write to {run}: {error.strerror}; {fix}.") from error
    try:
        yield
    finally:
        lock.release()


@contextmanager
def sole_writer(run: Path, share: str) -> Iterator[None]:
    """Lock `share` of a run folder; another process that wants the same share gets an error."""
    path = run / f"{LOCK}{share.replace('/', _OF)}"
    try:
        with held_lock(path, run, wait=False):
            yield
    finally:
        with suppress(OSError):
            path.touch()  # Windows removes it, but `shares` must know of this writer
