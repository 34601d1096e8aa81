"""The decorator that compiles loops to machine code.

No `fastmath` and no threads: every float operation is the IEEE one, in the order written, so a kernel
gives the same bytes on every machine. Rows are sliced before an inner loop, so that the index starts at
zero and the compiler vectorizes the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba
from numba.core import event

from stormproof.core.first_use import compilation_starts

F = TypeVar("F", bound=Callable[..., Any])


@overload
def kernel(function: F) -> F: ...
@overload
def kernel(*, inline: bool = False, allocates: bool = True) -> Callable[[F], F]: ...
def kernel(function: Any = None, *, inline: bool = False, allocates: bool = True) -> Any:
    """Compile with Numba on first use and keep the result on disk.

    `inline` compiles a function into each loop that calls it, for functions that take whole tables, which
    are expensive to pass. `allocates=False` promises that the loop neither makes nor keeps an array, which
    turns off reference counting; in the renderer it would cost as much as the shading itself.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    options |= {"inline": "always"} if inline else {"cache": True, "_nrt": allocates}
    compiler: Any = numba.njit(**options)
    return compiler if function is None else compiler(function)


@kernel
def _nothing() -> None:
    pass


def start_kernels() -> None:
    """Start the runtime of compiled loops, which takes half a second and 50 MiB."""
    _nothing()


class _Announcer(event.Listener):
    """Hears of every loop that is compiled."""

    def on_start(self, _: object) -> None:
        compilation_starts()

    def on_end(self, _: object) -> None:
        pass


_register: Callable[..., None] = event.register
_register("numba:compile", _Announcer())
