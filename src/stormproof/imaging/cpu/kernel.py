"""How a loop becomes machine code here.

No `fastmath`: without it every float operation is the IEEE one in the order written, so a kernel gives
the same bytes on every machine. Rows are sliced before the inner loop, so that the index starts at
zero and the loop becomes vector instructions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])


def kernel(function: F) -> F:
    """Compile with Numba on first use and keep the result on disk."""
    return cast(F, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


@kernel
def _nothing() -> None:
    pass


def start_kernels() -> None:
    """Bring up what every compiled loop runs on: half a second, and 50 MiB that the process then keeps."""
    _nothing()
