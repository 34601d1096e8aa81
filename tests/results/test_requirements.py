"""Requirements and verdicts: what cannot be judged is named and is never a pass."""

from __future__ import annotations

import hashlib
import json
import math
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import PIL.Image
import pytest
import yaml
from typer.testing import CliRunner

from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, StormproofError
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.report.comparison import compare_view
from stormproof.results.evidence import pixel_manifest, sample_images
from stormproof.results.requirements import parse, read_requirements
from stormproof.results.run import Run
from stormproof.results.scores import Replicates, Scores
from stormproof.results.store.record import read_record
from stormproof.results.verdicts import Outcome, assert_requirements, check_run, exit_code, judge, markdown

RUNNER = CliRunner()


@pytest.fixture(scope="module")
def run(make) -> Path:
    return make("contrast_boxes", name="required")


@pytest.fixture(scope="module")
def scores(run: Path) -> Scores:
    return Run(run).score(interval=True)


def write(folder: Path, *rows: dict[str, object]) -> Path:
    path = folder / "requirements.yaml"
    path.write_text(yaml.safe_dump({"requirements": list(rows)}))
    return path


PASS = {"id": "R1", "metric": "E", "condition": "clean", "at_most": 0.99}
FAIL = {"id": "R2", "metric": "AP", "condition": "fog@3", "at_least": 0.99}


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"id": "R", "metric": "AP51", "condition": "clean", "at_least": 0.5}, "Unknown metric 'AP51'"),
        ({"id": "R", "metric": "AP50", "condition": "clean", "at_least": 40}, "write 0.4"),
        ({"id": "R", "metric": "AP50", "condition": "clean", "at_least": 0}, "impossible or trivial"),
        ({"id": "R", "metric": "AP50", "condition": "clean", "at_most_loss": 1.5}, "impossible"),
        ({"id": "R", "metric": "AP50", "condition": "clean", "at_least": "high"}, "not a number"),
        ({"id": "R", "metric": "AP50", "condition": "fgo@3x", "at_least": 0.5}, "fgo@3x"),
        ({"id": "R", "metric": "AP50", "at_least": 0.5}, "under which condition"),
        ({"id": "R", "metric": "mPC", "condition": "fog@3", "at_least": 0.5}, "many conditions"),
        ({"id": "R", "metric": "AP", "condition": "mean", "at_least": 0.5}, "write metric: mPC, of: AP,"),
        ({"id": "R", "metric": "rPC", "suite": "imagenet", "at_least": 0.5}, "imagenet-c"),
        ({"id": "R", "metric": "rPC", "suite": "imagenet-c@3", "at_least": 0.5}, "leave the key 'suite' out"),
        ({"id": "R", "metric": "E", "condition": "clean", "at_least": 0.5}, "use at_most"),
        ({"id": "R", "metric": "P", "of": "E", "at_least": 0.5}, "P of E is better when lower"),
        ({"id": "R", "metric": "mPC", "of": "E", "at_least": 0.5}, "its mean is metric: mCE, of: E"),
        ({"id": "R", "metric": "kept", "of": "E", "at_least": 0.5}, "its mean is metric: mCE, of: E"),
        ({"id": "R", "metric": "mCE", "of": "AP", "at_most": 0.5}, "its mean is metric: mPC, of: AP"),
        ({"id": "R", "metric": "AP", "condition": "clean", "at_most": 0.5}, "use at_least"),
        ({"id": "R", "metric": "AP", "condition": "clean"}, "exactly one of"),
        ({"id": "R", "metric": "AP", "condition": "clean", "at_least": 0.1, "at_most": 0.2}, "exactly one"),
        ({"metric": "AP", "condition": "clean", "at_least": 0.1}, "has no id"),
        ({"id": "R", "metrik": "AP", "condition": "clean", "at_least": 0.1}, "metrik"),
        ({"id": "R", "metric": "AP", "condition": "clean", "at_most_loss": 0.1}, "says nothing"),
        ("AP50 >= 0.4", "write {id"),
        ({"id": "R", "metric": "AP", "condition": "clean", "at_least": 10**400}, "not a number"),
        ({"id": "R", "metric": "AP", "condition": "clean", "at_most_loss": -(10**400)}, "not a number"),
        ({"id": "R", "metric": "AP", "condition": "clean", "at_least": float("nan")}, "impossible"),
        ({"id": "R", "metric": "AP", "condition": "clean", "at_least": float("inf")}, "not a number"),
    ],
)
def test_names_the_mistake_in_a_requirement(row, complaint):
    with pytest.raises(InvalidOption, match=re.escape(complaint)) as error:
        parse(row, "file, requirement 1")
    assert str(error.value).startswith("file, requirement 1")


