"""How the renderer's inner loops are compiled: one decorator, so that every loop keeps the same promises."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(function: Function) -> Function:
    """Compile a loop once per machine, without fast maths and without threads.

    Plain IEEE additions, products, quotients and square roots in a fixed order are what make a
    picture the same bytes everywhere. No loop allocates or keeps an array, so reference counts, which
    would cost as much as the shading itself, are left out.
    """
    compiler: Any = numba.njit
    return cast(Function, compiler(cache=True, nogil=True, error_model="numpy", _nrt=False)(function))


def inlined(function: Function) -> Function:
    """Compile a step into the loop that calls it: for steps that take whole tables, dear to pass."""
    return cast(Function, numba.njit(nogil=True, error_model="numpy", inline="always")(function))
