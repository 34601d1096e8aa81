"""The report and the leaderboard as a reader meets them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from helpers.hostile import SCRIPT
from helpers.visits import AXE

PAGES = ("report", "compare", "board", "entry")
_REACHED = """() => [...document.querySelectorAll(
  'a[href], button, select, input, summary, [tabindex="0"]')].filter(e => e.checkVisibility() && !e.disabled
  && e.getClientRects().length && !e.closest('[hidden]'))"""


@pytest.mark.parametrize("name", PAGES)
def test_nothing_goes_wrong_and_nothing_is_requested(visit: Any, name: str) -> None:
    assert visit(name).faults == []


@pytest.mark.parametrize("name", ["report", "compare", "entry"])
def test_every_chart_has_marks(visit: Any, name: str) -> None:
    page = visit(name).page
    marks = page.evaluate(
        """() => Object.fromEntries([...document.querySelectorAll('figure.chart')].map(f =>
        [f.dataset.figure, f.querySelectorAll('.plot [class*="mark-"] :is(path, line)').length]))"""
    )
    assert marks
    assert all(count > 0 for count in marks.values()), marks


def test_names_are_shown_as_text(visit: Any) -> None:
    page = visit("report").page
    assert SCRIPT in page.inner_text("#glance")
    assert page.locator("img[src=x]").count() == 0
    assert SCRIPT in visit("entry").page.inner_text("h1")


def test_intervals_of_the_decision_table_stay_on_one_line(visit: Any) -> None:
    cell = visit("report").page.locator('[data-table="decision"] td[data-label="clean"]').first
    assert cell.evaluate("cell => getComputedStyle(cell).whiteSpace") == "nowrap"


def test_the_report_is_at_most_8000_pixels_long(visit: Any) -> None:
    page = visit("report", width=1400).page
    assert page.evaluate("document.documentElement.scrollHeight") <= 8000


def test_a_link_opens_the_section_that_it_leads_to(visit: Any) -> None:
    page = visit("report").page
    assert not page.locator("#calibration").evaluate("part => part.open")
    page.locator('nav a[href="#calibration"]').click()
    assert page.locator("#calibration").evaluate("part => part.open")


def open_summary(page: Any) -> None:
    """Unfold the table of all numbers, below the one that decides."""
    page.locator('details:has([data-table="summary"]) > summary').first.click()


def test_tables_sort_by_keyboard(visit: Any) -> None:
    page = visit("report").page
    open_summary(page)
    table = page.locator('[data-table="summary"]')
    table.get_by_role("button", name="P", exact=True).focus()
    column = [c.strip() for c in table.locator("thead th").all_inner_texts()].index("P")

    def values() -> list[float]:
        return [float(t) for t in table.locator(f"tbody tr > :nth-child({column + 1})").all_inner_texts()]

    page.keyboard.press("Enter")
    assert values() == sorted(values(), reverse=True)
    page.keyboard.press("Enter")
    assert values() == sorted(values())
    assert table.locator("th[aria-sort]").count() == 1


def test_the_slider_changes_the_image(visit: Any) -> None:
    page = visit("report").page
    corrupted = page.locator("#browser .card").nth(1)
    page.locator("#b-level").focus()
    seen = set()
    for _ in range(5):
        seen.add(corrupted.locator("img").first.get_attribute("src"))
        page.keyboard.press("ArrowLeft")
    assert len(seen) == 4  # severities 3, 2 and 1, and clean, where it stays
    assert page.inner_text("#b-said") == "clean"
    assert corrupted.locator("svg path").count() > 0


def test_a_class_can_be_chosen(visit: Any) -> None:
    page = visit("report").page
    before = page.locator("#browser svg path").count()
    page.locator("#b-class").select_option(index=1)
    assert 0 < page.locator("#browser svg path").count() < before


def test_choices_redraw_a_chart(visit: Any) -> None:
    page = visit("report").page
    plot = page.locator('[data-figure="grid"] .plot')
    before = plot.inner_text()
    page.locator('[data-figure="grid"] select[data-pick="0"]').select_option("absolute")
    page.wait_for_function(
        "(old) => document.querySelector('[data-figure=grid] .plot').innerText !== old", arg=before
    )
    group = page.locator('[data-figure="corruptions"] select[data-group]')
    group.select_option("backbone")
    shown = "document.querySelector('[data-figure=corruptions] .plot').innerText"
    page.wait_for_function(f"() => {shown}.includes('contrast_masks')")


@pytest.mark.parametrize("name", PAGES)
def test_everything_can_be_reached_by_keyboard(visit: Any, name: str) -> None:
    page = visit(name).page
    count = page.evaluate(
        f"() => {{ window.all = ({_REACHED})(); window.met = new Set(); return all.length; }}"
    )
    for _ in range(count + 5):
        page.keyboard.press("Tab")
        page.evaluate("() => met.add(document.activeElement)")
    missed = page.evaluate("() => all.filter(e => !met.has(e)).map(e => e.outerHTML.slice(0, 120))")
    assert missed == []


@pytest.mark.parametrize("name", PAGES)
def test_fits_a_phone_without_scrolling_sideways(visit: Any, name: str) -> None:
    found = visit(name, width=390)
    assert found.page.evaluate("document.documentElement.scrollWidth") <= 390
    wide = found.page.evaluate(
        "() => [...document.querySelectorAll('.plot svg')].filter(s => s.getBoundingClientRect().width > 372)"
        ".map(s => s.closest('figure').dataset.figure)"
    )
    assert wide == []
    cut = found.page.evaluate(
        "() => [...document.querySelectorAll('.stacks')].map(t => t.parentElement)"
        ".filter(box => box.scrollHeight > box.clientHeight + 1 || box.scrollWidth > box.clientWidth + 1)"
        ".map(box => box.ariaLabel)"
    )
    assert cut == []  # a box that scrolls in a page that scrolls hides lines
    outside = found.page.evaluate(
        "() => [...document.querySelectorAll('.plot svg')]"
        ".filter(s => [...s.querySelectorAll('.role-legend text')].some(t =>"
        " t.getBoundingClientRect().right > s.getBoundingClientRect().right + 1))"
        ".map(s => s.closest('figure').dataset.figure)"
    )
    assert outside == []
    assert found.faults == []


@pytest.mark.parametrize("name", PAGES)
def test_dark_mode_leaves_nothing_light(visit: Any, name: str) -> None:
    page = visit(name, scheme="dark").page
    light = """() => { const bright = c => { const m = c.match(/[\\d.]+/g).map(Number);
      return (m.length < 4 || m[3] > 0) && (m[0] + m[1] + m[2]) / 3 > 128; };
      return [...document.querySelectorAll(
        'body, header, main, section, figure, .table, details, .card, thead th, select')]
        .filter(e => bright(getComputedStyle(e).backgroundColor)).map(e => e.outerHTML.slice(0, 80)); }"""
    assert page.evaluate(light) == []
    papers = page.evaluate(
        "() => [...document.querySelectorAll('.plot svg > rect')].map(r => r.getAttribute('fill'))"
    )
    assert all(paper == "#1c2228" for paper in papers)
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(251, 251, 250)"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_no_serious_fault(visit: Any, name: str, width: int, scheme: str) -> None:
    page = visit(name, width, scheme).page
    page.evaluate("() => document.querySelectorAll('details').forEach(d => { d.open = true; })")
    page.evaluate(AXE.read_text())
    found = page.evaluate("() => axe.run(document, { resultTypes: ['violations'] })")
    serious = [
        (fault["id"], fault["nodes"][0]["html"][:120], fault["nodes"][0]["failureSummary"][:300])
        for fault in found["violations"]
        if fault["impact"] in ("serious", "critical")
    ]
    assert serious == []


def test_printing_unfolds_everything(visit: Any) -> None:
    page = visit("report").page
    assert len(page.pdf()) > 10_000
    assert page.evaluate("() => [...document.querySelectorAll('details')].every(d => d.open)")


def test_figures_and_tables_can_be_saved(visit: Any, tmp_path: Path) -> None:
    page = visit("report").page
    open_summary(page)
    figure, table = '[data-figure="grid"]', '[data-table="summary"]'
    kinds = [(figure, kind) for kind in ("svg", "png", "csv")] + [
        (table, kind) for kind in ("csv", "tex", "md")
    ]
    for place, kind in kinds:
        with page.expect_download() as download:
            page.locator(f'{place} button[data-save="{kind}"]').click()
        path = tmp_path / download.value.suggested_filename
        download.value.save_as(path)
        assert path.suffix == f".{kind}"
        assert path.stat().st_size > 50


def test_the_leaderboard_filters(visit: Any) -> None:
    page = visit("board").page
    before = page.locator("tr[data-task]:visible").count()
    page.locator('[data-filter="badge"]').select_option("self-reported")
    assert page.locator("tr[data-task]:visible").count() == 2 < before
    assert page.inner_text("#count") == "2 entries"