@pytest.mark.parametrize(
    ("written", "meant"),
    [("mpc", "mPC"), ("MPC", "mPC"), ("mcp", "mPC"), ("rpc", "rPC"), ("mce", "mCE"), ("ap50", "AP50"),
     ("AP5O", "AP50"), ("miou", "mIoU"), ("mask ap", "mask AP")],
)  # fmt: skip
def test_a_misspelt_metric_is_guessed(written, meant):
    row = {"id": "R", "metric": written, "at_least": 0.5}
    with pytest.raises(InvalidOption, match=f"Unknown metric '{written}'. Did you mean '{meant}'\\?"):
        parse(row, "file, requirement 1")
    with pytest.raises(InvalidOption, match="Did you mean 'AP50'"):
        parse({"id": "R", "metric": "mPC", "of": "ap50", "at_least": 0.5}, "file, requirement 1")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "requirements: []",
        "requirements: 3",
        "other: []",
        "requirements: [",
        "- a",
        "requirements: " + "[" * 3000,
        "requirements: " + "[" * 3000 + "]" * 3000,
        "requirements:\n- " + "{a: " * 3000 + "}" * 3000,
    ],
)
def test_a_file_that_checks_nothing_is_refused(tmp_path, text):
    path = tmp_path / "requirements.yaml"
    path.write_text(text)
    with pytest.raises(InvalidOption):
        read_requirements(path)


def test_a_plan_is_read_and_one_that_cannot_decide_is_refused(tmp_path):
    path = tmp_path / "requirements.yaml"
    rows = "requirements: [{id: R, metric: P, at_least: 0.5}]\n"
    path.write_text(rows)
    assert read_requirements(path).planned_images is None
    path.write_text(f"{rows}planned_images: 500\n")
    assert read_requirements(path).planned_images == 500
    for wrong in ("49", "0", "-3", "true", "1.5", "many", "[500]", "1e9"):
        path.write_text(f"{rows}planned_images: {wrong}\n")
        with pytest.raises(InvalidOption, match=r"planned_images is .*at least 50"):
            read_requirements(path)
    path.write_text(f"{rows}planed_images: 500\n")
    with pytest.raises(InvalidOption, match=r"Unknown key 'planed_images'\. Did you mean 'planned_images'"):
        read_requirements(path)


@pytest.mark.parametrize(
    ("written", "of", "meant"),
    [("mean", None, "mPC"), ("mean over 15 conditions", "AP50", "mPC"),
     ("mean over 1 condition", None, "mPC"), ("clean", None, "P"), ("kept", "AP", "rPC"),
     ("% of P left", None, "rPC"), ("rPC", "AP", "rPC")],
)  # fmt: skip
def test_names_of_columns_are_accepted_as_metrics(written, of, meant):
    row = {"id": "R", "metric": written, "at_least": 0.5} | ({"of": of} if of else {})
    assert parse(row, "r") == parse({**row, "metric": meant}, "r")


def test_the_mean_of_an_error_is_an_error():
    assert parse({"id": "R", "metric": "mean", "of": "LRP", "at_most": 0.5}, "r").metric == "mCE"
    assert not parse({"id": "R", "metric": "clean", "of": "LRP", "at_most": 0.5}, "r").higher
    with pytest.raises(InvalidOption, match="mCE of LRP is better when lower"):
        parse({"id": "R", "metric": "mean", "of": "LRP", "at_least": 0.5}, "r")


@pytest.mark.parametrize(
    ("written", "near"), [("AP5O", "AP50, AP75, AP"), ("quality", "AP50, mPC, rPC"), ("average", "")]
)
def test_an_unknown_metric_suggests_three_names(written, near):
    with pytest.raises(InvalidOption) as caught:
        parse({"id": "R", "metric": written, "at_least": 0.5}, "r")
    suggested = str(caught.value).partition("Near it: ")[2].partition(";")[0]
    assert suggested.startswith(near)
    assert 1 <= len(suggested.split(", ")) <= 3


def test_ids_are_unique(tmp_path):
    with pytest.raises(InvalidOption, match="two requirements have the id 'R1'"):
        read_requirements(write(tmp_path, PASS, PASS))


