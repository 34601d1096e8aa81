"""torchvision, by a stand-in that answers in its manner."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from helpers.standins import IMAGE, Weighted, file, install
from stormproof.core.errors import InvalidOption, ModelError, UnknownName
from stormproof.models import load_model

torch = pytest.importorskip("torch", reason="needs torch")


class FasterRCNN(Weighted):
    def forward(self, images):
        assert isinstance(images, list)
        assert images[0].max() <= 1
        return [
            {
                "boxes": torch.tensor([[1.0, 2, 3, 4]]),
                "labels": torch.tensor([3]),
                "scores": torch.tensor([0.5]),
            }
        ]


class DeepLab(Weighted):
    def forward(self, batch):
        assert min(batch.shape[-2:]) == 520
        return {
            "out": batch[:, :1].repeat(1, 21, 1, 1) * torch.arange(21.0)[None, :, None, None],
            "aux": batch,
        }


@pytest.fixture
def vision(monkeypatch):
    calls = []

    def get_model(name, **options):
        calls.append((name, options))
        return DeepLab() if "deeplab" in name else FasterRCNN()

    detection, segmentation = ModuleType("detection"), ModuleType("segmentation")
    names = {detection: ["fasterrcnn_resnet50_fpn"], segmentation: ["deeplabv3_resnet50"]}
    models = SimpleNamespace(
        detection=detection,
        segmentation=segmentation,
        get_model=get_model,
        list_models=lambda module: names[module],
    )
    install(monkeypatch, torchvision={"models": models})
    return calls


def test_runs_a_torchvision_detector(vision, weights: Path) -> None:
    model = load_model(f"torchvision:fasterrcnn_resnet50_fpn,weights={weights}")
    assert vision == [
        ("fasterrcnn_resnet50_fpn", {"weights": None, "weights_backbone": None, "num_classes": 91})
    ]
    (found,) = model([IMAGE])
    assert model.classes[found.labels[0]] == "car"  # COCO's number 3
    assert found.boxes.tolist() == [[1, 2, 3, 4]]


def test_runs_a_torchvision_segmenter(vision, weights: Path) -> None:
    model = load_model(f"torchvision:deeplabv3_resnet50,weights={weights}")
    assert model.semantic_classes[15] == "person"
    assert vision[0][1]["num_classes"] == 21
    assert model([IMAGE])[0].semantic.shape == (20, 30)


def test_builds_the_second_head_that_the_weights_have(vision, tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(1), "aux_classifier.0.weight": torch.ones(1)}, tmp_path / "aux.pth")
    with pytest.raises(ModelError, match="does not fit"):  # the stand-in has no such head
        load_model(f"torchvision:deeplabv3_resnet50,weights={tmp_path}/aux.pth")
    assert vision[0][1]["aux_loss"] is True


def test_torchvision_takes_custom_classes(vision, weights: Path, tmp_path: Path) -> None:
    names = file(tmp_path, "names.txt", "cat\ndog\n")
    load_model(f"torchvision:fasterrcnn_resnet50_fpn,weights={weights},classes={names}")
    assert vision[0][1]["num_classes"] == 3  # and background


def test_torchvision_downloads_only_on_request(vision) -> None:
    with pytest.raises(InvalidOption, match="download=true"):
        load_model("torchvision:fasterrcnn_resnet50_fpn")
    load_model("torchvision:fasterrcnn_resnet50_fpn,download=true")
    assert vision == [("fasterrcnn_resnet50_fpn", {"weights": "DEFAULT"})]
    with pytest.raises(UnknownName, match="Did you mean 'fasterrcnn_resnet50_fpn'"):
        load_model("torchvision:fastrcnn_resnet50_fpn,download=true")
