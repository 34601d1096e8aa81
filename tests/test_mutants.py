"""The list of faults fits the source: the place of each occurs once, and the tests that must fail exist."""

from __future__ import annotations

import ast

import pytest

from programs.mutants import ROOT, Mutant, read_mutants


@pytest.mark.parametrize("mutant", read_mutants(), ids=lambda mutant: mutant.what)
def test_a_fault_can_be_applied(mutant: Mutant) -> None:
    changed = mutant.applied((ROOT / "src" / "stormproof" / mutant.file).read_text(encoding="utf-8"))
    assert changed is not None, f"{mutant.file} has changed; write this fault of mutants.toml anew"
    ast.parse(changed)
    for test in mutant.tests:
        path, _, name = test.partition("::")
        source = (ROOT / path).read_text(encoding="utf-8")
        assert f"def {name.partition('[')[0]}" in source if name else source