def test_the_interval_decides_the_outcome(scores):
    replicates = scores.spread("AP")["fog@3"]
    value, se = scores.per_condition["AP"]["fog@3"], float(np.std(replicates, ddof=1))
    row = {"id": "R", "metric": "AP", "condition": "fog@3"}
    cases = {Outcome.PASS: value - 3 * se, Outcome.FAIL: value + 3 * se, Outcome.INCONCLUSIVE: value + se}
    for outcome, threshold in cases.items():
        if not 0 < threshold < 1:
            continue
        verdict = judge([parse({**row, "at_least": threshold}, "r")], scores)[0]
        assert verdict.outcome is outcome
        assert verdict.margin == pytest.approx(value - threshold)


def test_judges_aggregates_losses_and_drops(run, scores):
    rpc = judge([parse({"id": "A", "metric": "rPC", "at_least": 0.01}, "r")], scores)[0]
    total = scores.aggregates["AP"]
    assert rpc.interval.estimate == pytest.approx(total["mean"] / total["P"])
    loss = judge(
        [parse({"id": "B", "metric": "AP", "condition": "fog@3", "at_most_loss": 0.9}, "r")], scores
    )[0]
    cells = scores.per_condition["AP"]
    assert loss.interval.estimate == pytest.approx(cells["clean"] - cells["fog@3"])
    same = judge([parse({"id": "C", "metric": "mPC", "at_most_drop": 0.01}, "r")], scores, scores)[0]
    assert same.outcome is Outcome.INCONCLUSIVE  # eight equal images say little about others
    assert same.interval.estimate == 0
    count = len(scores.conditions) - 1  # of no suite, so it is no mPC
    assert same.requirement.text == f"mean over {count} conditions drops at most 0.01"
    assert rpc.text.startswith(f"mean over {count} conditions, relative to P, at least 0.01: ")
    error = judge([parse({"id": "D", "metric": "mCE", "at_most": 0.99}, "r")], scores)[0]
    assert error.interval.estimate == pytest.approx(scores.aggregates["E"]["mean"])
    assert error.requirement.text == f"mean over {count} conditions at most 0.99"
    (verdict,) = check_run(Run(run), [parse({"id": "E", "metric": "P", "at_least": 0.001}, "r")])
    assert verdict.interval == scores.interval("P", "AP")


def test_what_is_kept_varies_with_the_clean_score_too():
    """Of no suite, so what is kept is the plain mean relative to P, in every draw."""
    rng = np.random.default_rng(0)
    row = {"clean": 0.5, "fog@3": 0.4}
    drawn = {text: value + np.r_[0, 0, rng.normal(0, 0.02, 2000)] for text, value in row.items()}
    made = Scores("net", "toy", 4000, {"AP": row}, tuple(row), replicates=Replicates({"AP": drawn}, {}))
    (kept,) = judge([parse({"id": "R", "metric": "rPC", "at_least": 0.5}, "r")], made)
    assert kept.interval.estimate == pytest.approx(0.8)
    spread = (drawn["fog@3"] / drawn["clean"]).std()
    assert kept.interval.high - kept.interval.low == pytest.approx(2 * 1.96 * spread, rel=0.1)


def test_a_drop_is_over_the_same_conditions_measure_and_classes(make, scores):
    drop = [parse({"id": "R", "metric": "mPC", "at_most_drop": 0.5}, "r")]
    some = Run(make("contrast_boxes", name="fewer", conditions=["fog"])).score(interval=True)
    (verdict,) = judge(drop, some, scores)  # the mean of the run's five conditions, not of the baseline's ten
    means = [np.mean([side.per_condition["AP"][f"fog@{k}"] for k in range(1, 6)]) for side in (scores, some)]
    assert verdict.interval.estimate == pytest.approx(means[0] - means[1], abs=1e-12)
    with pytest.raises(InvalidOption, match=r"R covers conditions that were not run in .*fewer-scene: gauss"):
        judge(drop, scores, some)
    (verdict,) = judge(drop, scores, scores.showing("AP50"))  # by the run's headline, not the baseline's
    assert verdict.interval.estimate == 0
    cats = Run(make("cat_boxes", name="cats")).score(interval=True)
    with pytest.raises(InvalidOption, match=r"different classes.*only one of them has dog"):
        judge(drop, cats, scores)
    with pytest.raises(InvalidOption, match="different classes"):
        scores.with_reference(cats)
    assert "Not a fair comparison" in compare_view(scores, cats).notices[0]
    assert "they differ in dog" in compare_view(scores, cats).notices[0]
    assert not any("fair" in each for each in compare_view(scores, some).notices)


