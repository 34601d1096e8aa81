"""Every paper's plan on the street can be run as it is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stormproof.cli import app

PLANS = sorted((Path(__file__).resolve().parents[2] / "studies" / "papers").glob("*.yaml"))


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: plan.stem)
def test_plans_cover_500_scenes(plan: Path, tmp_path: Path) -> None:
    words = ["run", "--config", str(plan), "--out", str(tmp_path / "runs"), "--dry-run"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert " 500 " in result.output
    assert not (tmp_path / "runs").exists()


def test_there_is_a_plan_for_each_paper() -> None:
    assert {plan.stem for plan in PLANS} == {"michaelis", "kamann", "liu", "theodoridis", "pezzementi"}
