"""The spec grammar, plug-ins by entry point, and datasets by module and attribute."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import stormproof
from stormproof.core.errors import InvalidOption, UnknownName
from stormproof.core.spec import Spec
from stormproof.datasets import READERS, read_dataset
from stormproof.datasets.images import open_images

words = st.text(st.characters(codec="utf-8", exclude_characters="\\,=:\n\r"), min_size=1).filter(
    lambda w: w.strip() == w
)


@given(words, words.map(lambda w: w + ",x"), st.dictionaries(words, words, max_size=3))
def test_a_spec_parses_back_from_its_text(kind: str, main: str, options: dict[str, str]) -> None:
    spec = Spec(kind, main, options)
    assert Spec.parse(str(spec)) == spec


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("instances.json", "write kind:main"),
        (":x", "write kind:main"),
        ("coco:", "Nothing follows"),
        ("coco:a.json,val", "key=value"),
        ("coco:a.json,images=x,images=y", "twice"),
    ],
)
def test_refuses_texts_that_are_no_specs(text: str, part: str) -> None:
    with pytest.raises(InvalidOption, match=part):
        Spec.parse(text)


def test_unknown_kinds_and_options_suggest_the_nearest(tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="Did you mean 'coco'"):
        read_dataset("cocco:x.json")
    with pytest.raises(UnknownName, match="Did you mean 'images'"):
        read_dataset("coco:x.json,image=y")
    with pytest.raises(UnknownName, match="Did you mean 'depth'"):
        read_dataset("coco:x.json,depht=y")


def opener(
    main: str, *, count: int = 1, ratio: float | None = None, flag: bool = False, where: Path | None = None
) -> Any:
    return main, count, ratio, flag, where


def test_options_are_converted_to_their_declared_types() -> None:
    found = Spec.parse("k:m,count=3,ratio=0.5,flag=yes,where=a/b").arguments(opener)
    assert found == [{"count": 3, "ratio": 0.5, "flag": True, "where": Path("a/b")}]
    for text in ("k:m,count=three", "k:m,ratio=x", "k:m,flag=perhaps"):
        with pytest.raises(InvalidOption, match="in k:m"):
            Spec.parse(text).arguments(opener)


@pytest.fixture
def photos(tmp_path: Path, trees: ModuleType) -> Path:
    trees.images(tmp_path)
    return tmp_path


def open_photos(main: str, *, depth: str = "own") -> Any:
    return open_images(main)


def test_an_entry_point_offers_a_kind_of_dataset(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("a_plug_in")
    module.open_photos = open_photos  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "a_plug_in", module)
    point = EntryPoint("photos", "a_plug_in:open_photos", "stormproof.datasets")
    monkeypatch.setattr(
        "stormproof.core.registry.entry_points_of", lambda group: EntryPoints([point]).select(group=group)
    )
    monkeypatch.setattr(READERS, "_loaded", set())
    assert len(read_dataset(f"photos:{photos}")) == 3
    # An option that the plug-in declares is the plug-in's own, even if context has one of the name.
    assert len(read_dataset(f"photos:{photos},depth=anything")) == 3
    with pytest.raises(UnknownName, match="photos"):
        read_dataset("phots:x")


def test_opens_a_dataset_by_module_and_attribute(photos: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def make(*, where: str = str(photos)) -> Any:
        return open_images(where)

    module = ModuleType("a_package.module")
    contents = {"ready": open_images(str(photos)), "make": make, "nonsense": 3, "picky": lambda path: path}
    for name, value in contents.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "a_package", ModuleType("a_package"))
    monkeypatch.setitem(sys.modules, "a_package.module", module)
    assert read_dataset("a_package.module:ready") is contents["ready"]
    assert len(read_dataset("a_package.module:make")) == 3
    assert len(read_dataset(f"a_package.module:make,where={photos}/deeper")) == 1
    with pytest.raises(UnknownName, match="wher"):
        read_dataset("a_package.module:make,wher=x")
    with pytest.raises(UnknownName):
        read_dataset("a_package.module:ready,where=x")
    with pytest.raises(InvalidOption, match="int has no name, ids"):
        read_dataset("a_package.module:nonsense")
    with pytest.raises(InvalidOption, match="path"):
        read_dataset("a_package.module:picky")
    with pytest.raises(InvalidOption, match="Cannot load 'a_package"):
        read_dataset("a_package.module:absent")


def test_a_script_may_be_in_a_folder_with_a_comma() -> None:
    spec = Spec.parse(r"my\,models/net.py:detect")
    assert (spec.kind, spec.main) == ("my,models/net.py", "detect")
    assert Spec.parse(str(spec)) == spec
    with pytest.raises(InvalidOption, match=r"for example net\.py:function"):
        Spec.parse("net.py")


@pytest.mark.parametrize(
    ("wrong", "complaint"), [("nobody", "has no image 'nobody'"), (slice(0, 1), "has no slices")]
)
def test_samples_are_found_by_position_or_id_and_by_nothing_else(wrong: Any, complaint: str) -> None:
    data = stormproof.open_dataset("world:test,size=64x40", limit=2)
    assert data[-1].id == data[data.ids[1]].id == data.ids[1]
    with pytest.raises(InvalidOption, match=complaint):
        data[wrong]


def test_opening_a_dataset_imports_no_other_reader(photos: Path) -> None:
    code = (
        "import sys; from stormproof.datasets import read_dataset\n"
        f"read_dataset('images:{photos}')\n"
        "print([name for name in ('datasets.kitti', 'world.dataset') if f'stormproof.{name}' in sys.modules])"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