def test_two_requirements_of_one_id_are_judged_apart(scores):
    rows = [{"metric": "AP", "condition": text, "at_least": 0.99} for text in ("fog@3", "clean")]
    together = judge([parse({"id": "R", **row}, "r") for row in rows], scores)
    apart = [judge([parse({"id": "R", **row}, "r")], scores)[0] for row in rows]
    assert [verdict.interval for verdict in together] == [verdict.interval for verdict in apart]
    assert together[0].interval != together[1].interval


def test_clean_images_alone_have_no_mean(scores):
    clean = replace(
        scores,
        conditions=("clean",),
        per_condition={m: {"clean": c["clean"]} for m, c in scores.per_condition.items()},
    )
    with pytest.raises(InvalidOption, match=r"R: .* has no mPC of AP: it was run on clean images only"):
        judge([parse({"id": "R", "metric": "mPC", "at_least": 0.5}, "r")], clean)


@pytest.mark.parametrize(
    ("row", "complaint"),
    [
        ({"id": "R", "metric": "AP", "condition": "snow@3", "at_least": 0.1}, "snow@3 was not run"),
        ({"id": "R", "metric": "rPC", "suite": "imagenet-c", "at_least": 0.1}, "were not run"),
        ({"id": "R", "metric": "mIoU", "condition": "clean", "at_least": 0.1}, "the run has no mIoU"),
        ({"id": "R", "metric": "APl", "condition": "clean", "at_least": 0.1}, "has no value in this run"),
        ({"id": "R", "metric": "mPC", "at_most_drop": 0.1}, "--against"),
    ],
)
def test_refuses_a_requirement_that_the_run_cannot_answer(run, tmp_path, row, complaint):
    result = RUNNER.invoke(app, ["check", str(run), "--require", str(write(tmp_path, PASS, row))])
    assert isinstance(result.exception, StormproofError)  # main() makes it exit code 2
    assert complaint in str(result.exception)
    assert "R" in str(result.exception)


def test_the_program_exits_with_2_on_an_error(run, tmp_path, monkeypatch, capsys):
    from stormproof.cli import main

    path = write(tmp_path, {"id": "R9", "metric": "AP51", "condition": "clean", "at_least": 0.1})
    monkeypatch.setattr("sys.argv", ["stormproof", "check", str(run), "--require", str(path)])
    with pytest.raises(SystemExit) as exit_:
        main()
    assert exit_.value.code == 2
    assert "R9" in capsys.readouterr().err


def test_the_gate_prints_writes_junit_and_exits_by_the_verdicts(run, tmp_path, monkeypatch):
    summary = tmp_path / "summary.md"
    summary.write_text("another step's\n", encoding="utf-8")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    xml = tmp_path / "verdicts.xml"
    path = write(tmp_path, PASS, FAIL)
    result = RUNNER.invoke(app, ["check", str(run), "--require", str(path), "--junit", str(xml), "--json"])
    assert result.exit_code == 1
    rows = json.loads(result.stdout)
    assert [row["verdict"] for row in rows] == ["pass", "fail"]
    assert [row["together"] for row in rows] == [2, 2]
    assert rows[1]["p"] < rows[1]["holm"] < 0.025 < rows[0]["holm"]
    shown = RUNNER.invoke(app, ["check", str(run), "--require", str(path)])
    assert "a wrong failure of any of the 2 requirements (Holm's correction)" in shown.stdout
    suite = ElementTree.fromstring(xml.read_text()).find("testsuite")
    assert suite is not None
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped")) == ("2", "1", "0")
    assert len(suite.findall("testcase/failure")) == 1
    assert "| R2 | AP under fog@3 at least 0.99 | ❌ fail |" in summary.read_text()
    assert summary.read_text().startswith("another step's\n")
    assert RUNNER.invoke(app, ["check", str(run), "--require", str(write(tmp_path, PASS))]).exit_code == 0
    with pytest.raises(AssertionError, match="fail"):
        assert_requirements(run, write(tmp_path, FAIL))
    assert_requirements(run, write(tmp_path, PASS))


