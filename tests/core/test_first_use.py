"""The first compilation is announced, once, by whichever verb compiles."""

from __future__ import annotations

import pytest

from stormproof.core import first_use
from stormproof.core.kernels import kernel


def test_the_first_loop_that_is_compiled_is_announced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(first_use, "_listeners", [])
    said: list[str] = []
    first_use.on_first_compile(said.append)

    @kernel(inline=True)
    def one(x: int) -> int:
        return x + 1

    @kernel(inline=True)
    def two(x: int) -> int:
        return x + 2

    assert (one(1), two(1)) == (2, 3)
    assert said == [first_use.MESSAGE]
