"""Says that a loop is compiled, which takes seconds on its first use on a machine.

The compiler is imported by the verbs that need it, and takes a second: this module does not import it.
"""

from __future__ import annotations

from collections.abc import Callable

MESSAGE = "Compiling for this machine: the first use of a kernel takes seconds; then it is cached."
_listeners: list[Callable[[str], None]] = []


def on_first_compile(say: Callable[[str], None]) -> None:
    """Call `say` with a message the first time this process compiles a loop that is not cached on disk."""
    _listeners[:] = [say]


def compilation_starts() -> None:
    """Say it, once."""
    while _listeners:
        _listeners.pop()(MESSAGE)