def test_the_exit_code_of_inconclusive_verdicts_is_3():
    passed, failed, unclear = (SimpleNamespace(outcome=outcome) for outcome in Outcome)
    assert exit_code([passed, unclear]) == 3
    assert exit_code([failed, unclear]) == 1
    assert exit_code([passed]) == 0


def test_evidence_is_an_in_toto_statement(run, tmp_path):
    out = tmp_path / "evidence.json"
    path = write(tmp_path, PASS, FAIL)
    result = RUNNER.invoke(app, ["evidence", str(run), "--require", str(path), "--out", str(out)])
    assert result.exit_code == 0, result.output
    said = json.loads(out.read_text())
    assert said["_type"] == "https://in-toto.io/Statement/v1"
    assert said["predicateType"] == "https://in-toto.io/attestation/test-result/v0.1"
    predicate = said["predicate"]
    assert predicate["result"] == "FAILED"
    assert (predicate["passedTests"], predicate["failedTests"]) == (["R1"], ["R2"])
    assert all(re.fullmatch("[0-9a-f]{64}", c["digest"]["sha256"]) for c in predicate["configuration"])
    ours = predicate["stormproof"]
    assert ours["wrong_verdicts"]["at_most"] == pytest.approx(0.025)
    assert "any of the 2 requirements" in ours["wrong_verdicts"]["words"]
    assert ours["requirements"][1]["low"] < ours["requirements"][1]["high"]
    noise = next(c for c in ours["conditions"] if c["condition"] == "gaussian_noise@3")
    assert noise["physical"][0] == {"name": "noise σ", "value": pytest.approx(45.9), "unit": "grey levels"}
    assert "haze" in ours["operating_conditions"]["untested"]
    given = ours["pixels"]["given"]
    assert (given["images"], given["of"], len(given["found"]["fog@2"])) == (8, 8, 8)
    assert {*given["found"]} == {*read_record(run).conditions}
    assert ours["pixels"]["read"]["cells"] == 8 * len(given["found"])
    assert ours["intervals"]["warning"].startswith("8 images are few")


def test_the_hashed_images_are_a_sample_by_identity(run):
    opened = Run(run)
    three = sample_images(opened, 3)
    whole, part = (pixel_manifest(opened, images=count) for count in (8, 2))
    assert part["read"] == whole["read"]
    for text, hashes in part["given"]["found"].items():
        assert len(hashes) == 2
        assert hashes.items() <= whole["given"]["found"][text].items()
    clean, fog = (whole["given"]["found"][text] for text in ("clean", "fog@3"))
    assert len({*clean.values(), *fog.values()}) == 16
    opened.record = opened.record.model_copy(update={"seed": 1})
    assert sample_images(opened, 3) != three


def test_copies_are_hashed_as_they_are(run, tmp_path):
    """A run of copies was shown those, whatever the conditions' recipes would have made."""
    opened = Run(run)
    grey = np.full((48, 64, 3), 77, np.uint8)
    for text in opened.conditions:
        (tmp_path / text).mkdir()
        for i in range(8):
            PIL.Image.fromarray(grey).save(tmp_path / text / f"{i:03d}.png")
    opened.record = opened.record.model_copy(update={"copies": str(tmp_path)})
    found = pixel_manifest(opened)["given"]["found"]
    assert (opened.sample(opened.ids[0], "fog@3").image == 77).all()
    assert (opened.sample(opened.ids[0]).image != 77).any()
    assert {*found["fog@3"].values()} == {hashlib.sha256(b"(48, 64, 3)" + grey.tobytes()).hexdigest()}
    assert len({*found["clean"].values()}) == 8


@pytest.mark.slow
def test_the_command_finds_a_breaking_point(make, tmp_path):
    from helpers.scenes import write_scene

    data = write_scene(tmp_path / "scene", images=8)
    usual = ["breaking-point", "--model", f"{MODELS}:contrast_boxes", "--data", data, "-j", "1", "--json"]
    out = ["--out", str(tmp_path / "run"), "--require", "AP50>=0.0001", "--corruption", "contrast"]
    result = RUNNER.invoke(app, [*usual, *out])
    assert result.exit_code == 0, result.output
    row = json.loads(result.stdout)[0]
    assert row["answer"] in {"never in this range", "breaks", "already below at the weakest strength"}
    assert "8 images are few" in " ".join(result.stderr.split())
    high = RUNNER.invoke(
        app, [*usual, "--out", str(tmp_path / "run"), "--require", "AP50>=0.999", "--corruption", "holdout"]
    )
    assert high.exit_code == 0, high.output
    rows = json.loads(high.stdout)
    assert {row["answer"] for row in rows} == {"already below when clean"}
    assert {row["corruption"] for row in rows} == {"speckle_noise", "gaussian_blur"}  # the others switch


