"""`stormproof demo`: the conditions it takes, what it prints, and that it continues."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from stormproof.cli import app, demo
from stormproof.core.condition import Condition
from stormproof.corruptions.suites import find_suite
from stormproof.engine.config import RunConfig
from stormproof.report.demo import NETWORKS, SUITES


def test_the_short_demo_takes_every_corruption_once() -> None:
    for suite in ("imagenet-c", "camera"):
        taken = demo.conditions_of(suite, full=False)
        assert [c.corruption for c in taken] == list(find_suite(suite).corruptions)
    assert {c.corruption for c in demo.conditions_of("contextual", full=False)} == {"haze", "defocus"}


def test_the_full_demo_takes_everything() -> None:
    for suite in SUITES:
        assert demo.conditions_of(suite, full=True) == find_suite(suite).conditions


def test_all_networks_run_under_the_same_conditions(tmp_path: Path) -> None:
    configs = demo.plan_demo(tmp_path, full=False, scenes=None, workers=0)
    assert [c.model for c in configs.values()] == [f"builtin:{name}" for name in NETWORKS]
    assert len({(c.data, c.limit, c.conditions) for c in configs.values()}) == 1


@pytest.mark.slow
def test_the_demo_prints_scores_and_continues_without_new_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = demo.plan_demo

    def here(out: Path, *, full: bool, scenes: int | None, workers: int) -> dict[str, RunConfig]:
        configs = planned(out, full=full, scenes=scenes, workers=workers)
        return {name: c.model_copy(update={"engine": "local"}) for name, c in configs.items()}

    picked = {
        "imagenet-c": "fog@5",
        "camera": str(find_suite("camera").conditions[0]),
        "contextual": str(find_suite("contextual").conditions[0]),
    }
    monkeypatch.setattr(demo, "plan_demo", here)
    monkeypatch.setattr(demo, "conditions_of", lambda name, *, full: (Condition.parse(picked[name]),))
    order = ["demo", "--out", str(tmp_path), "--scenes", "2"]
    first = CliRunner().invoke(app, order)
    assert first.exit_code == 0, first.output
    for name in NETWORKS:
        assert name in first.stdout
        assert len([*(tmp_path / name / "scores").glob("*.json")]) == 1
    assert "--data coco:" in first.stdout
    parts = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("part-*.parquet")}
    again = CliRunner().invoke(app, order)
    assert again.exit_code == 0, again.output
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("part-*.parquet")} == parts
    assert first.stdout.split("Done in")[0] == again.stdout.split("Done in")[0]
