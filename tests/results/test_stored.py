"""Scores stored with a run are those of the very options, predictions and images, or are made again."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from typer.testing import CliRunner

from helpers.runs import Make
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from stormproof.cli import app
from stormproof.core.boxes import enclosing_overlap, iou
from stormproof.core.errors import IncompleteGrid, InvalidOption, StoreError, StormproofError
from stormproof.core.imagefile import read_image, write_image
from stormproof.engine.config import make_config
from stormproof.engine.run import run as run_it
from stormproof.metrics.object_error import MatchingRule
from stormproof.report.leaderboard.submission import read_submission
from stormproof.report.sources import scores_of
from stormproof.report.view import make_view
from stormproof.results import scoring
from stormproof.results.rows import Boxes, DetectionBuffer, join_parts
from stormproof.results.run import DatasetGone, Run
from stormproof.results.scores import Scores
from stormproof.results.store.parts import held_rows, part_path, writing_part
from stormproof.results.stored import FOLDER

GONE = "The dataset was not found: these are stored scores, and its images could not be checked."


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run alone with its dataset: people and dogs, found more often the more contrast there is."""
    data = write_scene(tmp_path / "scene", images=6)
    file = tmp_path / "scene" / "instances.json"
    file.write_text(file.read_text().replace('"cat"', '"person"'))
    settings = {"model": f"{MODELS}:contrast_boxes", "data": data, "conditions": ["contrast@2,fog@3"],
                "engine": "local", "chunk": 3, "out": str(tmp_path / "run")}  # fmt: skip
    run_it(make_config(settings))
    return tmp_path / "run"


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same to the last bit, whatever they consist of."""
    if is_dataclass(one):
        return type(one) is type(other) and all(
            same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one)
        )
    if isinstance(one, Mapping):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, np.ndarray):
        return bool(np.array_equal(one, other, equal_nan=True))
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return one == other or (isinstance(one, float) and math.isnan(one) and math.isnan(other))


def never(*_: object, **__: object) -> Any:
    raise AssertionError("scores were made, not read")


def say(*words: object) -> str:
    shown = CliRunner().invoke(app, [*map(str, words)], catch_exceptions=False)
    assert shown.exit_code == 0, shown.output
    return shown.output


# What is stored


@pytest.mark.parametrize(
    ("model", "on"), [("contrast_masks", "scene"), ("contrast_boxes", "scene"), ("other_names", "street")]
)
def test_stored_scores_equal_computed_ones(
    make: Make, monkeypatch: pytest.MonkeyPatch, model: str, on: str
) -> None:
    run = make(model, on)
    shutil.rmtree(run / "scores", ignore_errors=True)
    for replicates in (None, 50):
        made = Run(run).score(replicates=replicates)
        with monkeypatch.context() as patch:
            patch.setattr(scoring, "_make", never)
            assert same(made, Run(run).score(replicates=replicates))
    with monkeypatch.context() as patch:  # those with replicates are those without, and more
        patch.setattr(scoring, "_make", never)
        assert same(made.per_condition, Run(run).score().per_condition)


def test_stored_scores_of_people_equal_computed_ones(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """People who are never found again among them, and classes whose names are not one line."""
    file = folder.parent / "scene" / "instances.json"
    file.write_text(file.read_text().replace('"dog"', '"d\\nog"'))
    shutil.rmtree(folder)
    settings = {"model": f"{MODELS}:only_when_clean", "conditions": ["contrast@5"], "engine": "local",
                "data": f"coco:{file},images={file.parent / 'images'}", "out": str(folder)}  # fmt: skip
    run_it(make_config(settings))
    made = Run(folder).score(replicates=50)
    assert any(one["after"] == math.inf for one in made.details["lost"]["contrast@5"])
    assert "d␊og" in made.per_class["AP"]["clean"]
    assert made.replicates is not None
    assert {*made.replicates.per_class["AP"]["clean"]} == {*made.per_class["AP"]["clean"]}
    monkeypatch.setattr(scoring, "_make", never)
    assert same(made, Run(folder).score(replicates=50))


def test_intervals_are_not_taken_from_scores_that_were_made_without(folder: Path) -> None:
    made = Run(folder).score(replicates=50)
    (path,) = (folder / "scores").glob("*.json")
    path.unlink()
    Run(folder).score()  # writes the file again, without the intervals of reliability
    assert same(made, Run(folder).score(replicates=50))


@pytest.mark.parametrize("kind", ["json", "images", "50"])
def test_rejects_a_changed_file(folder: Path, kind: str) -> None:
    right = Run(folder).score(replicates=50)
    (path,) = (folder / "scores").glob("*.json" if kind == "json" else f"*-{kind}.parquet")
    content = path.read_bytes()
    changes = [b"", content[:-9], content[: len(content) // 2] + b"?" + content[len(content) // 2 + 1 :]]
    if kind == "json":
        kept = json.loads(content)
        kept["cells"]["E"]["clean"] += 0.125
        changes += [json.dumps(kept).encode(), b"{}", b"[]", b"\xff"]
    for change in changes:
        path.write_bytes(change)
        assert same(Run(folder).score(replicates=50), right)
        assert path.read_bytes() == content  # made again
    path.unlink()
    assert same(Run(folder).score(replicates=50), right)


def test_boxes_beyond_the_memory_limit_are_read_from_a_file() -> None:
    rng = np.random.default_rng(0)
    parts = [
        Boxes(
            np.full(k, k, np.int32), rng.random((k, 4)).astype(kind), rng.random(k).astype(kind),
            np.arange(k, dtype=np.uint8), rng.random((k, 2)) if k % 2 else None,
        )
        for k, kind in ((3, np.float32), (0, np.float64), (5, np.float64), (4, np.float32))
    ]  # fmt: skip
    ways = []
    for held in (1 << 20, 100, 0):
        buffer = DetectionBuffer(held)
        for k, part in enumerate(parts):
            buffer.add("fog@3" if k < 3 else "clean", part)
        ways.append([join_parts(list(buffer.take(name))) for name in ("fog@3", "clean", "snow@1")])
    for way in ways[1:]:
        for one, other in zip(ways[0], way, strict=True):
            assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))
    assert len(ways[0][0][0]) == 8
    assert len(ways[0][2][0]) == 0


# Options: never those of another score


def everywhere(folder: Path, tmp_path: Path) -> dict[str, Any]:
    """Every place that prints the default scores of a run, in its own words."""
    out = tmp_path / "printed"
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir()
    view = make_view(scores_of(str(folder), interval=True))
    shown = say("show", folder)
    say("report", folder, "--out", out / "report.html", "--images", "0")
    compared = say("compare", folder, folder, "--out", out / "compare.html")
    say("submit", folder, "--out", out / "entry.json")
    return {
        "score": say("score", folder), "json": say("score", folder, "--json"),
        "csv": say("score", folder, "--csv"), "view": repr(view.summary), "show": shown,
        "report": (out / "report.json").read_text(), "compare": compared,
        "page": (out / "compare.json").read_text(), "entry": read_submission(out / "entry.json"),
    }  # fmt: skip


def test_scores_with_options_are_never_used_as_default_ones(folder: Path, tmp_path: Path) -> None:
    """The silent wrong page: `score --classes person --min-score 0.5`, then `report`."""
    right = everywhere(folder, tmp_path)
    shutil.rmtree(folder / "scores")
    say("score", folder, "--classes", "person", "--min-score", "0.2")
    say("score", folder, "--min-score", "0.2", "--interval")
    say("score", folder, "--classes", "all", "--matching", "any", "--one-to-one")
    say("score", folder, "--measure", "AP50")
    Run(folder).score(classes=["person"], rule=MatchingRule(min_score=0.1), interval=True)
    Run(folder).score(conditions=["clean", "fog@3"])
    assert everywhere(folder, tmp_path) == right


def test_scores_with_options_name_them(folder: Path) -> None:
    usual, asked = Run(folder).score(), Run(folder).score(
        classes="person", rule=MatchingRule(min_score=0.2), conditions=["clean", "contrast@2"]
    )  # fmt: skip
    assert usual.options.words == ""
    assert asked.options.words == "classes: person; conditions: clean, contrast@2; min score: 0.2"
    assert asked.per_condition["AP"]["clean"] != usual.per_condition["AP"]["clean"]
    assert asked.per_condition["E"]["clean"] != usual.per_condition["E"]["clean"]
    assert {*asked.per_condition["AP"]} == {"clean", "contrast@2"}
    printed = " ".join(say("score", folder, "--classes", "person", "--min-score", "0.2").split())
    assert "classes: person; min score: 0.2" in printed
    assert "min score" not in say("score", folder)
    assert f"{asked.name} is scored with {asked.options.words}." in make_view([asked]).notices
    assert not any("scored with" in notice for notice in make_view([usual]).notices)


def test_showing_another_measure_changes_nothing_else(folder: Path) -> None:
    usual = Run(folder).score()
    shown = usual.showing("AP50")
    assert shown.headline == "AP50"
    assert same(shown.per_condition, usual.per_condition)
    assert Run(folder).score().headline == "AP"


def test_a_measure_of_overlap_is_identified_by_its_code(folder: Path) -> None:
    def score(overlap: Callable[..., Any]) -> float:
        return Run(folder).score(rule=MatchingRule(overlap=overlap)).per_condition["E"]["clean"]

    def power(exponent: float) -> Callable[..., Any]:
        return lambda a, b: iou(a, b) ** exponent

    assert score(power(1)) == score(iou)
    assert len({score(power(1)), score(power(2)), score(power(3)), score(enclosing_overlap)}) == 4


# Content, not times


def change_a_prediction(folder: Path, *, times: bool) -> None:
    """Another score of one box in the first part, sealed as the run would have; clocks as they were."""
    path, key = part_path(folder, 0), Run(folder).record.key
    before = path.stat()
    rows = [table for _, table in held_rows(path, key)]
    with writing_part(path, key) as part:
        for row in rows:
            at = row.schema.get_field_index("scores")
            halved = [[score / 2 for score in row["scores"][0].as_py()]]
            part.add(row.set_column(at, row.schema.field(at), pa.array(halved, row.schema.field(at).type)))
    if times:
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


@pytest.mark.parametrize("times", [False, True])
def test_stored_scores_follow_the_predictions_not_their_file_times(folder: Path, times: bool) -> None:
    first = Run(folder).score(replicates=50)
    change_a_prediction(folder, times=times)
    for path in (folder / "scores").iterdir():  # stored later than the parts, by their clocks
        os.utime(path, (4e9, 4e9))
    second = Run(folder).score(replicates=50)
    assert second.per_condition["E"]["clean"] != first.per_condition["E"]["clean"]
    shutil.rmtree(folder / "scores")
    assert same(Run(folder).score(replicates=50), second)


def test_a_part_damaged_in_place_is_noticed_whatever_its_file_time(folder: Path) -> None:
    Run(folder).score()
    path = part_path(folder, 0)
    before, content = path.stat(), path.read_bytes()
    with path.open("r+b") as file:
        file.seek(len(content) // 2)
        file.write(bytes([content[len(content) // 2] ^ 1]))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(StoreError, match=r"part-000000.parquet is damaged"):
        Run(folder).score()


def verbs(folder: Path, tmp_path: Path) -> list[list[object]]:
    return [
        ["score", folder], ["score", folder, "--interval"], ["show", folder], ["compare", folder, folder],
        ["report", folder, "--out", tmp_path / "page.html"],
        ["submit", folder, "--out", tmp_path / "entry.json"],
    ]  # fmt: skip


def refused(words: list[object], message: str) -> None:
    shown = CliRunner().invoke(app, [*map(str, words)])
    assert isinstance(shown.exception, StormproofError), (words, shown.output)
    assert re.search(message, str(shown.exception)), str(shown.exception)


def test_refuses_another_truth_although_scores_are_stored(folder: Path, tmp_path: Path) -> None:
    Run(folder).score(interval=True)
    file = tmp_path / "scene" / "instances.json"
    content = json.loads(file.read_text())
    content["annotations"][0]["bbox"][0] += 1
    file.write_text(json.dumps(content))
    for words in verbs(folder, tmp_path):
        refused(words, "is not the dataset of this run: fingerprint")
    file.write_text("{")  # there, but not to be read: not gone
    for words in verbs(folder, tmp_path):
        refused(words, r"instances\.json")
    assert not (tmp_path / "page.html").exists()
    assert not (tmp_path / "entry.json").exists()


def test_refuses_other_pixels_although_scores_are_stored(folder: Path, tmp_path: Path) -> None:
    Run(folder).score(interval=True)
    image = tmp_path / "scene" / "images" / "001.png"
    times = image.stat()
    write_image(image, 255 - read_image(image))
    os.utime(image, ns=(times.st_atime_ns, times.st_mtime_ns))
    for words in verbs(folder, tmp_path):
        refused(words, "was run on other pixels: 2 of instances changed")


def test_refuses_another_dataset_although_scores_are_stored(folder: Path, tmp_path: Path) -> None:
    Run(folder).score()
    other = write_scene(tmp_path / "other", images=6)
    with pytest.raises(InvalidOption, match="is not the dataset of this run"):
        Run(folder, data=other).score()


def test_uses_stored_scores_where_the_dataset_is_gone_and_says_so(folder: Path, tmp_path: Path) -> None:
    made = Run(folder).score(interval=True)
    (tmp_path / "scene").rename(tmp_path / "elsewhere")
    found = Run(folder).score(interval=True)
    assert found.notices == (GONE,)
    assert same(found.per_condition, made.per_condition)
    assert same(found.replicates, made.replicates)
    shown = CliRunner().invoke(app, ["score", str(folder)])
    assert shown.exit_code == 0
    assert f"run: {GONE}" in " ".join(shown.stderr.split())
    assert GONE in " ".join(say("show", folder).split())
    say("report", folder, "--out", tmp_path / "page.html")
    assert GONE in (tmp_path / "page.html").read_text()
    with pytest.raises(DatasetGone, match="Say where the dataset is now with --data"):
        Run(folder).score(classes="person")  # which were never made
    with pytest.raises(DatasetGone):
        Run(folder).score(replicates=60)
    moved = tmp_path / "elsewhere"
    here = Run(folder, data=f"coco:{moved / 'instances.json'},images={moved / 'images'}")
    assert here.score().notices == ()
    assert here.score(classes="person").classes == ("person",)


def test_without_the_dataset_part_of_a_grid_is_not_taken_for_the_whole(folder: Path, tmp_path: Path) -> None:
    data = f"coco:{tmp_path / 'scene' / 'instances.json'},images={tmp_path / 'scene' / 'images'}"
    settings = {"model": f"{MODELS}:contrast_boxes", "data": data, "conditions": ["snow@1"], "limit": 3,
                "engine": "local", "chunk": 3, "out": str(folder)}  # fmt: skip
    run_it(make_config(settings))
    partial = Run(folder).score(partial=True)
    assert partial.missing == ("snow@1 (3 of 6 missing)",)
    shutil.rmtree(tmp_path / "scene")
    assert same(Run(folder).score(partial=True).per_condition, partial.per_condition)
    with pytest.raises(IncompleteGrid, match="1 of 4 conditions lack images"):
        Run(folder).score()


def test_copies_do_not_hide_that_the_truth_changed(tmp_path: Path) -> None:
    """A run of corrupted copies does not compare images; its truth must still be the run's."""
    data = write_scene(tmp_path / "scene", images=3)
    shutil.copytree(tmp_path / "scene" / "images", tmp_path / "copies" / "fog@2")
    settings = {"model": f"{MODELS}:contrast_boxes", "data": data, "conditions": ["fog@2"], "engine": "local",
                "copies": str(tmp_path / "copies"), "out": str(tmp_path / "run")}  # fmt: skip
    run_it(make_config(settings))
    Run(tmp_path / "run").score()
    file = tmp_path / "scene" / "instances.json"
    content = json.loads(file.read_text())
    content["annotations"][0]["bbox"][0] += 1
    file.write_text(json.dumps(content))
    with pytest.raises(InvalidOption, match="is not the dataset of this run"):
        Run(tmp_path / "run").score()


