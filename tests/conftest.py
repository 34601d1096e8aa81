"""What every test may need: where the shared real data lies, and quiet, repeatable property tests."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile("repeatable")

SHARED = Path(__file__).resolve().parents[2] / "shared"


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of real photographs, labels and networks beside the repository."""
    if not SHARED.is_dir():
        pytest.skip("needs ../shared, the real photographs and networks beside the repository")
    return SHARED
