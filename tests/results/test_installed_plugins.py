"""Installed packages: what a module declares is found whichever entry point names the module.

The task is that of docs/adding/task.md.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from helpers.plugins import F1, POINTER, TIPPED, TIPS
from helpers.typed import say
from stormproof.core import registry as registries
from stormproof.core.errors import InvalidOption
from stormproof.corruptions.plugins import load_plugins
from stormproof.metrics.metric import measures

Install = Callable[[dict[str, str], dict[str, str]], Path]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Install]:
    """A package with these modules and entry points, as `pip install` would leave it."""

    def write(modules: dict[str, str], points: dict[str, str]) -> Path:
        package, info = tmp_path / "site" / "vanes_package", tmp_path / "site" / "vanes-1.0.dist-info"
        package.mkdir(parents=True)
        info.mkdir()
        for name, code in {"__init__": "", **modules}.items():
            (package / f"{name}.py").write_text(code)
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: vanes\nVersion: 1.0\n")
        lines = [f"[stormproof.{group}]\nmine = vanes_package.{name}\n" for group, name in points.items()]
        (info / "entry_points.txt").write_text("\n".join(lines))
        monkeypatch.syspath_prepend(str(tmp_path / "site"))
        return package

    yield write
    for name in [name for name in sys.modules if name.startswith("vanes_package")]:
        del sys.modules[name]
    for registry in registries._EVERY:
        registry._broken.pop("mine", None)


def test_a_task_with_one_entry_point_can_be_gated_and_explained(tmp_path: Path, install: Install) -> None:
    install({"tips": TIPS, "vanes": TIPPED}, {"tasks": "tips", "datasets": "vanes"})
    assert measures()["tip error"].words == "mean distance of tips in pixels"
    assert "mean distance of tips" in say("explain", "tip error")
    (tmp_path / "pointer.py").write_text(POINTER)
    folder = tmp_path / "run"
    say("run", "--model", f"{tmp_path / 'pointer.py'}:point", "--data", "vanes:all", "-c", "contrast@2-3",
        "--engine", "local", "--out", folder)  # fmt: skip
    shown = say("score", folder, "--interval", "--measure", "tip error")
    title = " ".join(shown[shown.index("point on vanes") : shown.index("┏")].split())
    assert title.endswith("for new images like these (tip error †)")  # pixels are not in %
    rules = tmp_path / "requirements.yaml"
    rules.write_text("requirements:\n- {id: R1, metric: tip error, condition: contrast@2, at_most: 19}\n")
    (verdict,) = json.loads(say("check", folder, "--require", rules, "--json", code=3))
    assert verdict["verdict"] == "inconclusive"


@pytest.mark.parametrize("group", ["metrics", "tasks", "aggregates"])
def test_metrics_are_found_by_the_entry_point_of_any_kind(install: Install, group: str) -> None:
    install({"f1": F1}, {group: "f1"})
    assert "F1" in measures()


def test_a_module_that_is_installed_may_also_be_named_as_a_file(install: Install, tmp_path: Path) -> None:
    package = install({"f1": F1}, {"metrics": "f1"})
    load_plugins([str(package / "f1.py")])
    assert "F1" in measures()
    elsewhere = tmp_path / "source" / "vanes_package" / "f1.py"  # what is installed is a copy of it
    elsewhere.parent.mkdir(parents=True)
    elsewhere.write_text(F1.replace("at IoU 0.5", "being changed"))
    load_plugins([str(elsewhere)])
    assert "being changed" in measures()["F1"].words


def test_two_modules_with_the_same_measure_are_both_named(install: Install, tmp_path: Path) -> None:
    install({"f1": F1}, {"metrics": "f1"})
    (tmp_path / "other.py").write_text(F1)
    load_plugins([str(tmp_path / "other.py")])
    with pytest.raises(InvalidOption, match=r"by stormproof_plugin_other\.f1 and vanes_package\.f1\.f1"):
        measures()


def test_a_measure_of_a_file_is_explained(tmp_path: Path) -> None:
    (tmp_path / "f1.py").write_text(F1)
    assert "F1 of boxes scored 0.5" in say("explain", "F1", "--plugin", tmp_path / "f1.py")