def test_scores_of_a_submission_or_a_table_need_no_folder() -> None:
    plain = Scores("net", "set", None, {"AP": {"clean": 0.5}}, ("clean",))
    assert (plain.folder, plain.record, plain.p) == (None, None, 0.5)


def test_intervals_of_reliability_are_of_the_replicates_asked_for(make: Make) -> None:
    run = make("contrast_boxes")
    shutil.rmtree(run / "scores", ignore_errors=True)
    first = repr(Run(run).score(replicates=50).details["reliability"])
    assert repr(Run(run).score(replicates=60).details["reliability"]) != first
    assert repr(Run(run).score(replicates=50).details["reliability"]) == first


# Tables of another run


@pytest.mark.parametrize("kind", ["images", "50"])
def test_rejects_a_table_of_another_run(folder: Path, kind: str) -> None:
    """Sealed, of the same conditions and shape, and under the right name: only its key gives it away."""
    other = folder.parent / "other"
    settings = {"model": f"{MODELS}:only_when_clean", "conditions": ["contrast@2,fog@3"], "engine": "local",
                "data": Run(folder).record.dataset.spec, "chunk": 3, "out": str(other)}  # fmt: skip
    run_it(make_config(settings))
    right = Run(folder).score(replicates=50)
    Run(other).score(replicates=50)
    (mine,), (theirs,) = ([*(run / "scores").glob(f"*-{kind}.parquet")] for run in (folder, other))
    content = mine.read_bytes()
    shutil.copyfile(theirs, mine)
    verified = CliRunner().invoke(app, ["verify", str(folder)])
    assert verified.exit_code == 1
    assert f"holds the scores stored as {theirs.stem!r}, of another run" in " ".join(verified.stderr.split())
    assert same(Run(folder).score(replicates=50), right)
    assert mine.read_bytes() == content  # made again
    assert CliRunner().invoke(app, ["verify", str(folder)]).exit_code == 0