def test_score_prints_intervals_and_marks_estimates(run, tmp_path):
    from helpers.scenes import write_scene

    result = RUNNER.invoke(app, ["score", str(run), "--interval", "--all"])
    assert result.exit_code == 0, result.output
    assert "±" in result.stdout
    printed = json.loads(RUNNER.invoke(app, ["score", str(run), "--interval", "--json"]).stdout)
    mean = printed["intervals"]["aggregates"]["AP"]["mean"]
    assert mean["low"] < printed["aggregates"]["AP"]["mean"] < mean["high"]
    data = write_scene(tmp_path / "scene", images=40)
    config = {"model": f"{MODELS}:contrast_boxes", "data": data, "out": str(tmp_path / "part"),
              "conditions": ["fog,contrast"], "engine": "local"}  # fmt: skip
    flags = [x for k in ("model", "data", "out", "engine") for x in (f"--{k}", str(config[k]))]
    made = RUNNER.invoke(app, ["run", *flags, "--conditions", "fog,contrast", "--precision", "6"])
    assert made.exit_code == 0, made.output
    assert "ESTIMATE" in made.stdout
    assert "mPC" not in made.stdout
    assert "mean over" in made.stdout
    scored = RUNNER.invoke(app, ["score", str(tmp_path / "part")])
    assert "ESTIMATE" in scored.stdout
    assert not (tmp_path / "part" / "scores").exists()
    run_it(make_config(config))
    assert "ESTIMATE" not in RUNNER.invoke(app, ["score", str(tmp_path / "part")]).stdout


@pytest.mark.parametrize("metric", ["Miss share", "dAP Bkg", "D-ECE", "LaECE0", "oLRP", "LRP FN"])
def test_error_types_can_be_required(scores: Scores, metric: str) -> None:
    known = (c for c in scores.conditions if math.isfinite(scores.interval(c, metric).se))
    condition = next(known)  # the toy model says nothing loud in dense fog
    value = scores.score(metric, condition)
    loose, tight = (
        parse({"id": "R1", "metric": metric, "condition": condition, "at_most": at_most}, "here")
        for at_most in (0.999, 0.0)
    )
    for requirement in (loose, tight):
        (verdict,) = judge([requirement], scores)
        assert verdict.interval.estimate == value
        assert verdict.margin == pytest.approx(requirement.threshold - value)
    with pytest.raises(InvalidOption, match=f"{metric} is better when lower; use at_most"):
        parse({"id": "R1", "metric": metric, "condition": "fog@3", "at_least": 0.5}, "here")


def test_counts_may_exceed_1_and_are_printed_as_they_are(scores: Scores) -> None:
    row = {"id": "R1", "metric": "FP per image", "condition": "clean", "at_most": 25}
    (verdict,) = judge([parse(row, "here")], scores)
    value = scores.score("FP per image")
    assert verdict.printed[0] == value
    assert verdict.printed[3] == pytest.approx(25 - value)
    assert f"| {value:.2f} |" in markdown("net", [verdict])
    named = replace(verdict, requirement=replace(verdict.requirement, id="a|b"))
    assert "\n| a\\|b | " in markdown("net", [named])  # a bar would begin another column
    with pytest.raises(InvalidOption, match="impossible or trivial"):
        parse(row | {"at_most": -1}, "here")


def test_the_gate_judges_error_types_and_calibration(run: Path, scores: Scores, tmp_path: Path) -> None:
    path = write(
        tmp_path,
        {"id": "misses", "metric": "Miss share", "condition": "clean", "at_most": 0.3},
        {"id": "calibrated", "metric": "D-ECE", "condition": "clean", "at_most": 0.1},
    )
    result = RUNNER.invoke(app, ["check", str(run), "--require", str(path), "--json"])
    found = {verdict["id"]: verdict for verdict in json.loads(result.stdout)}
    assert found["misses"]["estimate"] == pytest.approx(scores.score("Miss share"))
    assert found["calibrated"]["estimate"] == pytest.approx(scores.score("D-ECE"))
    assert result.exit_code in (1, 3)  # neither holds for the toy model
