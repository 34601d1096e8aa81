"""What the page is told: the run's own pixels, predictions and scores."""

from __future__ import annotations

import shlex
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest

from helpers.explorer import CONDITIONS, MODEL, TOKEN, Client
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, InvalidOption, RunError
from stormproof.datasets.opened import open_dataset
from stormproof.explore import app as served
from stormproof.explore.desk import Desk, Dropped, Turns
from stormproof.explore.judged import THRESHOLDS
from stormproof.explore.pictures import Shelf
from stormproof.explore.serve import Server
from stormproof.explore.storms import asked_condition, steps, usable_corruptions
from stormproof.explore.subject import explore_models, explore_runs, open_run
from stormproof.metrics.inputs import Objects
from stormproof.results.requirements import read_requirements
from stormproof.results.run import Run
from stormproof.results.scoring import iter_inputs


@pytest.fixture(scope="module")
def desk(folder: Path) -> Desk:
    made = Desk(explore_runs([folder], models=[MODEL]))
    made.exploration.make_scores()
    return made


def decoded(content: bytes) -> Any:
    return cv2.cvtColor(cv2.imdecode(np.frombuffer(content, np.uint8), cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)


@pytest.mark.parametrize("condition", ["clean", *CONDITIONS])
def test_a_stored_cell_shows_what_the_run_saw_and_predicted(
    client: Client, folder: Path, condition: str
) -> None:
    run = Run(folder)
    stored = run.predictions(condition)
    for index, image in enumerate(run.ids):
        pixels = decoded(client.ask("picture", image=index, condition=condition).body)
        assert np.array_equal(pixels, run.sample(image, condition).image)
        look = client.ask("look", image=index, condition=condition).json
        (answer,) = look["subjects"]
        assert answer["source"] == "stored"
        order = np.argsort(-stored[image].scores, kind="stable")
        assert [thing["score"] for thing in answer["found"]] == stored[image].scores[order].tolist()
        boxes = np.array([thing["box"] for thing in answer["found"]])
        np.testing.assert_allclose(boxes, stored[image].boxes[order], atol=0.005)
        names = [run.dataset.classes[label] for label in stored[image].labels[order]]
        assert [thing["name"] for thing in answer["found"]] == names


def test_the_live_model_predicts_what_the_run_stored(desk: Desk) -> None:
    (subject,) = desk.exploration.subjects
    condition = Condition.parse("fog@3")
    stored, _ = desk.prediction(subject, 2, condition)
    assert subject.live is not None
    assert stored is not None
    now = subject.live.predict(desk.exploration.sample(2, condition))
    np.testing.assert_allclose(now.boxes, stored.boxes)
    np.testing.assert_allclose(now.scores, stored.scores)


def test_a_severity_between_two_steps_is_computed_live(client: Client, folder: Path) -> None:
    look = client.ask("look", image=1, condition="fog@2.5").json
    assert look["subjects"][0]["source"] == "live"
    run = Run(folder)
    pixels = decoded(client.ask("picture", image=1, condition="fog@2.5").body)
    assert np.array_equal(pixels, run.sample(run.ids[1], "fog@2.5").image)


def test_a_run_folder_starts_no_code(folder: Path) -> None:
    (subject,) = explore_runs([folder]).subjects
    assert subject.live is None
    assert "--model" in subject.silent


def test_refuses_another_model_than_that_of_the_run(folder: Path) -> None:
    with pytest.raises(InvalidOption, match="not the model of any"):
        explore_runs([folder], models=[MODEL.replace("contrast_boxes", "contrast_masks")])


def test_without_the_model_the_slider_has_the_stored_steps(folder: Path) -> None:
    known = Desk(explore_runs([folder])).known_conditions()
    assert [step["condition"] for step in steps("fog", {}, known, live=False)] == ["fog@1", "fog@3"]
    live = steps("fog", {}, known, live=True)
    assert len(live) == 41
    assert live[15]["condition"] == "fog@2.5"


def test_images_are_listed_worst_first(desk: Desk, folder: Path) -> None:
    listed = desk.cell(0, Condition.parse("fog@3"), filters={}, score=0.3, first=0, count=10)
    expected = [loss for loss in Run(folder).worst(100) if loss.condition == "fog@3"]
    assert [row["rise"] for row in listed["images"]] == pytest.approx([loss.rise for loss in expected])
    assert listed["total"] == len(expected)


def test_tallies_agree_with_matched_boxes(desk: Desk, folder: Path) -> None:
    run = Run(folder)
    cells = dict(iter_inputs(run, None, ["clean", "fog@1"]))
    for text, cell in cells.items():
        assert isinstance(cell, Objects)
        tally = desk.tallies(0, Condition.parse(text))
        assert tally is not None
        hits = cell.located.score[cell.located.hit]
        assert tally["every"]["right"] == [int((hits >= t - 1e-9).sum()) for t in THRESHOLDS]
        by_class = tally["by_class"].values()
        for key in ("right", "wrong"):
            assert np.sum([each[key] for each in by_class], axis=0).tolist() == tally["every"][key]
    clean, fog = (desk.tallies(0, Condition.parse(text)) for text in cells)
    assert fog is not None
    assert fog["clean"] == clean


def test_counts_of_a_cell_are_the_sums_of_its_images(desk: Desk) -> None:
    """The columns of a cell and the objects of its images are counted by the same rule."""
    condition, score = Condition.parse("gaussian_noise@3"), 0.2
    listed = desk.cell(0, condition, filters={"fate": "lost"}, score=score, first=0, count=100)
    lost = {row["index"]: row["lost"] for row in listed["images"]}
    for index in range(desk.exploration.images):
        now, clean = (
            desk.look(index, each, lambda: None)["subjects"][0] for each in (condition, Condition())
        )
        gone = [k for k, at in clean["objects"].items() if at >= score and now["objects"][k] < score]
        assert len(gone) == lost.get(index, 0)


@pytest.mark.parametrize(
    "filters", [{"class": "cat"}, {"error": "missed"}, {"error": "background"}, {"slice": "count:all"}]
)
def test_filters_drop_images_and_repeat_none(desk: Desk, filters: dict[str, str]) -> None:
    if "slice" in filters:
        filters = {"slice": f"count:{desk.slices('count')['values'][0]}"}
    listed = desk.cell(0, Condition.parse("fog@3"), filters=filters, score=0.3, first=0, count=100)
    indices = [row["index"] for row in listed["images"]]
    assert len({*indices}) == len(indices) == listed["total"] <= 6


def test_the_map_equals_the_reports_with_intervals(client: Client, folder: Path) -> None:
    for _ in range(100):
        answer = client.ask("map").json
        if not answer["waiting"]:
            break
    scores = Run(folder).score(interval=True, keep=False)
    (grid, loose) = answer["figures"]
    row = next(r for r in grid["rows"] if r["condition"] == "fog@3" and r["pick"] == ["relative to clean"])
    headline = scores.headline
    assert row["v"] == pytest.approx(100 * scores.score(headline, "fog@3") / scores.score(headline))
    assert row["low"] <= row["v"] <= row["high"]
    assert {r["condition"] for r in loose["rows"]} == {"contrast[factor=0.3]", "clean"}


def test_exploring_writes_nothing_into_the_run(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / "scores", ignore_errors=True)

    def content() -> dict[str, tuple[int, int]]:
        return {str(p): (p.stat().st_mtime_ns, p.stat().st_size) for p in sorted(copy.rglob("*"))}

    before = content()
    desk = Desk(explore_runs([copy], models=[MODEL]))
    desk.exploration.make_scores()
    assert desk.map("")["figures"]
    desk.progress()
    desk.look(0, Condition.parse("fog@3"), lambda: None)
    desk.tallies(0, Condition.parse("fog@3"))
    assert content() == before


def test_shows_kept_scores_at_once_and_adds_intervals_later(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / "scores", ignore_errors=True)
    run = Run(copy)
    run.score()
    (subject,) = explore_runs([copy]).subjects
    shown = []
    assert subject.run is not None
    score = subject.run.score
    subject.run.score = lambda **given: shown.append(subject.scores) or score(**given)  # type: ignore[func-returns-value, method-assign]
    subject.make_scores()
    nothing, plain = shown
    assert nothing is None
    assert plain is not None
    assert plain.replicates is None
    assert not subject.awaits_scores
    run.score(interval=True)
    desk = Desk(explore_runs([copy]))
    desk.prepare()
    assert not desk.progress()["waiting"]
    assert desk.map("")["figures"]


def test_shows_the_finished_part_of_a_run(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    shutil.rmtree(copy / "scores", ignore_errors=True)
    last = sorted((copy / "parts").glob("*.parquet"))[-1]
    kept = last.rename(tmp_path / last.name)
    assert len(open_run(copy).readable) == 4
    desk = Desk(explore_runs([copy], models=[MODEL]))
    desk.exploration.make_scores()
    now = desk.progress()
    assert now["runs"] == [{"done": 4 * 6, "of": 6 * 6}]
    assert now["images"] == [4]
    assert desk.map("")["figures"]
    assert desk.cell(0, Condition.parse("fog@3"), filters={}, score=0.3, first=0, count=9)["total"] == 4
    kept.rename(last)  # the run goes on
    desk.progress()
    assert desk.progress()["images"] == [6]
    assert desk.progress()["runs"] == [None]


def test_a_complete_run_keeps_its_scores_while_another_grows(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "run"
    shutil.copytree(folder, copy)
    last = sorted((copy / "parts").glob("*.parquet"))[-1]
    kept = last.rename(tmp_path / last.name)
    desk = Desk(explore_runs([folder, copy]))
    desk.exploration.make_scores()
    whole, part = desk.exploration.subjects
    kept.rename(last)  # the run goes on
    desk.progress()
    assert desk.exploration.subjects[0] is whole
    assert whole.scores is not None
    assert desk.exploration.subjects[1] is not part


def test_threads_that_ask_at_once_score_a_run_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when another run grows before the first scores are there."""
    (subject,) = explore_runs([folder]).subjects
    score, asked = Run.score, []

    def slow(run: Run, **options: Any) -> Any:
        if run is subject.run:  # not of a desk of another test, which may still compute
            asked.append(options)
        time.sleep(0.1)
        return score(run, **options)

    monkeypatch.setattr(Run, "score", slow)
    with ThreadPoolExecutor(2) as threads:
        for _ in range(2):
            threads.submit(subject.make_scores)
    assert [options["interval"] for options in asked if "interval" in options] == [True]


FAILING = """
def fails(images):
    raise ValueError("out of memory")

fails.classes = ("cat",)
"""


def test_answers_with_the_message_of_a_model_that_fails(data: str, tmp_path: Path) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    server = Server(explore_models([f"{tmp_path}/failing.py:fails"], data), token=TOKEN)
    server.start()
    answer = Client(server.port).ask("look", image=0, condition="fog@3")
    server.stop()
    assert answer.status == 400
    assert answer.json == {"error": "The model failed: out of memory"}


def test_answers_why_charts_cannot_be_drawn(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def without_memory() -> str:
        raise RunError("Charts cannot be drawn: free memory.")

    monkeypatch.setattr(served, "charting_script", without_memory)
    monkeypatch.setattr(served, "charting", cache(served.charting.__wrapped__))
    server = Server(explore_runs([folder]), token=TOKEN)
    server.start()
    answer = Client(server.port).get(f"/{TOKEN}/vega.js")
    server.stop()
    assert (answer.status, answer.body) == (503, b"Charts cannot be drawn: free memory.")


def test_models_without_a_run_predict_live(data: str) -> None:
    desk = Desk(explore_models([MODEL], data))
    assert desk.session()["subjects"][0]["live"]
    look = desk.look(0, Condition.parse("fog@2.5"), lambda: None)
    assert look["subjects"][0]["source"] == "live"
    assert desk.map("")["figures"] == []
    assert desk.cell(0, Condition(), filters={}, score=0.3, first=0, count=10)["total"] == 6
    line = desk.acts(0, 0, Condition.parse("fog@3"), {})["run"]
    assert shlex.split(line)[:4] == ["stormproof", "run", "--model", MODEL]


def test_the_gate_reads_a_copied_requirement(client: Client, tmp_path: Path) -> None:
    made = client.ask("acts", image=0, condition="fog@3", metric="AP50", bound="at_least", threshold=0.4).json
    path = tmp_path / "requirements.yaml"
    path.write_text(made["requirement"])
    (read,) = read_requirements(path)
    assert (read.metric, read.condition, read.bound, read.threshold) == ("AP50", "fog@3", "at_least", 0.4)
    assert "AP50 under fog@3 at least 0.4" in made["verdict"]


def test_a_loss_is_shown_with_both_of_its_scores(client: Client, folder: Path) -> None:
    asked = {"metric": "AP50", "bound": "at_most_loss", "threshold": 0.4}
    told = client.ask("acts", image=0, condition="fog@3", **asked).json["verdict"]
    scores = Run(folder).score(interval=True)
    clean, here = scores.score("AP50"), scores.score("AP50", "fog@3")
    assert f", {clean - here:.4f} [" in told
    assert told.endswith(f". AP50 clean {clean:.4f}, under fog@3 {here:.4f}.")


def test_copied_python_shows_the_same_view(client: Client, folder: Path) -> None:
    made = client.ask("acts", image=3, condition="fog@3").json
    scope: dict[str, Any] = {}
    exec(made["python"], scope)
    stored = Run(folder).predictions("fog@3")[Run(folder).ids[3]]
    assert np.array_equal(scope["prediction"].boxes, stored.boxes)


def test_what_is_drawn_can_be_saved_as_a_table(client: Client) -> None:
    lines = client.ask("table", image=0, condition="fog@3").body.decode().splitlines()
    assert lines[0].startswith("image,condition,model,what,class,score,verdict")
    assert sum(",truth," in line for line in lines) == 2
    assert sum(",prediction," in line for line in lines) == 30


def test_runs_on_other_pixels_are_refused(folder: Path, data: str, tmp_path: Path) -> None:
    from stormproof.engine.config import make_config
    from stormproof.engine.run import run

    other = {"model": MODEL, "data": data, "engine": "local", "out": str(tmp_path / "b"), "seed": 1}
    run(make_config({**other, "conditions": ["fog@1"], "limit": 2}))
    with pytest.raises(InvalidOption, match="same pixels"):
        explore_runs([folder, tmp_path / "b"])


def test_an_older_request_of_a_page_is_dropped() -> None:
    turns = Turns()
    first = turns.begin("page", 1)
    first()
    turns.begin("page", 2)()
    turns.begin("other page", 1)()
    with pytest.raises(Dropped):
        first()


def test_the_cache_of_images_stays_within_its_bytes() -> None:
    shelf = Shelf(1000)
    for k in range(100):
        shelf.put((k,), bytes(100))
    assert sum(shelf.get((k,)) is not None for k in range(100)) == 10
    assert shelf.get((99,)) is not None


@pytest.mark.parametrize(
    "text",
    [
        "frost@3[textures=/etc]",
        'frost@3[textures="../../secret"]',
        "style@3[styles=/etc/passwd]",
        "fog@3+frost@3[textures=/etc]",
    ],
)
def test_a_condition_that_names_a_file_is_refused(text: str) -> None:
    with pytest.raises((InvalidCondition, LookupError)):
        asked_condition(text, ())
    with pytest.raises(InvalidCondition):
        asked_condition("fog@3[" + "a" * 1000 + "=1]", ())


def test_a_run_without_starlette_says_how_to_get_it(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    from stormproof.core.errors import MissingExtra

    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(MissingExtra, match=r"explore\]"):
        Run(folder).explore()


def test_a_run_without_its_model_offers_its_composed_conditions() -> None:
    known = ["clean", "fog@1", "fog@3", "fog@1+night@3", "fog@3+night@3", "rain@2+night[lux=5]"]
    alone = steps("fog", {}, known, live=False)
    assert [each["condition"] for each in alone] == ["fog@1", "fog@3"]
    night = steps("fog", {}, known, live=False, top=Condition.parse("night@3"))
    assert [each["condition"] for each in night] == ["fog@1+night@3", "fog@3+night@3"]
    assert [each["severity"] for each in night] == [1, 3]
    lit = steps("rain", {}, known, live=False, top=Condition.parse("night[lux=5]"))
    assert [each["condition"] for each in lit] == ["rain@2+night[lux=5]"]
    dataset = open_dataset("world:test,size=96x60,count=2")
    offered = {each["name"]: each["stored"] for each in usable_corruptions(dataset, known)}
    assert offered["rain"] == ["rain@2+night[lux=5]"]
    assert offered["fog"] == ["fog@1", "fog@3", "fog@1+night@3", "fog@3+night@3"]
    assert next(iter(offered)) == "fog"


def test_a_verdict_on_viewed_images_is_called_a_preview(client: Client) -> None:
    made = client.ask("acts", subject=0, image=0, condition="fog@3", metric="AP", threshold="0.2").json
    assert "no evidence" in made["peeking"]
    assert "looked at" in made["requirement"].splitlines()[0]
    assert "peeking" not in client.ask("acts", subject=0, image=0, condition="fog@3").json