@pytest.mark.parametrize("kind", ["json", "images", "50"])
def test_verify_reports_changed_scores(folder: Path, kind: str) -> None:
    Run(folder).score(replicates=50)
    (path,) = (folder / "scores").glob("*.json" if kind == "json" else f"*-{kind}.parquet")
    content = path.read_bytes()
    path.write_bytes(content[:50] + bytes([content[50] ^ 1]) + content[51:])
    verified = CliRunner().invoke(app, ["verify", str(folder)])
    assert verified.exit_code == 1
    assert "is damaged: it is not what was written" in " ".join(verified.stderr.split())
    path.rename(path.with_name("0" * 24 + path.suffix))
    assert CliRunner().invoke(app, ["verify", str(folder)]).exit_code == 1


def test_scoring_removes_what_a_killed_command_left(folder: Path) -> None:
    Run(folder).score()
    (json_file,) = (folder / "scores").glob("*.json")
    left = json_file.with_name(f".{json_file.stem}-200.parquet.0123456789ab.tmp")
    left.write_bytes(b"half")
    Run(folder).score()
    assert not left.exists()


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_that_share_conditions_give_the_same_bytes(
    folder: Path, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def files() -> dict[str, bytes]:
        Run(folder).score(interval=True)
        found = {file.name: file.read_bytes() for file in (folder / FOLDER).iterdir()}
        shutil.rmtree(folder / FOLDER)
        return found

    usual = files()
    monkeypatch.setattr(os, "cpu_count", lambda: threads)
    assert files() == usual
    assert len(usual) == 3


def test_metrics_of_user_code_are_scored_in_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    assert scoring._threads() == 0
    first = next(iter(scoring.METRICS.values()))

    def own() -> None: ...

    monkeypatch.setitem(scoring.METRICS.declared, "own", replace(first, function=own))
    assert scoring._threads() == 1
