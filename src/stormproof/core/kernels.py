"""The decorator that compiles loops to machine code.

No `fastmath` and no threads: every float operation is the IEEE one, in the order written, so a kernel
gives the same bytes on every machine. Rows are sliced before an inner loop, so that the index starts at
zero and the compiler vectorizes the loop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

import numba

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


def on_first_compile(say: Callable[[str], None]) -> None:
    """Call `say` with a message the first time this process compiles a loop that is not cached on disk."""
    from numba.core import event

    class _Once(event.Listener):
        said = False

        def on_start(self, _: object) -> None:
            if not self.said:
                self.said = True
                say("Compiling for this machine: the first use of a kernel takes seconds; then it is cached.")

        def on_end(self, _: object) -> None:
            pass

    register: Callable[..., None] = event.register
    register("numba:compile", _Once())
