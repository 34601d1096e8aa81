"""Detectron2, by a stand-in that answers in its manner."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from helpers.standins import IMAGE, Weighted, file, install
from stormproof.core.errors import ModelError
from stormproof.models import load_model
from stormproof.models.detectron2 import _pixels

torch = pytest.importorskip("torch", reason="needs torch")


class CfgNode(SimpleNamespace):
    """A config by attributes; YAML is read the safe way only."""

    def __init__(self, content=None) -> None:
        super().__init__(**(content or {}))

    @classmethod
    def load_yaml_with_base(cls, path, allow_unsafe):
        assert allow_unsafe is False
        return {"read": path}

    def merge_from_other_cfg(self, other) -> None:
        self.merged = other


class Detectron(Weighted):
    def forward(self, batch):
        assert self.weight.item() == 1
        (item,) = batch
        assert item["image"].shape == (3, 40, 60)  # the short side scaled to 40
        assert item["image"][:, 0, 0].tolist() == [0, 0, 255]
        found = SimpleNamespace(
            pred_boxes=SimpleNamespace(tensor=torch.tensor([[1.0, 2, 3, 4]])),
            scores=torch.tensor([0.5]),
            pred_classes=torch.tensor([2]),
            pred_masks=torch.ones(1, item["height"], item["width"], dtype=torch.bool),
            has=lambda name: True,
        )
        return [
            {
                "instances": found,
                "sem_seg": torch.eye(3)[0][:, None, None].expand(3, item["height"], item["width"]),
            }
        ]


def test_runs_a_detectron2_model(monkeypatch, tmp_path: Path) -> None:
    def get_cfg():
        heads = {"ROI_HEADS": CfgNode(), "RETINANET": CfgNode()}
        settings = {"MIN_SIZE_TEST": 40, "MAX_SIZE_TEST": 100, "FORMAT": "BGR"}
        return CfgNode({"MODEL": CfgNode(heads), "INPUT": CfgNode(settings)})

    install(
        monkeypatch,
        detectron2={},
        detectron2__config={"get_cfg": get_cfg, "CfgNode": CfgNode},
        detectron2__modeling={"build_model": lambda config: Detectron()},
    )
    config = file(tmp_path, "mask_rcnn.yaml")
    torch.save({"model": {"weight": torch.ones(1)}}, tmp_path / "model.pth")
    model = load_model(f"detectron2:{config},weights={tmp_path}/model.pth")
    (found,) = model([IMAGE])
    assert (found.boxes.tolist(), found.labels.tolist()) == ([[1, 2, 3, 4]], [2])
    assert found.masks is not None
    semantic = load_model(f"detectron2:{config},weights={tmp_path}/model.pth,semantic=true,classes=voc21")
    assert (semantic([IMAGE])[0].semantic == 0).all()
    with pytest.raises(ModelError, match="is a pickle"):
        load_model(f"detectron2:{config},weights={file(tmp_path, 'model.pkl')}")


def test_detectron2_scales_as_pillow_does() -> None:
    stripes = np.zeros((8, 64, 3), np.uint8)
    stripes[:, ::8, 0] = 255  # thin red lines, which a plain linear resize steps over
    settings = CfgNode({"MIN_SIZE_TEST": 8, "MAX_SIZE_TEST": 8, "FORMAT": "BGR"})
    small = _pixels(stripes, settings)
    assert small.shape == (3, 1, 8)
    assert small[2].min() > 10
    settings.MIN_SIZE_TEST = 0  # leaves images as they are
    assert np.array_equal(_pixels(stripes, settings)[2], stripes[..., 0])
