"""Hundreds of mutated inputs, the same ones every time; `make fuzz N=…` runs as many as are wanted."""

from __future__ import annotations

import warnings

import pytest

from fuzz.attack import attack
from fuzz.targets import TARGETS

CASES = 20  # of each target


@pytest.mark.parametrize("target", TARGETS)
def test_only_our_own_errors_come_out(target: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Pillow warns of odd files that it reads all the same
        found = [finding for number in range(CASES) if (finding := attack(target, number))]
    assert not found, "\n".join(f"{f.target} {f.number}: {f.what}\n{f.trace}" for f in found[:3])
