"""Runs to score: made by tiny models on tiny photos, once per session."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from helpers.runs import Make, runs_in
from stormproof.results import verdicts


@pytest.fixture(scope="package", autouse=True)
def _eight_images_decide() -> Iterator[None]:
    """Verdicts are tested on runs of eight images, which are too few for a user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(verdicts, "FEWEST", 2)
        yield


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    return runs_in(tmp_path_factory.mktemp("scored"))
