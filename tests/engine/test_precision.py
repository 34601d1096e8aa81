"""Estimates from part of a grid: marked, resumable, extendable, and close to the full grid."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.runs import all_bytes
from helpers.scenes import write_scene, write_street
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.condition import Condition
from stormproof.core.errors import IncompleteGrid, InvalidOption
from stormproof.engine.config import make_config
from stormproof.engine.executors import executor_for
from stormproof.engine.plan import make_plan
from stormproof.engine.run import execute, first_share, run_to_precision
from stormproof.engine.run import run as run_it
from stormproof.engine.work import Quota
from stormproof.results.estimate import estimate_run
from stormproof.results.run import Run
from stormproof.results.store.parts import held_cells, part_paths
from stormproof.results.store.record import read_record


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return write_scene(tmp_path_factory.mktemp("partial") / "scene", images=60)


def settings(data: str, out: Path, **more):
    usual = {"conditions": ["fog,gaussian_noise,contrast"], "engine": "local"}
    return make_config({"model": f"{MODELS}:contrast_boxes", "data": data, "out": str(out), **usual, **more})


def do(plan):
    return execute(plan, executor_for(plan.config, len(plan.chunks)))


def cells_of(run: Path) -> Counter[str]:
    key = read_record(run).key
    return Counter(text for path in part_paths(run) for _, text in held_cells(path, key))


def test_a_quota_spreads_images_evenly_and_only_grows():
    conditions = [Condition.of(name, s) for name in ("fog", "snow", "frost") for s in range(1, 6)]
    small, large = (Quota.of(size, 100, [Condition(), *conditions], seed=1) for size in (10, 25))
    served = [sum(small.wants(i, str(c)) for c in conditions) for i in range(100)]
    assert sum(served) == 150
    assert max(served) - min(served) <= 2
    assert all(large.wants(i, str(c)) for i in range(100) for c in conditions if small.wants(i, str(c)))
    assert all(small.wants(i, "clean") for i in range(100))


@pytest.mark.slow
def test_an_estimate_is_marked_extendable_and_near_the_full_grid(data, tmp_path):
    part = tmp_path / "part"
    _, found = run_to_precision(settings(data, part, precision=5.0), do)
    assert found is not None
    assert 100 * found.mpc.half_width <= 5
    counts = cells_of(part)
    assert counts["clean"] == 60
    assert counts["fog@3"] == read_record(part).quota == found.shares < 60
    kept = json.loads((part / "estimate.json").read_text())
    assert kept["estimate"] is True
    assert kept["mpc"]["estimate"] == found.mpc.estimate
    with pytest.raises(IncompleteGrid, match="it is an estimate"):
        Run(part).score()
    refused = CliRunner().invoke(app, ["score", str(part), "--csv"])
    assert "give --json instead" in str(refused.exception)

    again, _ = run_to_precision(settings(data, part, precision=5.0), do)
    assert not again.done  # nothing was left to do

    run_it(settings(data, part))
    assert read_record(part).quota is None
    whole = tmp_path / "whole"
    run_it(settings(data, whole))
    assert all_bytes(part) == all_bytes(whole)
    true = Run(whole).score().aggregates["AP"]["mean"]
    assert found.mpc.low <= true <= found.mpc.high
    assert estimate_run(Run(whole)).mpc.estimate == pytest.approx(true, abs=1e-12)
    assert estimate_run(Run(whole)).mpc.half_width == 0


def test_a_run_grows_until_the_precision_is_reached(data, tmp_path):
    loose = run_to_precision(settings(data, tmp_path / "run", precision=8.0), do)[1]
    tight = run_to_precision(settings(data, tmp_path / "run", precision=0.9), do)[1]
    assert loose is not None
    if tight is not None:  # else the grid became full, which is as precise as can be
        assert loose.shares < tight.shares
        assert 100 * tight.mpc.half_width <= 0.9


def test_a_profile_is_of_all_rounds(data, tmp_path):
    file = tmp_path / "times.csv"
    run_to_precision(settings(data, tmp_path / "run", precision=0.9, profile=str(file)), do)
    counts = {row.split(",")[0]: int(row.split(",")[1]) for row in file.read_text().splitlines()[1:]}
    assert counts == cells_of(tmp_path / "run")


def test_label_maps_are_estimated_too(tmp_path):
    street = write_street(tmp_path / "street", images=40)
    config = make_config(
        {"model": f"{MODELS}:thresholds", "data": street, "out": str(tmp_path / "run"), "precision": 4.0,
         "conditions": ["fog,gaussian_noise"], "engine": "local"}
    )  # fmt: skip
    _, found = run_to_precision(config, do)
    assert found is not None
    run_it(config.model_copy(update={"precision": 0.0}))
    true = Run(tmp_path / "run").score().aggregates["mIoU"]["mean"]
    assert found.mpc.estimate == pytest.approx(true, abs=0.04)


def test_an_image_that_cannot_be_read_is_left_out_of_the_estimate(tmp_path):
    data = write_scene(tmp_path / "scene", images=40)
    (tmp_path / "scene" / "images" / "007.png").write_bytes(b"no image")
    config = settings(data, tmp_path / "run", precision=6.0)
    summary, found = run_to_precision(config, do)
    assert [*summary.unreadable] == [7]
    assert found is not None
    assert found.images == 39
    run_it(config.model_copy(update={"precision": 0.0}))
    true = Run(tmp_path / "run").score().aggregates["AP"]["mean"]
    assert estimate_run(Run(tmp_path / "run")).mpc.estimate == pytest.approx(true, abs=1e-12)
    assert found.mpc.low <= true <= found.mpc.high


def test_refuses_shards_and_measures_that_cannot_be_estimated(data, tmp_path):
    with pytest.raises(InvalidOption, match="shard"):
        run_to_precision(settings(data, tmp_path / "a", precision=1.0, shard="1/2"), do)


def test_a_plan_with_a_quota_counts_only_its_cells(data, tmp_path):
    from stormproof.engine.plan import survey

    left = survey(make_plan(settings(data, tmp_path / "run"), quota=9))
    assert left.cells == 60 + 15 * 9
    assert np.unique([left.total[t] for t in left.total if t != "clean"]).tolist() == [9]


def test_no_condition_begins_with_fewer_images_than_its_interval_can_use(data, tmp_path):
    """On 8 images an interval covers 82 %: the first share is 15, or all there are, or 2 % of many."""
    assert [first_share(images) for images in (8, 15, 60, 700, 2_000)] == [8, 15, 15, 15, 40]
    _, found = run_to_precision(settings(data, tmp_path / "loose", precision=49.0), do)
    assert found is not None
    assert found.shares == 15
    assert cells_of(tmp_path / "loose")["fog@3"] == 15
