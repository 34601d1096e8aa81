"""`stormproof explore` as its user meets it: every part of the page in a real browser."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
import pytest

from helpers.explore_desk import BOXES, map_run
from helpers.hostile import SCRIPT, TEMPLATE
from helpers.scenes import write_scene

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
SIZES = [(1400, "light"), (1400, "dark"), (400, "light"), (400, "dark")]


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_map_opens_cells_by_mouse_and_by_keyboard(desk: Any, width: int, scheme: str) -> None:
    opened = desk(width, scheme)
    page = opened.page
    assert SCRIPT in page.inner_text("#title")
    plot = page.locator(".map .plot").first
    plot.focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    words = page.inner_text("#map-words")
    assert "% of the clean" in words
    assert "95 %" in words
    page.keyboard.press("Enter")
    condition = words.rpartition(", ")[2].partition(":")[0]
    page.wait_for_selector(f'html[data-cell="{condition}"]', state="attached")
    opened.wait_for_look(condition)
    assert page.locator("#condition").input_value() == condition
    frame = page.locator(".cursor").first.bounding_box()
    plot.scroll_into_view_if_needed()
    frame = page.locator(".cursor").first.bounding_box()
    page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] / 2)
    page.wait_for_selector("#vg-tooltip-element.visible")
    assert "95 %, low" in page.inner_text("#vg-tooltip-element")
    keys = page.locator("#vg-tooltip-element td.key").all()
    assert all(key.evaluate("e => e.clientHeight > 10 && e.scrollWidth <= e.clientWidth") for key in keys)
    before = page.evaluate("scrollY")
    page.mouse.click(frame["x"] + frame["width"] / 2, frame["y"] - 0.5 * frame["height"])  # the row above
    page.wait_for_function("(old) => document.documentElement.dataset.cell !== old", arg=condition)
    assert width < 1100 or page.evaluate("scrollY") == before  # the map stays for the next click
    page.mouse.move(0, 0)  # the tooltip goes
    opened.require_no_findings()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_images_come_worst_first_and_can_be_filtered(
    desk: Any, runs: list[Path], width: int, scheme: str
) -> None:
    from stormproof.results.run import Run

    opened = desk(width, scheme, state="cell=gaussian_noise@5&at=gaussian_noise@5&score=0.05")
    page = opened.page
    worst = next(loss for loss in Run(runs[0]).worst(500) if loss.condition == "gaussian_noise@5")
    first = page.locator(".thumb").first
    assert worst.image in first.inner_text()
    assert f"→ {100 * worst.error:.0f} %" in first.inner_text()
    assert "12 images under gaussian_noise@5, worst first" in page.inner_text("#cell-words")
    page.select_option("#f-fate", "lost")
    page.wait_for_function(
        "() => document.querySelector('#cell-words').textContent.includes('with lost objects, most first')"
    )
    assert "lost" in page.locator(".thumb").first.inner_text()
    page.select_option("#f-fate", "")
    page.select_option("#f-error", "background")
    page.wait_for_function("() => /background/.test(document.querySelector('.thumb .lost')?.textContent)")
    page.select_option("#f-error", "")
    page.select_option("#f-attribute", "count")
    page.wait_for_selector("#f-slice:visible")
    page.select_option("#f-class", label=TEMPLATE)
    page.wait_for_function("() => /images? under/.test(document.querySelector('#cell-words').textContent)")
    assert page.locator("#trouble").is_hidden()
    opened.require_no_findings()


def test_the_first_look_lists_the_images_that_the_microscope_shows(desk: Any) -> None:
    opened = desk()
    page = opened.page
    shown = page.locator("#condition").input_value()
    assert shown != "clean"
    opened.wait_for_look(shown)
    page.select_option("#condition", "fog@1")
    page.click("#reset")
    page.wait_for_function("(text) => document.querySelector('#condition').value === text", arg=shown)


def test_a_narrow_map_keeps_severities_across_and_the_lowest_first(
    desk: Any, served: Callable[..., str], runs: list[Path]
) -> None:
    page = desk(at=served(runs[:1], (BOXES,))).page
    axes = page.evaluate("""async () => {
      const { figures: [{ kind, spec, rows }] } = await (await fetch('ask/map')).json();
      const { layer: [{ encoding: { x, y } }] } = stormproof.sizing.sized(kind, spec, rows, 480);
      return [x.title, x.sort, y.title, y.sort]; }""")
    assert axes == ["severity", "ascending", "corruption", None]  # None: in the order of the rows


def test_the_selected_bound_of_a_requirement_fits_its_field(desk: Any) -> None:
    page = desk(state="cell=fog@3&at=fog@3").page
    page.click("#acts summary")
    page.select_option("#r-bound", "at_most_loss")
    needed = page.locator("#r-bound").evaluate("""(field) => {
      const pen = document.createElement('canvas').getContext('2d');
      pen.font = getComputedStyle(field).font;
      return pen.measureText(field.selectedOptions[0].textContent).width; }""")
    assert page.locator("#r-bound").bounding_box()["width"] > needed
    assert "minus" in page.locator("#r-bound option:checked").inner_text()


def test_labels_end_at_the_edge_of_the_picture(desk: Any) -> None:
    page = desk(state="cell=gaussian_noise@3&at=gaussian_noise@3&score=0.01").page
    edges = page.evaluate("""() => [...document.querySelectorAll('.view')].flatMap((view) =>
      [...view.querySelectorAll('svg text')].filter((text) => text.getAttribute('text-anchor') === 'end')
        .map((text) => view.getBoundingClientRect().right - text.getBoundingClientRect().right))""")
    assert edges
    assert min(edges) >= 0


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_hundred_thousand_images_scroll(desk: Any, width: int, scheme: str) -> None:
    opened = desk(width, scheme, state="cell=fog@1&at=fog@1")
    page = opened.page

    def many(route: Any) -> None:
        first = int(route.request.url.partition("first=")[2].partition("&")[0])
        numbers = {"error": 0.5, "clean": 0.1, "rise": 0.4}
        rows = [
            {"index": k % 12, "id": f"image {k}", "raw": f"image {k}", **numbers}
            for k in range(first, min(first + 60, 100_000))
        ]
        route.fulfill(json={"total": 100_000, "first": first, "images": rows})

    page.route("**/ask/cell?*", many)
    page.select_option("#condition", "fog@2")
    page.wait_for_function("() => document.querySelector('#cell-words').textContent.startsWith('100000')")
    page.evaluate(
        "() => { const list = document.querySelector('#list'); list.scrollTop = list.scrollHeight; }"
    )
    page.wait_for_function("() => [...document.querySelectorAll('.thumb')].at(-1).title === 'image 99999'")
    assert page.locator(".thumb").count() < 60
    page.evaluate("() => { document.querySelector('#list').scrollTop /= 2; }")
    page.wait_for_function(
        "() => Math.abs(Number(document.querySelector('.thumb').title.slice(6)) - 50000) < 100"
    )


@pytest.mark.parametrize("condition", ["fog@3", "contrast[factor=0.3]", "gaussian_noise@5"])
def test_a_stored_cell_is_drawn_as_the_run_has_it(desk: Any, runs: list[Path], condition: str) -> None:
    from stormproof.results.run import Run

    opened = desk(state=f"cell={condition}&at={condition}&image=2&score=0.2&truth=0")
    opened.wait_for_look(condition)
    for place, folder in enumerate(runs):
        run = Run(folder)
        image = run.ids[2]
        for text in ("clean", condition):
            assert np.array_equal(opened.pixels(text), run.sample(image, text).image)
            stored = run.predictions(text)[image]
            expected = sorted((float(s) for s in stored.scores if s >= 0.2), reverse=True)
            drawn = [float(each["score"]) for each in opened.drawn(text, place)]
            assert drawn == pytest.approx(expected, abs=1e-12)
    assert "as the run predicted" in opened.page.inner_text("#source")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_slider_asks_the_model_between_severities(
    desk: Any, runs: list[Path], width: int, scheme: str
) -> None:
    from stormproof.results.run import Run

    opened = desk(width, scheme, state="cell=gaussian_noise@2&at=gaussian_noise@2&image=4")
    page = opened.page
    page.locator("#severity").focus()
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    opened.wait_for_look("gaussian_noise@2.5")
    assert "dB" in page.inner_text("#unit")
    assert "asked just now" in page.inner_text("#source")
    run = Run(runs[0])
    assert np.array_equal(
        opened.pixels("gaussian_noise@2.5"), run.sample(run.ids[4], "gaussian_noise@2.5").image
    )
    page.click("#fields-box summary")
    page.fill('[data-field="sigma"]', "0.05")
    page.keyboard.press("Tab")
    page.wait_for_function("() => document.documentElement.dataset.look.includes('sigma=0.05')")
    page.select_option("#top", "contrast")
    page.wait_for_function("() => document.documentElement.dataset.look.endsWith('+contrast@3')")
    page.select_option("#top-level", "1")
    page.wait_for_function("() => document.documentElement.dataset.look.endsWith('+contrast@1')")
    text = "gaussian_noise@2.5[sigma=0.05]+contrast@1"
    assert np.array_equal(opened.pixels(text), run.sample(run.ids[4], text).image)
    page.select_option("#top", "")
    page.select_option("#condition", "gaussian_noise@3")
    opened.wait_for_look("gaussian_noise@3")
    assert page.locator('[data-field="sigma"]').input_value() == ""  # the ladder would ask for it
    page.click("#clean")
    opened.wait_for_look("clean")
    page.select_option("#corruption", "fog")
    page.wait_for_function("() => document.documentElement.dataset.look.includes('fog@')")
    opened.require_no_findings()


def test_only_the_newest_slider_position_is_drawn(desk: Any) -> None:
    opened = desk(state="cell=fog@1&at=fog@1&image=0")
    page = opened.page
    page.evaluate("""() => { const slider = document.querySelector('#severity');
      for (let k = 0; k <= 40; k += 1) { slider.value = k; slider.dispatchEvent(new Event('input')); } }""")
    opened.wait_for_look("fog@5")
    page.wait_for_timeout(300)
    assert page.evaluate("document.documentElement.dataset.look") == "0 fog@5"
    assert page.evaluate("performance.getEntriesByName('picture shown').length") < 20
    assert opened.faults == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_changing_thresholds_and_classes_redraws_at_once(
    desk: Any, runs: list[Path], width: int, scheme: str
) -> None:
    from stormproof.core.condition import Condition
    from stormproof.explore.desk import Desk as Answers
    from stormproof.explore.subject import explore_runs

    opened = desk(width, scheme, state="cell=fog@2&at=fog@2&image=3&score=0.1")
    page = opened.page
    page.wait_for_function("() => document.querySelectorAll('#counts tbody tr').length === 6")
    opened.require_no_findings()
    answers = Answers(explore_runs(runs))
    tally = answers.tallies(0, Condition.parse("fog@2"))
    assert tally is not None
    for score in ("0.1", "0.3", "0.6"):
        page.locator("#score").fill(score)
        at = round(100 * float(score))
        every = tally["every"]
        right, wrong = every["right"][at], every["wrong"][at]
        assert opened.counts(2)[:4] == [
            str(n) for n in (every["objects"], right, every["objects"] - right, wrong)
        ]
        assert opened.counts(1)[1] == str(tally["clean"]["every"]["right"][at])
        by_class = page.locator("#by-class tbody tr").all()
        assert sum(int(row.locator("td").nth(4).inner_text()) for row in by_class) == wrong
        shown = [each for each in opened.drawn("fog@2") if "score" in each]
        assert all(float(each["score"]) >= float(score) for each in shown)
        found = int(opened.counts(0)[1]) + int(opened.counts(0)[3])
        assert found == len(shown)  # nothing of these scenes is a crowd
    before = opened.counts(2)[0]
    page.locator("#class").select_option(index=1)
    assert int(opened.counts(2)[0]) < int(before)


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_a_wipe_compares_two_models_on_the_same_pixels(desk: Any, width: int, scheme: str) -> None:
    opened = desk(width, scheme, state="cell=fog@3&at=fog@3&image=1")
    page = opened.page
    assert page.locator("#pictures .of").count() == 2
    page.click("#wipe-mode")
    page.wait_for_selector(".view.wiped .edge")
    page.locator("#wipe").focus()
    page.keyboard.press("Home")
    assert page.locator(".over").first.evaluate("e => e.style.clipPath") == "inset(0px 0px 0px 0%)"
    page.keyboard.press("End")
    assert "100%" in page.locator(".over").first.evaluate("e => e.style.clipPath")
    opened.require_no_findings()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_the_ladder_shows_where_each_object_is_lost(desk: Any, width: int, scheme: str) -> None:
    opened = desk(width, scheme, state="cell=gaussian_noise@1&at=gaussian_noise@1&image=0&score=0.1")
    page = opened.page
    page.click("#break")
    page.wait_for_selector('#ladder[data-done="9/9"]')
    rows = page.locator("#ladder tbody tr")
    assert rows.count() == 2
    for text in rows.all_inner_texts():
        assert any(words in text for words in ("lost from", "never found", "kept"))
    assert "left at severity 5" in page.inner_text("#ladder .note")
    opened.require_no_findings()
    page.click("#next")
    page.wait_for_function("() => !document.querySelector('#ladder').children.length")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_copies_requirements_and_commands_for_the_cell_in_view(
    desk: Any, runs: list[Path], tmp_path: Path, width: int, scheme: str
) -> None:
    from stormproof.datasets.attributes import read_attribute
    from stormproof.datasets.chosen import with_chosen
    from stormproof.results.run import Run

    opened = desk(
        width, scheme, state="cell=fog@3&at=fog@3&image=5", permissions=["clipboard-read", "clipboard-write"]
    )
    page = opened.page
    page.click("#acts summary")
    page.wait_for_selector('[data-copy="requirement"]')
    page.select_option("#r-metric", "AP50")
    page.fill("#r-threshold", "0.25")
    page.wait_for_function(
        "() => document.querySelector('[data-copy=requirement]').textContent.includes('0.25')"
    )
    assert "AP50 under fog@3 at least 0.25" in page.inner_text("#verdict")
    assert "a preview and no evidence" in page.inner_text("#peeking")
    page.get_by_role("button", name="Copy Requirement").click()
    page.wait_for_function("() => document.querySelector('#said').textContent === 'Requirement copied'")
    assert "at_least: 0.25" in page.evaluate("navigator.clipboard.readText()")
    assert "--conditions fog@3" in page.inner_text('[data-copy="run"]')
    assert "stormproof corrupt" in page.inner_text('[data-copy="corrupt"]')
    page.click("#mark")
    page.wait_for_function(
        "() => document.querySelector('[data-copy=run]').textContent.endsWith('--images ids.txt')"
    )
    opened.require_no_findings()
    saved = {}
    for button in ("#save-png", "#save-csv", "#save-marks", "#save-slice"):
        with page.expect_download() as download:
            page.click(button)
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        saved[button] = path
    assert saved["#save-png"].read_bytes().startswith(b"\x89PNG")
    assert "prediction" in saved["#save-csv"].read_text()
    image = saved["#save-marks"].read_text().strip()
    whole = Run(runs[0]).dataset
    assert list(with_chosen(whole, only=str(saved["#save-marks"])).ids) == [image]
    assert read_attribute(whole, str(saved["#save-marks"]), range(12)).values.count("listed") == 1
    assert saved["#save-slice"].read_text() == f"image,marked\n{image},yes\n"
    page.click("#copy-link")
    page.wait_for_function("() => document.querySelector('#said').textContent === 'Link copied'")
    again = page.evaluate("navigator.clipboard.readText()")
    opened.open(again)
    opened.wait_for_look("fog@3")
    assert page.inner_text("#image-name") == image
    page.click("#reset")
    page.wait_for_function(
        "() => document.querySelector('#said').textContent === 'Everything as at the start'"
    )
    assert opened.faults == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_everything_works_by_keyboard(desk: Any, width: int, scheme: str) -> None:
    opened = desk(width, scheme, state="cell=fog@3&at=fog@3")
    page = opened.page
    opened.wait_for_look("fog@3")
    page.locator("#main").focus()
    first = page.inner_text("#image-name")
    page.keyboard.press("ArrowRight")
    page.wait_for_function("(old) => document.querySelector('#image-name').textContent !== old", arg=first)
    page.keyboard.press("ArrowLeft")
    page.wait_for_function("(old) => document.querySelector('#image-name').textContent === old", arg=first)
    page.keyboard.press("ArrowUp")
    opened.wait_for_look("fog@3.5")
    page.keyboard.press("ArrowDown")
    opened.wait_for_look("fog@3")
    page.keyboard.press("c")
    opened.wait_for_look("clean")
    page.keyboard.press("c")
    opened.wait_for_look("fog@3")
    page.keyboard.press("w")
    page.wait_for_selector(".view.wiped")
    page.keyboard.press("m")
    assert page.inner_text("#marks") == "1 image marked"
    page.keyboard.press("b")
    page.wait_for_selector('#ladder[data-done="9/9"]')
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    opened.require_no_findings()
    page.keyboard.press("r")
    page.wait_for_function("() => !location.hash.includes('mode')")


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_shows_the_finished_part_of_a_run_in_progress(
    desk: Any, served: Any, runs: list[Path], tmp_path: Path, width: int, scheme: str
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(runs[1], copy)
    last = sorted((copy / "parts").glob("*.parquet"))[-1]
    kept = last.rename(tmp_path / last.name)
    link = served([copy], ())
    opened = desk(width, scheme, at=link, state="cell=fog@3&at=fog@3&image=0")
    page = opened.page
    assert "running: 96 of 144 cells (66 %); 8 images shown" in page.inner_text("#progress")
    assert page.locator(".map").count() > 0
    assert "8 images under fog@3" in page.inner_text("#cell-words")
    kept.rename(last)  # the run goes on
    page.wait_for_function("() => document.querySelector('#cell-words').textContent.startsWith('12 images')")
    page.wait_for_function("() => document.querySelector('#progress').textContent === ''")
    opened.require_no_findings()


def test_says_that_the_server_has_stopped_only_if_it_does_not_answer(
    desk: Any, served: Any, runs: list[Path], tmp_path: Path
) -> None:
    copy = tmp_path / "run"
    shutil.copytree(runs[1], copy)
    sorted((copy / "parts").glob("*.parquet"))[-1].unlink()  # so that the page asks for progress
    link = served([copy], ())
    state = "cell=fog@3&at=fog@3&image=0"
    refused = desk(1400, "light", at=link, state=state).page
    refused.route("**/ask/progress*", lambda route: route.fulfill(status=400, json={"error": "No run.json."}))
    refused.wait_for_function("() => document.querySelector('#progress').textContent === 'No run.json.'")
    lost = desk(1400, "light", at=link, state=state).page
    lost.route("**/ask/progress*", lambda route: route.abort())
    lost.wait_for_function("() => document.querySelector('#progress').textContent.includes('has stopped')")


def test_the_microscope_works_without_a_run(desk: Any, served: Any, tmp_path: Path) -> None:
    names = ["<img src=x onerror=alert(1)>", "`$(touch x)`;'\""]
    for name in names:
        PIL.Image.new("RGB", (128, 96), "grey").save(tmp_path / f"{name}.png")
    opened = desk(at=served([], ("builtin:street-plain",), f"images:{tmp_path}"))
    page = opened.page
    assert page.locator("#storm").is_hidden()
    assert all(name in page.inner_text("#list") for name in names)
    page.select_option("#corruption", "fog")
    opened.wait_for_look("fog@3")
    assert "asked just now" in page.inner_text("#source")
    assert opened.faults == []


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_without_its_model_the_slider_snaps_to_stored_cells(
    desk: Any, served: Any, runs: list[Path], width: int, scheme: str
) -> None:
    opened = desk(width, scheme, at=served([runs[1]], ()), state="cell=fog@1&at=fog@1")
    page = opened.page
    assert page.locator("#severity").get_attribute("max") == "4"
    page.locator("#severity").focus()
    page.keyboard.press("ArrowRight")
    opened.wait_for_look("fog@2")
    assert "as the run predicted" in page.inner_text("#source")
    opened.require_no_findings()


@pytest.mark.parametrize(("width", "scheme"), SIZES)
def test_label_maps_are_counted_by_pixels(
    desk: Any, served: Any, tmp_path_factory: pytest.TempPathFactory, width: int, scheme: str
) -> None:
    from stormproof.core.condition import Condition
    from stormproof.explore.desk import Desk as Answers
    from stormproof.explore.subject import explore_runs

    folder, model = map_run(tmp_path_factory.mktemp("maps"))
    opened = desk(width, scheme, at=served([folder], (model,)), state="cell=fog@3&at=fog@3&image=1")
    page = opened.page
    page.wait_for_function("() => document.querySelectorAll('#counts tbody tr').length === 3")
    answers = Answers(explore_runs([folder]))
    (seen,) = answers.look(1, Condition.parse("fog@3"), lambda: None)["subjects"]
    tally = answers.tallies(0, Condition.parse("fog@3"))
    assert tally is not None
    for line, held in ((1, seen["pixels"]), (2, tally["pixels"])):
        shown = [f"{held['pixels']:,}", f"{held['wrong']:,}"]
        assert opened.counts(line)[:2] == shown
        assert opened.counts(line)[3] == f"{100 * held['iou']:.1f} %"
    shown_classes = {name for name, held in seen["pixels"]["classes"].items() if held["pixels"]}
    assert page.locator("#by-class tbody tr").count() == len(shown_classes)
    page.click("#break")
    page.wait_for_selector('#ladder[data-done="9/9"]')
    assert "of the clean IoU left" in page.inner_text("#ladder .note")
    assert page.locator("#score").is_hidden()
    opened.require_no_findings()


def test_a_composed_cell_of_a_run_without_its_model_is_shown(desk: Any, served: Any, tmp_path: Path) -> None:
    from stormproof.engine.config import make_config
    from stormproof.engine.run import run

    scene = write_scene(tmp_path / "scene", images=3, size=(96, 128))
    run(make_config({"model": BOXES, "data": scene, "engine": "local", "out": str(tmp_path / "run"),
                     "conditions": ["fog@1,fog@1+contrast@2,fog@3+contrast@2"]}))  # fmt: skip
    opened = desk(at=served([tmp_path / "run"], ()), state="cell=fog@1%2Bcontrast@2&at=fog@1%2Bcontrast@2")
    page = opened.page
    assert page.locator("#top").input_value() == "contrast"
    assert page.locator("#top").is_disabled()
    page.locator("#severity").focus()
    page.keyboard.press("ArrowRight")
    opened.wait_for_look("fog@3+contrast@2")
    assert "as the run predicted" in page.inner_text("#source")
    assert opened.faults == []
