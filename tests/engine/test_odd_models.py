"""Some of the odd models, in batches of one and of eight, and interrupted; `make odd-models` runs all."""

from __future__ import annotations

from pathlib import Path

import pytest

from helpers.odd_models import ODD
from programs.odd import attack

# One for each fault that the whole set has found, and one that is refused.
CHOSEN = (
    "one image, reused arrays", "halves what it may, then fails on a list", "reads truncated files",
    "replaces json.dumps", "changes folder when opened", "is cancelled", "raises without words",
    "four rows of boxes",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", CHOSEN)
def test_the_rows_of_an_odd_model_do_not_depend_on_how_it_is_run(name: str, tmp_path: Path) -> None:
    ((_, problems),) = attack([name], tmp_path, ["batch 1", "batch 8", "continued"])
    assert problems == []


def test_every_odd_model_says_what_its_rows_must_be() -> None:
    assert len(ODD) >= 50
    assert {like for like, _ in ODD.values()} <= {*ODD, "own", "refused"}
