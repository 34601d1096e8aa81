"""How a loop becomes machine code: the one decorator that compiles.

No `fastmath` and no threads: every float operation is the IEEE one, in the order written, so a kernel
gives the same bytes on every machine. Rows are sliced before an inner loop, so that the index starts at
zero and the loop becomes vector instructions.
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

    `inline` compiles a step into each loop that calls it, for steps that take whole tables, which are
    expensive to pass. `allocates=False` promises that the loop neither makes nor keeps an array: counting
    references is left out, which in the renderer costs as much as the shading itself.
    """
    options: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
    options |= {"inline": "always"} if inline else {"cache": True, "_nrt": allocates}
    compiler: Any = numba.njit(**options)
    return compiler if function is None else compiler(function)


@kernel
def _nothing() -> None:
    pass


def start_kernels() -> None:
    """Bring up what every compiled loop runs on: half a second, and 50 MiB that the process then keeps."""
    _nothing()


def tell_of_compiling(say: Callable[[str], None]) -> None:
    """Have `say` told, once, when this process compiles a loop that is not kept on disk yet."""
    from numba.core import event

    class _Told(event.Listener):
        told = False

        def on_start(self, _: object) -> None:
            if not self.told:
                self.told = True
                say("Compiling for this machine: first uses take some seconds, and are kept for later.")

        def on_end(self, _: object) -> None:
            pass

    register: Callable[..., None] = event.register
    register("numba:compile", _Told())
