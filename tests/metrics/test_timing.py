"""The time of the model as a measure: what a timed run keeps, and what follows from it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from fuzz.sealed_targets import _sealed
from helpers.runs import all_bytes
from helpers.scenes import write_scene
from helpers.scored_models import MODELS, contrast_boxes
from stormproof.core.errors import InvalidOption
from stormproof.core.sample import Image, Prediction
from stormproof.engine.config import make_config
from stormproof.engine.plan import make_plan
from stormproof.engine.run import run as run_it
from stormproof.metrics.metric import measures, metrics_of
from stormproof.metrics.timing import Timings
from stormproof.results.domain_file import parse_domain
from stormproof.results.domain_verdicts import judge_domain
from stormproof.results.evidence import check_evidence, statement
from stormproof.results.run import Run
from stormproof.results.verdicts import Outcome, check

IMAGES = 60


def slow_on_dark(images: Sequence[Image]) -> list[Prediction]:
    """Boxes, after a wait of 1 ms, or of 8 ms for images of low contrast."""
    time.sleep(0.008 if images[0].std() < 30 else 0.001)
    return contrast_boxes(images)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_scene(tmp_path_factory.mktemp("timed") / "scene", images=IMAGES)


def run_timed(data: str, out: Path, **more: object) -> Run:
    usual = {"conditions": ["contrast@5"], "engine": "local", "batch": 1, "timed": True}
    run_it(make_config({"model": f"{__file__}:slow_on_dark", "data": data, "out": str(out), **usual, **more}))
    return Run(out)


@pytest.fixture(scope="module")
def run(data: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return run_timed(data, tmp_path_factory.mktemp("timed") / "run")


def stored_times(run: Run, condition: str) -> list[list[float] | None]:
    kept = [pq.read_table(path, columns=["condition", "model_ms"]).to_pylist() for path in run.parts]
    return [row["model_ms"] for rows in kept for row in rows if row["condition"] == condition]


def test_a_timed_run_keeps_how_long_each_call_took(run: Run) -> None:
    clean, slow = stored_times(run, "clean"), stored_times(run, "contrast@5")
    assert [*clean, *slow].count(None) == 1  # the first call of the process
    assert all(each is not None and len(each) == 1 and each[0] >= 8 for each in slow)


def test_the_first_call_of_every_run_in_a_process_is_left_out(data: str, tmp_path: Path) -> None:
    for number in range(2):
        parts = run_timed(data, tmp_path / str(number), limit=2).parts
        kept = [spent for path in parts for spent in pq.read_table(path)["model_ms"].to_pylist()]
        assert kept.count(None) == 1


def test_the_median_is_scored_with_an_interval_and_compared(run: Run) -> None:
    scores = run.score(interval=True)
    assert scores.headline == "AP"  # as without --timed
    for text in ("clean", "contrast@5"):  # how far apart they are depends on how busy the machine is
        median = np.median([each[0] for each in stored_times(run, text) if each is not None])
        assert scores.score("model_ms", text) == pytest.approx(median, rel=1e-12)
    interval = scores.interval("contrast@5", "model_ms")
    assert interval.low <= interval.estimate <= interval.high
    assert (interval.images, scores.interval("clean", "model_ms").images) == (IMAGES - 1, IMAGES - 1)


def test_a_slice_counts_the_images_that_were_timed(run: Run) -> None:
    found = run.slices("contrast", measure="model_ms", replicates=50)
    timed = [scores.interval("clean").images for scores in found.values()]
    assert sum(timed) == IMAGES - 1
    assert [each.interval.images for each in found.differences("P").values()] == timed


def test_a_time_can_be_required(run: Run) -> None:
    slow = {"metric": "model_ms", "condition": "contrast@5"}
    rows = [{"id": "fast", **slow, "at_most": 4}, {"id": "patient", **slow, "at_most": 8000}]
    verdicts = check(run, rows)
    assert [verdict.outcome for verdict in verdicts] == [Outcome.FAIL, Outcome.PASS]
    with pytest.raises(InvalidOption, match="model_ms is better when lower; use at_most"):
        check(run, [{"id": "R", **slow, "at_least": 1}])


def test_evidence_of_times_that_are_all_equal_is_json_and_can_be_checked(data: str, tmp_path: Path) -> None:
    """Without any spread, nothing bounds the time of an image that was not seen."""
    folder = run_timed(data, tmp_path / "run", limit=50).folder
    for path in Run(folder).parts:
        table = pq.read_table(path)
        times = pa.array([[5.0]] * len(table), table.schema.field("model_ms").type)
        place = table.column_names.index("model_ms")
        path.write_bytes(_sealed(table.set_column(place, table.schema.field(place), times)))
    asked = tmp_path / "asked.yaml"
    asked.write_text("requirements: [{id: R, metric: model_ms, condition: clean, at_most: 30}]")
    run = Run(folder)
    verdicts = check(run, asked)
    assert verdicts[0].outcome is Outcome.INCONCLUSIVE
    made = json.loads(json.dumps(statement(run, asked, verdicts, pixels=0), allow_nan=False))
    assert check_evidence(made, run, requirements=asked) == []


def test_rows_run_without_it_are_left_out(data: str, tmp_path: Path) -> None:
    run_timed(data, tmp_path / "run", limit=4, timed=False, batch=8)
    grown = run_timed(data, tmp_path / "run", limit=20, chunk=None)
    assert "model_ms" in grown.score().per_condition
    assert grown.score(interval=True).interval("contrast@5", "model_ms").images <= 16


def test_a_domain_is_judged_by_the_images_that_were_timed(data: str, tmp_path: Path) -> None:
    run_timed(data, tmp_path / "run", limit=50, timed=False)
    run = run_timed(data, tmp_path / "run", limit=IMAGES)
    faults = {"corruption": "contrast", "unit": "severity", "range": [0, 5]}
    asked = {"id": "T", "metric": "model_ms", "at_most": 8000}
    domain = parse_domain({"odd": "Dim", "dimensions": {"faults": faults}, "requirements": [asked]}, "odd")
    (row,) = judge_domain(domain, run, [], replicates=60).rows
    assert row.outcome is Outcome.INCONCLUSIVE
    assert row.reason.startswith("too few: 50 images")


def test_conditions_without_any_time_are_left_out(data: str, tmp_path: Path) -> None:
    run_timed(data, tmp_path / "run", limit=4, timed=False, conditions=["clean", "contrast@1"])
    grown = run_timed(data, tmp_path / "run", limit=4, conditions=["clean", "contrast@1,contrast@5"])
    scores = grown.score()
    assert np.isnan([scores.score("model_ms", text) for text in ("clean", "contrast@1")]).all()
    assert scores.score("model_ms", "contrast@5") >= 8
    with pytest.raises(InvalidOption, match="R: clean was run, but its model_ms is not known"):
        check(grown, [{"id": "R", "metric": "model_ms", "condition": "clean", "at_most": 5}])
    # Of one image, the clean call is the first of the process.
    assert run_timed(data, tmp_path / "one", limit=1).score().score("model_ms", "contrast@5") >= 8


def test_a_run_that_is_not_timed_keeps_no_time(data: str, tmp_path: Path) -> None:
    plain = run_timed(data, tmp_path / "plain", timed=False, limit=4)
    again = run_timed(data, tmp_path / "again", timed=False, limit=4, batch=3)
    assert all_bytes(plain.folder) == all_bytes(again.folder)
    assert plain.further == ()
    with pytest.raises(InvalidOption, match="the run has no model_ms"):
        check(plain, [{"id": "R", "metric": "model_ms", "condition": "clean", "at_most": 5}])


def test_precomputed_predictions_have_no_time(data: str, tmp_path: Path) -> None:
    (tmp_path / "clean.json").write_text("[]")
    given = {"model": f"results:{tmp_path / 'clean.json'}", "data": data, "out": str(tmp_path / "run")}
    plan = make_plan(make_config({**given, "timed": True, "batch": 1}))
    assert plan.doubts == ("clean holds precomputed predictions: --timed has no call to time.",)


def test_a_batch_is_refused() -> None:
    given = {"model": f"{MODELS}:contrast_boxes", "data": "world:test", "out": "runs/x", "timed": True}
    with pytest.raises(InvalidOption, match="batch is 8: add --batch 1"):
        make_config(given)


def test_the_median_is_that_of_images_repeated_by_their_weights() -> None:
    rng = np.random.default_rng(0)
    table = rng.exponential(10, (30, 1))
    table[4] = 0  # not timed
    weights = np.concatenate([np.ones((1, 30), np.int64), rng.integers(0, 4, (20, 30))])
    (declared,) = metrics_of("timings")
    scored = declared.score(Timings(table), weights)
    for row, value in zip(weights, scored.numbers["model_ms"], strict=True):
        whole = np.repeat(table[:, 0], row)
        assert value == pytest.approx(np.median(whole[whole > 0]), rel=1e-12)
    assert scored.units == {"model_ms": 29}
    assert not measures()["model_ms"].higher


def test_nothing_timed_has_no_median() -> None:
    (declared,) = metrics_of("timings")
    scored = declared.score(Timings(np.array([[3.0], [0.0]])), np.array([[1, 1], [0, 1]]))
    assert scored.numbers["model_ms"][0] == 3.0
    assert np.isnan(scored.numbers["model_ms"][1])


def test_a_condition_without_a_time_has_no_median(data: str, tmp_path: Path) -> None:
    """The only clean image is the first call of the process."""
    scores = run_timed(data, tmp_path / "one", limit=1).score(interval=True)
    assert np.isnan(scores.score("model_ms"))
    assert scores.score("model_ms", "contrast@5") >= 8
    assert scores.headline == "AP"


def test_a_timed_run_is_scored_over_the_same_classes(tmp_path: Path) -> None:
    """Times go by no class, also where the dataset has label maps."""
    street = "world:val,count=2,size=128x80"
    timed, plain = (run_timed(street, tmp_path / f"{on}", timed=on).score() for on in (True, False))
    assert timed.classes == plain.classes
    assert "model_ms" in timed
