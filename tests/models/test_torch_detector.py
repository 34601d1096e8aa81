"""torch modules that return dictionaries of boxes, scores and labels need no card."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import stormproof as sp
from stormproof.core.errors import InvalidPrediction, ModelError
from stormproof.models import load_model

torch = pytest.importorskip("torch", reason="needs torch")

IMAGE = np.full((40, 60, 3), 128, np.uint8)
CODE = """
import torch

class Listed(torch.nn.Module):
    classes = ("cat", "dog")
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))
    def forward(self, images):
        assert isinstance(images, list) and images[0].shape[0] == 3 and images[0].max() <= 1
        return [{"boxes": torch.tensor([[1.0, 2, 11, 12]]) * self.weight, "scores": torch.tensor([0.5]),
                 "labels": torch.tensor([1]), "features": 3} for _ in images]

class Batched(torch.nn.Module):
    def forward(self, x):
        b, c, h, w = x.shape
        return {"scores": torch.full((b, 1), 0.25), "boxes": torch.tensor([[[0.0, 0, w, h]]])}

class Named(Listed):
    def forward(self, images):
        found = super().forward(images)
        return [{**one, "labels": ["dog"]} for one in found]

class Raw(torch.nn.Module):
    def forward(self, x):
        return x * 2
"""


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "detectors_for_test.py").write_text(CODE)
    monkeypatch.syspath_prepend(tmp_path)
    yield "detectors_for_test"
    sys.modules.pop("detectors_for_test", None)


def test_reads_a_list_of_dictionaries(code: str) -> None:
    model = load_model(f"torch:{code}:Listed")
    assert (model.name, model.classes) == ("Listed", ("cat", "dog"))
    (found,) = model([IMAGE])  # type: ignore[operator]
    assert (found.boxes.tolist(), found.scores.tolist(), found.labels.tolist()) == (
        [[1, 2, 11, 12]],
        [0.5],
        [1],
    )
    assert load_model(f"torch:{code}:Listed,classes=[a,b]").classes == ("a", "b")


def test_reads_a_dictionary_with_a_batch_axis_and_without_labels(code: str) -> None:
    (found,) = load_model(f"torch:{code}:Batched,classes=thing")([IMAGE])  # type: ignore[operator]
    assert (found.boxes.tolist(), found.labels.tolist()) == ([[0, 0, 60, 40]], [0])


def test_reads_labels_that_are_names(code: str) -> None:
    (found,) = load_model(f"torch:{code}:Named")([IMAGE])  # type: ignore[operator]
    assert found.labels.tolist() == [1]


def test_a_state_dict_is_loaded_and_is_part_of_the_identity(code: str, tmp_path: Path) -> None:
    prints = set()
    for gain in (1.0, 2.0):
        torch.save({"weight": torch.tensor([gain])}, tmp_path / "w.pth")
        model = load_model(f"torch:{tmp_path}/w.pth,module={code}:Listed")
        assert model([IMAGE])[0].boxes[0, 0] == gain  # type: ignore[operator]
        prints.add(model.fingerprint)
    assert len(prints) == 2


def test_opens_a_script_and_a_module_in_memory(code: str, tmp_path: Path) -> None:
    import detectors_for_test

    (found,) = load_model(f"{tmp_path}/detectors_for_test.py:Listed")([IMAGE])  # type: ignore[operator]
    net = detectors_for_test.Listed()
    model = sp.open_model(net)
    assert model([IMAGE])[0].boxes.tolist() == found.boxes.tolist()
    before = model.fingerprint
    net.weight.data += 1
    assert sp.open_model(net).fingerprint != before


def test_a_module_that_returns_something_else_needs_a_card(code: str) -> None:
    import detectors_for_test

    with pytest.raises(ModelError, match="write decoder: in a card"):
        load_model(f"torch:{code}:Raw")
    with pytest.raises(InvalidPrediction, match="card with its decoder"):
        sp.open_model(detectors_for_test.Raw())([IMAGE])
