"""The registry: laziness, precedence, and packages whose entry points cannot be loaded."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import tomllib
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from stormproof import extend
from stormproof.core import extensions, registry
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.extensions import POINTS, ExtensionPoint
from stormproof.core.registry import Registry, declares_anything

ROOT = Path(__file__).resolve().parents[2]
POINT = ExtensionPoint("stormproof.tests", "hat", "hats", "a hat", "hat.md")


@pytest.fixture
def hats(monkeypatch: pytest.MonkeyPatch) -> Registry[object]:
    monkeypatch.setattr(registry, "_EVERY", [])
    made: Registry[object] = Registry(POINT)
    made.add("bowler", "round", module="ours")
    return made


def offer(monkeypatch: pytest.MonkeyPatch, **values: str) -> None:
    entries = tuple(EntryPoint(name, value, POINT.group) for name, value in values.items())
    monkeypatch.setattr(registry, "entry_points_of", lambda group: entries)


def test_finds_by_name_and_suggests_the_nearest(hats: Registry[object]) -> None:
    assert hats.find("bowler") == "round"
    with pytest.raises(
        UnknownName, match=r"Unknown hat 'bowlr'\. Did you mean 'bowler'\? There are bowler\."
    ):
        hats.find("bowlr")


def test_refuses_a_name_that_another_module_declared(hats: Registry[object]) -> None:
    with pytest.raises(ValueError, match="two hats are named 'bowler'"):
        hats.add("bowler", "flat", module="theirs")
    hats.add("bowler", "flat", module="ours")  # the file was changed
    assert hats["bowler"] == "flat"


def test_every_change_is_a_new_edition(hats: Registry[object], monkeypatch: pytest.MonkeyPatch) -> None:
    editions = [hats.edition, hats.edition]
    assert editions[0] == editions[1]
    hats.add("bowler", "flat", module="ours")
    editions.append(hats.edition)
    hats.remove("bowler")
    editions.append(hats.edition)
    offer(monkeypatch, mine="no_such_module_anywhere")
    monkeypatch.syspath_prepend("elsewhere")  # where other packages may be
    editions.append(hats.edition)
    assert editions[1:] == sorted({*editions})


def test_anyone_may_replace_a_thing_without_a_module(hats: Registry[object]) -> None:
    hats.add("beret", "a description", module=None)
    hats.add("beret", "the real one", module="theirs")
    assert hats["beret"] == "the real one"


def test_our_own_things_take_precedence_over_an_entry_point(
    hats: Registry[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, bowler="json:loads", cap="json:dumps")
    assert hats["bowler"] == "round"
    assert list(hats) == ["bowler", "cap"]


def test_a_package_that_cannot_be_loaded_costs_only_its_own_thing(
    hats: Registry[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, fez="no_such_package:fez", cap="json:dumps")
    assert {*hats} == {"bowler", "cap", "fez"}
    assert callable(hats["cap"])
    with pytest.raises(InvalidOption, match=r"Cannot load stormproof\.tests fez = no_such_package:fez"):
        hats["fez"]


def test_an_entry_point_may_be_a_module_that_declares(
    hats: Registry[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    offer(monkeypatch, whatever="json")
    assert list(hats) == ["bowler"]


def test_looks_again_after_an_error_and_on_another_search_path(
    hats: Registry[object], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def broken(group: str) -> None:
        raise OSError("no metadata")

    monkeypatch.setattr(registry, "entry_points_of", broken)
    for _ in range(2):
        with pytest.raises(OSError, match="no metadata"):
            list(hats)
    offer(monkeypatch, cap="json:dumps")
    assert list(hats) == ["bowler", "cap"]
    offer(monkeypatch, fez="json:loads")
    assert list(hats) == ["bowler", "cap"], "once is enough"
    monkeypatch.syspath_prepend(tmp_path)
    assert list(hats) == ["bowler", "cap", "fez"]


def test_threads_wait_for_what_another_one_is_loading(
    hats: Registry[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    started, may_end = threading.Event(), threading.Event()

    class Slow:
        name, value, group, attr = "fez", "theirs:fez", POINT.group, "fez"

        def load(self) -> object:
            started.set()
            assert may_end.wait(10)
            return json.dumps

    monkeypatch.setattr(registry, "entry_points_of", lambda group: (Slow(),))
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(hats.find, "fez")
        assert started.wait(10)
        second = threads.submit(hats.find, "fez")
        wait([second], timeout=0.2)  # without waiting, it would find nothing
        may_end.set()
        assert first.result() is second.result() is json.dumps


def test_knows_which_modules_declared_something(hats: Registry[object]) -> None:
    assert declares_anything("ours")
    assert not declares_anything("theirs")


def test_a_look_up_imports_only_the_file_of_that_name() -> None:
    code = (
        "import sys\n"
        "from stormproof.datasets.dataset import READERS\n"
        "READERS['coco']\n"
        "print('stormproof.datasets.kitti' in sys.modules)\n"
        "print('kitti-tracking' in READERS, 'stormproof.datasets.kitti' in sys.modules)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["False", "True", "True"]


def test_every_point_has_its_page_and_is_listed() -> None:
    declared = {value for value in vars(extensions).values() if isinstance(value, ExtensionPoint)}
    assert declared == {*POINTS}
    listing = (ROOT / "docs/adding/README.md").read_text(encoding="utf-8")
    for point in POINTS:
        assert (ROOT / "docs/adding" / point.page).is_file(), point.page
        assert f"| `{point.group}` | {point.contract} |" in listing, point.group
        assert {*re.findall(r"@\w+|\w+(?=\()|\b[A-Z]\w+", point.contract)} <= {
            *extend.__all__, *(f"@{name}" for name in extend.__all__), "command",
        }  # fmt: skip


def test_our_own_entry_points_belong_to_known_points() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["entry-points"]
    assert {*groups} <= {point.group for point in POINTS}
