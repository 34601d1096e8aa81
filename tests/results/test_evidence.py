"""Evidence says what was run, not what lies there today, and `verify` makes every statement of it again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.errors import StoreError, StormproofError
from stormproof.core.files import sha256
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.results.evidence import (
    _deviations,
    _hash,
    check_evidence,
    compare_file,
    sample_images,
    statement,
)
from stormproof.results.looks import Look
from stormproof.results.run import Run
from stormproof.results.store.record import read_record
from stormproof.results.store.seal import write_sealed
from stormproof.results.verdicts import Outcome

RUNNER = CliRunner()
Told = dict[str, Any]


def say(*words: object) -> tuple[int, str]:
    result = RUNNER.invoke(app, [str(word) for word in words])
    if isinstance(result.exception, StormproofError):  # the program prints it, and ends with 2
        return 2, str(result.exception)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.output
    return result.exit_code, " ".join(result.output.split())


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory, make: Callable[..., Path]) -> Path:
    """A run of a script, its baseline, requirements, and evidence with and without the baseline."""
    folder = tmp_path_factory.mktemp("evidence")
    shutil.copy(MODELS, folder / "model.py")
    data = read_record(make("contrast_boxes", name="seed of data")).dataset.spec
    for name in ("run", "base"):
        settings = {"data": data, "conditions": ["fog@3"], "engine": "local"}
        run_it(
            make_config({"model": f"{folder}/model.py:contrast_boxes", "out": str(folder / name), **settings})
        )
    (folder / "base" / "marker").write_text("another folder, equal predictions")
    (folder / "r.yaml").write_text(
        "requirements: [{id: R1, metric: AP50, condition: clean, at_least: 0.01}]\n"
    )
    (folder / "d.yaml").write_text(
        "requirements: [{id: R1, metric: AP, condition: clean, at_most_drop: 0.01}]\n"
    )
    common = ("--replicates", 50, "--pixels", 1)
    told = say(
        "evidence", folder / "run", "--require", folder / "r.yaml", "--out", folder / "e.json", *common
    )
    assert told[0] == 0, told
    beside = ("--against", folder / "base", *common)
    told = say(
        "evidence", folder / "run", "--require", folder / "d.yaml", "--out", folder / "d.json", *beside
    )
    assert told[0] == 0, told
    return folder


def evidence(place: Path, name: str = "e.json") -> Told:
    told: Told = json.loads((place / name).read_text())
    return told


def test_the_model_is_named_by_what_the_run_recorded(place: Path) -> None:
    recorded = read_record(place / "run").model.sha256
    assert recorded == sha256(place / "model.py")
    assert evidence(place)["subject"][0]["digest"]["sha256"] == recorded
    assert evidence(place)["predicate"]["stormproof"]["environment"]["check"]["model_file"] == "as it was run"


def test_refuses_another_file_in_place_of_the_model(place: Path, tmp_path: Path) -> None:
    before = (place / "model.py").read_bytes()
    (place / "model.py").write_bytes(before + b"# a comment\n")
    try:
        code, text = say(
            "evidence", place / "run", "--require", place / "r.yaml", "--out", tmp_path / "e.json"
        )
        assert code == 2
        assert "is not the file of" in text
        (place / "model.py").unlink()
        assert compare_file(read_record(place / "run")) == "not here"
    finally:
        (place / "model.py").write_bytes(before)


def test_a_path_that_run_json_names_is_not_stated(place: Path, tmp_path: Path) -> None:
    """A run folder from elsewhere may name any file of this machine."""
    secret = tmp_path / "secret"
    secret.write_text("of this machine")
    shutil.copytree(place / "run", tmp_path / "run")
    content = json.loads((tmp_path / "run" / "run.json").read_text())
    del content["digest"]
    content["model"] |= {"spec": f"onnx:{secret}", "sha256": None}
    write_sealed(tmp_path / "run" / "run.json", content)
    out = tmp_path / "e.json"
    assert (
        say("evidence", tmp_path / "run", "--require", place / "r.yaml", "--out", out, "--pixels", 0)[0] == 0
    )
    assert sha256(secret) not in out.read_text()
    content["model"]["sha256"] = "0" * 64
    write_sealed(tmp_path / "run" / "run.json", content)
    with pytest.raises(StoreError, match="its SHA-256 differs") as caught:
        compare_file(read_record(tmp_path / "run"))
    assert sha256(secret) not in str(caught.value)


def test_verify_recomputes_the_statement(place: Path) -> None:
    require = ("--require", place / "r.yaml")
    code, text = say("verify", place / "run", "--evidence", place / "e.json", *require)
    assert code == 0, text
    assert "everything it states follows" in text
    other = say("verify", place / "run", "--evidence", place / "e.json", "--require", place / "d.yaml")
    assert other[0] == 1
    assert "the digest of" in other[1]
    assert say("verify", place / "run", "--evidence", place / "e.json", "--no-data")[0] == 2


def test_verify_asks_for_the_baseline_and_compares_it(place: Path) -> None:
    command = ("verify", place / "run", "--evidence", place / "d.json")
    assert "name its run with --against" in say(*command)[1]
    assert say(*command, "--against", place / "base")[0] == 0
    told = evidence(place, "d.json")
    told["predicate"]["stormproof"]["baseline"]["predictions"]["digest"] = "0" * 32
    found = check_evidence(told, Run(place / "run"), against=Run(place / "base"))
    assert found == [f"its baseline has other predictions than those in {place / 'base'}"]
    assert check_evidence(evidence(place), Run(place / "run"), against=Run(place / "base")) == [
        "it has no baseline; leave --against out"
    ]


def _lie(*path: str | int, value: Any) -> Callable[[Told], None]:
    def lie(told: Told) -> None:
        for part in path[:-1]:
            told = told[part]  # type: ignore[index]
        told[path[-1]] = value  # type: ignore[index]

    return lie


STORM = ("predicate", "stormproof")


@pytest.mark.parametrize(
    ("lie", "where"),
    [
        (_lie("predicate", "result", value="FAILED"), "predicate.result"),
        (_lie("predicate", "passedTests", value=["R1", "R2"]), "predicate.passedTests"),
        (_lie("subject", 0, "digest", "sha256", value="0" * 64), "subject.0.digest.sha256"),
        (_lie(*STORM, "predictions", "digest", value="0" * 32), "other predictions"),
        (_lie(*STORM, "intervals", "replicates", value=51), "requirements.0"),
        (_lie(*STORM, "intervals", "replicates", value=10**9), "intervals.replicates"),
        (_lie(*STORM, "intervals", "replicates", value=2), "intervals.replicates"),
        (_lie(*STORM, "looks", "all", value=[]), "looks are not those"),
        (_lie(*STORM, "looks", "all", 0, "images", value=4), "looks are not those"),
        (_lie(*STORM, "looks", "this", "number", value=2), "looks.this.number"),
        (_lie(*STORM, "requirements", 0, "estimate", value=0.999), "requirements.0.estimate"),
        (_lie(*STORM, "requirements", 0, "verdict", value="fail"), "requirements.0.verdict"),
        (_lie(*STORM, "requirements", 0, "threshold", value=0.02), "looks are not those at its requirements"),
        (_lie(*STORM, "requirements", value=[]), "empty"),
        (_lie(*STORM, "seed", value=7), "seed"),
        (_lie(*STORM, "dataset", "fingerprint", value="0"), "dataset.fingerprint"),
        (_lie(*STORM, "pixels", "given", "found", "clean", value={}), "pixels.given.found.clean"),
        (_lie(*STORM, "deviations", value=["none"]), "deviations"),
        (_lie("predicate", "configuration", value=[]), "run.json"),
        (_lie("predicate", "configuration", value=0.5), "run.json"),
        (_lie("predicate", "stormproof", value=3), "missing or wrong"),
        (_lie("predicate", value=None), "missing or wrong"),
    ],
)
def test_verify_notices_every_changed_statement(place: Path, lie: Callable[[Told], None], where: str) -> None:
    told = evidence(place)
    lie(told)
    found = check_evidence(told, Run(place / "run"))
    assert found
    assert any(where in line for line in found), found


def test_a_requirement_does_not_pass_by_the_interval_of_another_with_its_id(place: Path) -> None:
    """R1 holds; the first row claims that a requirement far above every score passes under the same id."""
    told = evidence(place)
    (true,) = told["predicate"]["stormproof"]["requirements"]
    false = true | {"condition": "fog@3", "threshold": 1.0}
    told["predicate"]["stormproof"]["requirements"] = [false, true]
    assert any(
        "two requirements have the id 'R1'" in line for line in check_evidence(told, Run(place / "run"))
    )


def test_refuses_a_file_that_is_no_evidence(place: Path, tmp_path: Path) -> None:
    (tmp_path / "e.json").write_text("[]")
    code, text = say("verify", place / "run", "--evidence", tmp_path / "e.json")
    assert code == 2
    assert "not an in-toto statement" in text


def told_of(**changes: Any) -> list[str]:
    """The deviations of a run of 8 images in full, except for the changes."""
    usual = {"images": 8, "conditions": ("clean", "fog@3"), "copies": None}
    record = SimpleNamespace(
        **usual | {key: value for key, value in changes.items() if key in usual},
        dataset=SimpleNamespace(images=8),
        model=SimpleNamespace(enhance=changes.get("enhance", ())),
    )
    unreadable, kinds = changes.get("unreadable", {}), changes.get("failures", ())
    run: Any = SimpleNamespace(
        record=record, unreadable=unreadable, failures=[{"kind": kind} for kind in kinds]
    )
    return _deviations(run)


def test_a_full_test_has_no_deviation() -> None:
    assert told_of() == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"images": 7}, "Only the first 7 of 8 images were tested."),
        ({"unreadable": {3: "003"}}, "Left out of every condition, since unreadable: 003."),
        ({"failures": ["model", "timeout", "death"]}, "Without a score, since the model failed: 3 cells."),
        (
            {"copies": "folder"},
            "Corrupted images were read from copies that somebody made, not made by the run.",
        ),
        ({"conditions": ("fog@3",)}, "The clean images were not tested."),
        ({"enhance": ("clahe",)}, "Images were enhanced first: clahe."),
    ],
)
def test_reports_every_deviation(changes: dict[str, Any], said: str) -> None:
    assert told_of(**changes) == [said]


def test_an_unreadable_image_is_not_a_failure_of_the_model() -> None:
    said = told_of(unreadable={3: "003"}, failures=["image", "image"])
    assert said == ["Left out of every condition, since unreadable: 003."]


@pytest.mark.parametrize(
    ("outcomes", "result"),
    [
        ((Outcome.PASS, Outcome.PASS), "PASSED"),
        ((Outcome.PASS, Outcome.INCONCLUSIVE), "WARNED"),
        ((Outcome.INCONCLUSIVE, Outcome.FAIL, Outcome.PASS), "FAILED"),
    ],
)
def test_the_overall_result_is_the_worst_verdict(
    place: Path, outcomes: tuple[Outcome, ...], result: str
) -> None:
    verdicts: list[Any] = [
        SimpleNamespace(
            outcome=outcome,
            requirement=SimpleNamespace(id=f"R{k}"),
            as_dict=dict,
            look=None,
            few=False,
            doubt="",
            more="",
        )
        for k, outcome in enumerate(outcomes)
    ]
    looks = [Look(images=8, requirements="0" * 32)]
    predicate = statement(Run(place / "run"), None, verdicts, pixels=0, looks=looks)["predicate"]
    assert predicate["result"] == result
    told = {"passedTests": Outcome.PASS, "warnedTests": Outcome.INCONCLUSIVE, "failedTests": Outcome.FAIL}
    for key, outcome in told.items():
        assert predicate[key] == [f"R{k}" for k, each in enumerate(outcomes) if each is outcome]


def test_lists_what_was_tested_and_what_was_not(place: Path) -> None:
    told = evidence(place)["predicate"]["stormproof"]["operating_conditions"]
    assert [*told["tested"]] == ["fog"]
    assert "fog" not in told["untested"]
    assert {"snow", "gaussian_noise", "haze"} <= {*told["untested"]}


def test_pixels_of_equal_bytes_and_another_shape_have_another_hash() -> None:
    flat = np.zeros((2, 8, 3), np.uint8)
    assert _hash(flat) != _hash(flat.reshape(8, 2, 3))
    assert _hash(flat) == hashlib.sha256(b"(2, 8, 3)" + bytes(48)).hexdigest()


def test_the_sample_of_images_does_not_depend_on_how_many_are_asked_for(place: Path) -> None:
    run = Run(place / "run")
    every = [sample_images(run, count) for count in range(9)]
    assert [len(chosen) for chosen in every] == [*range(9)]
    assert all({*few} <= {*more} for few, more in pairwise(every))
    assert all(chosen == sorted(chosen) for chosen in every)
    assert every[3] != [0, 1, 2], "chosen by identity, not from the start"
