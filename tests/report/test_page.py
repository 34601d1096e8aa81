"""The page: one file, no request, hostile names as text."""

from __future__ import annotations

import base64
import gzip
import json
import re
import shutil
from html.parser import HTMLParser
from pathlib import Path

import pytest

from helpers.hostile import CONTROL, MARKDOWN, SCRIPT, TEMPLATE
from helpers.scenes import write_scene
from helpers.scored_models import MODELS
from helpers.toy_scores import toy_scores
from stormproof.core.text import plain
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.report.make import Options, make_report
from stormproof.report.page import page
from stormproof.report.view import make_view
from stormproof.results.run import Run


class Elements(HTMLParser):
    """Every element of a page, and the words of its visible part."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag

    def handle_data(self, data: str) -> None:
        if self._inside not in ("script", "style"):
            self.words += data


def blobs(text: str) -> list[str]:
    return re.findall(r'<script type="text/plain" class="blob">([^<]*)</script>', text)


@pytest.fixture(scope="module")
def written(runs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> str:
    out = tmp_path_factory.mktemp("page") / "report.html"
    make_report([str(runs["boxes"]), str(runs["masks"])], out, Options(images=2))
    return out.read_text(encoding="utf-8")


def test_a_page_requests_nothing_from_a_network(written: str) -> None:
    elements = Elements(written)
    links = [v for _, a in elements.found for k, v in a.items() if k in ("src", "href") and v]
    assert all(link.startswith(("#", "data:")) for link in links)
    policy = next(a["content"] for t, a in elements.found if a.get("http-equiv") == "Content-Security-Policy")
    assert "default-src 'none'" in str(policy)


def test_hostile_names_are_text(written: str) -> None:
    elements = Elements(written)
    assert SCRIPT in elements.words
    assert not any("onerror" in attrs for _, attrs in elements.found)
    own = [a for t, a in elements.found if t == "script" and a.get("type") != "text/plain"]
    assert len(own) == 1  # the page's own, and no other
    assert "alert(1)" not in re.sub(
        r"&lt;.*?&gt;", "", "".join(re.findall(r"<script>(.*?)</script>", written, re.S))
    )


def test_hostile_names_are_shown_unchanged() -> None:
    for name in (SCRIPT, TEMPLATE, MARKDOWN, CONTROL):
        text = page(make_view([toy_scores(name, tags={name: name}), toy_scores("other")]))
        assert plain(name) in Elements(text).words
        assert not any("onerror" in attrs for _, attrs in Elements(text).found)
        inside = [json.loads(gzip.decompress(base64.b64decode(blob))) for blob in blobs(text)]
        assert any(plain(name) in json.dumps(blob, ensure_ascii=False) for blob in inside)


def test_specifications_of_charts_hold_no_names() -> None:
    first, second = (page(make_view([toy_scores(name)])) for name in ("one", SCRIPT))
    specs = [
        [json.loads(gzip.decompress(base64.b64decode(b))).get("spec") for b in blobs(t)]
        for t in (first, second)
    ]
    assert specs[0] == specs[1]


def test_images_are_embedded_with_truth_and_predictions(written: str) -> None:
    packed = re.search(r'id="scenes">([^<]*)<', written)
    assert packed
    scenes = json.loads(gzip.decompress(base64.b64decode(packed[1])))
    browser = scenes["browser"]
    assert len(browser["images"]) == 2
    assert browser["corruptions"][0]["levels"] == [f"fog@{s}" for s in range(1, 6)]
    image = browser["images"][0]
    assert len(image["cells"]) == 11
    assert {thing["name"] for thing in image["truth"]} == {plain(TEMPLATE), plain(MARKDOWN)}
    assert len(image["cells"]["fog@3"]["found"]) == 2
    assert image["cells"]["clean"]["found"][1][0]["outline"].startswith("M")  # the second run has masks


def test_a_small_budget_drops_images_with_a_notice(runs: dict[str, Path], tmp_path: Path) -> None:
    whole, small = tmp_path / "whole.html", tmp_path / "small.html"
    make_report([str(runs["boxes"])], whole, Options(images=4))
    make_report([str(runs["boxes"])], small, Options(images=0))
    budget = (whole.stat().st_size + small.stat().st_size) / 2e6
    make_report([str(runs["boxes"])], small, Options(images=4, budget=budget))
    assert small.stat().st_size <= budget * 1e6 * 1.02
    assert "left out or lack conditions" in small.read_text()
    assert "left out or lack conditions" not in whole.read_text()


@pytest.mark.parametrize("interval", [True, False])
def test_without_the_dataset_the_page_says_what_it_lacks(tmp_path: Path, interval: bool) -> None:
    scene = write_scene(tmp_path / "scene", images=2)
    words = {"model": f"{MODELS}:contrast_boxes", "data": scene, "conditions": ["fog@3"], "engine": "local"}
    run(make_config({**words, "out": str(tmp_path / "run")}))
    Run(tmp_path / "run").score(interval=interval)
    shutil.rmtree(tmp_path / "scene")
    out = tmp_path / "report.html"
    make_report([str(tmp_path / "run")], out, Options())
    page = out.read_text()
    assert "The dataset was not found: these are stored scores" in page
    assert "Images are not shown" in page
    assert ("Intervals need the dataset" in page) != interval


def test_label_maps_are_painted(runs: dict[str, Path], tmp_path: Path) -> None:
    out = tmp_path / "maps.html"
    make_report([str(runs["maps"])], out, Options(images=1))
    packed = re.search(r'id="scenes">([^<]*)<', out.read_text())
    assert packed
    image = json.loads(gzip.decompress(base64.b64decode(packed[1])))["browser"]["images"][0]
    assert image["map"]
    assert image["cells"]["clean"]["maps"][0]
