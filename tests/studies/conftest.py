"""Runs to study."""

from __future__ import annotations

import pytest

from helpers.runs import Make, runs_in


@pytest.fixture(scope="session")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    return runs_in(tmp_path_factory.mktemp("studied"))
