"""`card=` and `classes=` work for every kind of model, also for those that feed themselves."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, ModelError, UnknownName
from stormproof.models import load_model

IMAGE = np.zeros((20, 30, 3), np.uint8)
SCRIPT = """
def detect(images):
    return [{"boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": %s} for _ in images]
"""


def script(folder: Path, labels: str, more: str = "") -> str:
    (folder / "mine.py").write_text(SCRIPT % labels + more)
    return f"{folder}/mine.py:detect"


def test_a_function_takes_classes_in_its_spec(tmp_path: Path) -> None:
    spec = script(tmp_path, "[1]")
    assert load_model(f"{spec},classes=[cat,dog]").classes == ("cat", "dog")
    assert load_model(f"{spec},classes=cat").classes == ("cat",)
    assert load_model(f"{spec},classes=voc20").classes[0] == "aeroplane"
    assert load_model(spec).fingerprint != load_model(f"{spec},classes=[cat,dog]").fingerprint


def test_labels_of_a_function_may_be_the_names_given_in_its_spec(tmp_path: Path) -> None:
    spec = script(tmp_path, "['dog']")
    (found,) = load_model(f"{spec},classes=[cat,dog]")([IMAGE])  # type: ignore[operator]
    assert found.labels.tolist() == [1]


def test_an_option_of_the_function_itself_is_left_to_it(tmp_path: Path) -> None:
    code = "def make({}):\n    f = lambda images: []\n    f.classes = [{}]\n    return f\n"
    for parameters, value in (("*, classes: str = 'x'", "classes"), ("**options", "options['classes']")):
        (tmp_path / "mine.py").write_text(code.format(parameters, value))
        assert load_model(f"{tmp_path}/mine.py:make,classes=own").classes == ("own",)


def test_a_card_names_and_renames_any_model(tmp_path: Path) -> None:
    (tmp_path / "card.yaml").write_text("name: mine\nclasses: names.txt\nrename: {dog: hound}\n")
    (tmp_path / "names.txt").write_text("cat\ndog\n")
    model = load_model(f"{script(tmp_path, '[1]')},card={tmp_path}/card.yaml")
    assert (model.name, model.classes) == ("mine", ("cat", "hound"))
    assert load_model(f"hog:people,card={_card(tmp_path, 'rename: {person: human}')}").classes == ("human",)


def _card(folder: Path, text: str) -> Path:
    (folder / "other.yaml").write_text(text)
    return folder / "other.yaml"


def test_refuses_a_card_that_does_not_fit_the_model(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="decoder"):
        load_model(f"hog:people,card={_card(tmp_path, 'decoder: yolox')}")
    with pytest.raises(UnknownName, match="class to rename"):
        load_model(f"hog:people,card={_card(tmp_path, 'rename: {cat: human}')}")
    with pytest.raises(ModelError, match="has 1 classes"):
        load_model("hog:people,classes=[a,b]")


def test_precomputed_results_take_classes_but_no_card(tmp_path: Path) -> None:
    (tmp_path / "results.json").write_text("[]")
    assert load_model(f"results:{tmp_path}/results.json,classes=[cat,dog]").classes == ("cat", "dog")
    with pytest.raises(InvalidOption, match="name its classes with classes="):
        load_model(f"results:{tmp_path}/results.json,card={_card(tmp_path, 'name: x')}")


def test_ultralytics_takes_classes_and_a_card(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    yolo = SimpleNamespace(YOLO=lambda path: SimpleNamespace(names={0: "0", 1: "1"}))
    monkeypatch.setattr("stormproof.models.ultralytics.framework", lambda *_, **__: yolo)
    (tmp_path / "net.onnx").touch()
    spec = f"ultralytics:{tmp_path}/net.onnx"
    assert load_model(f"{spec},classes=[cat,dog]").classes == ("cat", "dog")
    assert load_model(f"{spec},card={_card(tmp_path, 'classes: [a, b]')}").classes == ("a", "b")


def test_a_spec_renames_single_classes_of_every_kind(tmp_path: Path) -> None:
    spec = script(tmp_path, "[1]")
    assert load_model(f"{spec},classes=[cat,dog],rename.dog=hound").classes == ("cat", "hound")
    assert load_model("hog:people,rename.person=human").classes == ("human",)
    with pytest.raises(UnknownName, match="class to rename in hog-people 'cat'"):
        load_model("hog:people,rename.cat=human")
