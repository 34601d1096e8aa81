"""Looks at a growing run: what each may claim, and that every one is recorded."""

from __future__ import annotations

import json
import math
import os
import shutil
import stat
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.errors import StoreError
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.results.evidence import check_evidence
from stormproof.results.interval import WRONG
from stormproof.results.looks import LOOKS, Look, Spent, digest_of, levels, read_looks, record_look, spent_at
from stormproof.results.requirements import parse
from stormproof.results.run import Run
from stormproof.results.verdicts import Outcome, check_run

A, B = "a" * 32, "b" * 32
TEN = [k / 10 for k in range(1, 11)]


def test_ten_looks_together_are_wrong_in_2_5_percent() -> None:
    """Estimates at growing shares of the images are a Brownian motion; unadjusted looks are wrong in 10 %."""
    paths = np.random.default_rng(0).normal(0, math.sqrt(0.1), (200_000, 10)).cumsum(axis=1)
    chances = 1 - _normal(paths / np.sqrt(TEN))
    assert (chances < WRONG).any(axis=1).mean() == pytest.approx(0.097, abs=0.003)
    assert (chances < levels(TEN)).any(axis=1).mean() == pytest.approx(WRONG, abs=0.001)


def _normal(x: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return np.asarray(ndtr(x))


@pytest.mark.parametrize("shares", [TEN, [0.3, 0.31, 1.0], [0.01, 0.5, 0.5000001, 1.0], [0.9, 1.0]])
def test_looks_spend_no_more_than_the_error_rate(shares: list[float]) -> None:
    steps = np.diff([0.0, *shares])
    paths = np.random.default_rng(1).normal(0, np.sqrt(steps), (200_000, len(shares))).cumsum(axis=1)
    wrong = (1 - _normal(paths / np.sqrt(shares)) < levels(shares)).any(axis=1).mean()
    assert wrong < WRONG + 0.001


def test_a_single_look_at_everything_costs_nothing() -> None:
    assert levels([1.0]) == pytest.approx([WRONG])
    assert levels([0.1]) == pytest.approx([WRONG / 100])
    assert Spent(500, 500).words == ""
    assert levels([1e-6]) == [1e-9]  # no interval is infinite


def test_a_look_after_others_says_so() -> None:
    looks = [Look(images=n, requirements=A) for n in (50, 100)] + [Look(images=70, requirements=B)]
    third = spent_at(Look(images=150, requirements=A), looks, of=500)
    assert (third.number, third.before) == (3, (50, 100))
    assert third.level < WRONG
    assert third.words.startswith(
        "Third look at these requirements: 150 of 500 images, after looks at 50, 100."
    )
    again = spent_at(Look(images=100, requirements=A), looks, of=500)
    assert again.number == 2  # the same images and requirements are the same look
    fresh = spent_at(Look(images=150, requirements=B), looks, of=500)
    assert fresh.number == 2
    assert spent_at(Look(images=500, requirements="c" * 32), looks, of=500).level == WRONG


def test_the_21st_look_is_not_the_21th() -> None:
    said = Spent(21, 500, tuple(range(1, 21))).words
    assert said.startswith("21st look at these requirements: 21 of 500 images")


def test_a_plan_counts_instead_of_the_dataset() -> None:
    look = Look(images=100, requirements=A)
    assert spent_at(look, [], of=5000).level == pytest.approx(WRONG * (100 / 5000) ** 2)
    assert spent_at(look, [], of=5000, planned=200).level == pytest.approx(WRONG / 4)
    assert spent_at(look, [], of=5000, planned=100).level == WRONG
    assert spent_at(look, [], of=5000, planned=60).level == WRONG  # more images than planned
    assert spent_at(look, [], of=100, planned=300).level == WRONG  # more planned than there are
    said = spent_at(look, [], of=5000, planned=200).words
    assert said.startswith("First look at these requirements: 100 of 5000 images, 200 planned. It decides at")
    assert spent_at(look, [], of=5000, planned=100).words == (
        "First look at these requirements: 100 of 5000 images, 100 planned."
    )


def test_looks_beyond_a_plan_decide_nothing_new() -> None:
    looks = [Look(images=100, requirements=A)]
    late = spent_at(Look(images=150, requirements=A), looks, of=5000, planned=100)
    assert late.level == 1e-9
    assert "All planned images were judged before, so the verdict on those stands" in late.words


@pytest.mark.parametrize("counts", [(50, 100, 150, 200), (50, 100, 900), (150, 200, 400), (190, 210, 230)])
def test_looks_by_a_plan_are_wrong_in_2_5_percent_even_if_they_exceed_it(counts: tuple[int, ...]) -> None:
    steps = np.diff([0, *counts])
    paths = np.random.default_rng(2).normal(0, np.sqrt(steps), (200_000, len(counts))).cumsum(axis=1)
    looks = [Look(images=n, requirements=A) for n in counts]
    each = [spent_at(look, looks, of=2000, planned=200).level for look in looks]
    wrong = (1 - _normal(paths / np.sqrt(counts)) < each).any(axis=1).mean()
    assert wrong == pytest.approx(WRONG, abs=0.001)


def test_a_digest_covers_a_requirement_but_not_its_id() -> None:
    rows = [
        {"id": "R1", "metric": "AP", "condition": "fog@3", "at_least": 0.5},
        {"id": "R2", "metric": "mPC", "at_most_drop": 0.1},
    ]
    one, two = (parse(row, "r") for row in rows)
    renamed = parse({**rows[0], "id": "other"}, "r")
    assert digest_of([one, two], "k") == digest_of([two, renamed], "k")
    assert digest_of([one], "k") == digest_of([one], None)  # no requirement is about the baseline
    assert digest_of([one, two], "k") != digest_of([one, two], "another")
    assert digest_of([one], None) != digest_of([parse({**rows[0], "at_least": 0.4}, "r")], None)
    assert len({digest_of([one], None, planned) for planned in (None, 100, 200)}) == 3


def test_looks_are_added_and_sealed(tmp_path: Path) -> None:
    for images in (50, 100, 50):
        record_look(tmp_path, Look(images=images, requirements=A))
    record_look(tmp_path, Look(images=50, requirements=B))
    assert [(look.images, look.requirements) for look in read_looks(tmp_path)] == [(50, A), (100, A), (50, B)]
    path = tmp_path / LOOKS
    content = json.loads(path.read_text())
    content["looks"].pop(0)  # as if nobody had looked at 50
    path.write_text(json.dumps(content))
    with pytest.raises(StoreError, match=r"looks\.json is damaged"):
        read_looks(tmp_path)


def test_a_kill_while_a_look_is_written_leaves_the_looks_before(tmp_path: Path) -> None:
    record_look(tmp_path, Look(images=50, requirements=A))
    (tmp_path / f".{LOOKS}.0123456789ab.tmp").write_text('{"looks": [')  # what a kill leaves behind
    assert len(read_looks(tmp_path)) == 1
    record_look(tmp_path, Look(images=100, requirements=A))
    assert len(read_looks(tmp_path)) == 2
    assert not list(tmp_path.glob(".*.tmp"))


REQUIREMENT = {"id": "R1", "metric": "E", "condition": "clean", "at_most": 0.99}


@pytest.fixture
def grow(tmp_path: Path):
    data = write_scene(tmp_path / "scene", images=8)

    def grown(limit: int | None) -> Path:
        settings = {"model": f"{MODELS}:contrast_boxes", "data": data, "out": str(tmp_path / "run"),
                    "conditions": ["fog@3"], "engine": "local"}  # fmt: skip
        run_it(make_config(settings | ({"limit": limit} if limit else {})))
        return tmp_path / "run"

    return grown


def test_every_look_at_a_growing_run_is_recorded_and_stated(grow, tmp_path: Path) -> None:
    asked, alone = [parse(REQUIREMENT, "r")], []
    for limit in (2, 4, 4):
        (verdict,) = check_run(Run(grow(limit)), asked)
        alone.append(verdict.look)
    assert [look.number for look in alone] == [1, 2, 2]
    assert alone[1] == alone[2]
    require, out = tmp_path / "r.yaml", tmp_path / "e.json"
    require.write_text(json.dumps({"requirements": [REQUIREMENT]}))
    shown = CliRunner().invoke(app, ["check", str(grow(None)), "--require", str(require)])
    said = " ".join(shown.stdout.split())
    assert "Third look at these requirements: 8 of 8 images, after looks at 2, 4." in said
    told = CliRunner().invoke(
        app,
        ["evidence", str(tmp_path / "run"), "--require", str(require), "--out", str(out), "--pixels", "1"],
    )
    assert told.exit_code == 0, told.output
    stated = json.loads(out.read_text())
    looks = stated["predicate"]["stormproof"]["looks"]
    assert [look["images"] for look in looks["all"]] == [2, 4, 8]
    assert looks["this"]["number"] == 3
    assert looks["this"]["level"] < WRONG
    assert check_evidence(stated, Run(tmp_path / "run")) == []
    # Looks at other requirements that follow do not make it wrong; looks that are hidden do.
    check_run(Run(tmp_path / "run"), [parse({**REQUIREMENT, "at_most": 0.5}, "r")])
    assert check_evidence(stated, Run(tmp_path / "run")) == []
    looks["all"] = looks["all"][2:]
    assert "looks are not those" in check_evidence(stated, Run(tmp_path / "run"))[0]
    (tmp_path / "run" / LOOKS).unlink()
    looks["all"] = [{"images": 8, "requirements": looks["all"][0]["requirements"]}]
    found = check_evidence(stated, Run(tmp_path / "run"))  # the level would be that of a first look
    assert any("looks.this.level does not follow" in line for line in found)


def test_a_plan_is_stated_in_evidence_and_changing_it_spends_anew(
    grow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stormproof.results.requirements.FEWEST", 2)
    run, require, out = grow(4), tmp_path / "r.yaml", tmp_path / "e.json"
    for plan in (6, 4):
        require.write_text(json.dumps({"requirements": [REQUIREMENT], "planned_images": plan}))
        told = CliRunner().invoke(
            app, ["evidence", str(run), "--require", str(require), "--out", str(out), "--pixels", "1"]
        )
        assert told.exit_code == 0, told.output
    stated = json.loads(out.read_text())
    looks = stated["predicate"]["stormproof"]["looks"]
    assert looks["planned_images"] == 4
    assert looks["this"] == {"number": 1, "images": 4, "of": 8, "level": WRONG, "planned": 4}
    assert [look["images"] for look in looks["all"]] == [4, 4]  # both plans show
    assert len({look["requirements"] for look in looks["all"]}) == 2
    words = stated["predicate"]["stormproof"]["wrong_verdicts"]["words"]
    assert words.startswith("First look at these requirements: 4 of 8 images, 4 planned.")
    assert check_evidence(stated, Run(run)) == []
    looks["planned_images"] = 5
    assert "looks are not those" in check_evidence(stated, Run(run))[0]


def test_a_pass_at_an_early_look_needs_more(grow) -> None:
    early, late = (check_run(Run(grow(limit)), [parse(REQUIREMENT, "r")])[0] for limit in (6, None))
    assert early.interval.high - early.interval.estimate > 0
    assert early.level == pytest.approx(WRONG * (6 / 8) ** 2)
    assert late.look.before == (6,)
    assert WRONG * (1 - (6 / 8) ** 2) < late.level < WRONG


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root writes to any folder")
def test_judges_a_run_in_a_folder_that_cannot_be_written(grow) -> None:
    run = grow(None)
    Run(run).score(interval=True)
    run.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert check_run(Run(run), [parse(REQUIREMENT, "r")])[0].outcome is not Outcome.FAIL
    finally:
        run.chmod(stat.S_IRWXU)


def test_a_copy_of_a_run_keeps_its_looks(grow, tmp_path: Path) -> None:
    asked = [parse(REQUIREMENT, "r")]
    check_run(Run(grow(4)), asked)
    shutil.copytree(grow(None), tmp_path / "copy")
    assert check_run(Run(tmp_path / "copy"), asked)[0].look.before == (4,)
