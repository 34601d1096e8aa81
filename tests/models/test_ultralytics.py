"""Ultralytics, by a stand-in that answers in its manner."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from helpers.standins import IMAGE, file, install
from stormproof.core.errors import ModelError
from stormproof.models import load_model

torch = pytest.importorskip("torch", reason="needs torch")


class YOLO:
    names = {0: "cat", 1: "dog"}  # noqa: RUF012

    def __init__(self, path: str) -> None:
        self.path = path

    def predict(self, source, *, conf, iou, max_det, device, retina_masks, verbose):
        assert source[0, 0].tolist() == [0, 0, 255]  # BGR
        assert retina_masks
        boxes = SimpleNamespace(
            xyxy=torch.tensor([[1.0, 2, 3, 4]]), conf=torch.tensor([conf + 0.1]), cls=torch.tensor([1.0])
        )
        masks = SimpleNamespace(data=torch.ones(1, *source.shape[:2])) if "seg" in self.path else None
        return [SimpleNamespace(boxes=boxes, masks=masks)]


def test_runs_an_ultralytics_model(monkeypatch, tmp_path: Path) -> None:
    install(monkeypatch, ultralytics={"YOLO": YOLO})
    model = load_model(f"ultralytics:{file(tmp_path, 'yolo11n.onnx')},score=0.2")
    assert model.classes == ("cat", "dog")
    (found,) = model([IMAGE])
    assert (found.boxes.tolist(), found.labels.tolist()) == ([[1, 2, 3, 4]], [1])
    assert found.scores[0] == pytest.approx(0.3)
    assert found.masks is None
    (found,) = load_model(f"ultralytics:{file(tmp_path, 'yolo11n-seg.onnx')}")([IMAGE])
    assert found.masks is not None
    assert found.masks[0].area == 600


def test_ultralytics_pickles_need_trust(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("YOLO_OFFLINE", raising=False)
    install(monkeypatch, ultralytics={"YOLO": YOLO})
    path = file(tmp_path, "yolo11n.pt")
    with pytest.raises(ModelError, match="trust=true"):
        load_model(f"ultralytics:{path}")
    assert load_model(f"ultralytics:{path},trust=true").name == "yolo11n"
    assert os.environ["YOLO_OFFLINE"] == "true"
    with pytest.raises(Exception, match="no such file"):  # never handed on, as the package would download it
        load_model(f"ultralytics:{tmp_path}/yolov8n.pt,trust=true")


@pytest.mark.parametrize("name", ["yolov5n.pt", "yolov5x6.pt", "yolov3-tiny.pt"])
def test_ultralytics_is_not_asked_for_files_it_would_fetch(monkeypatch, tmp_path: Path, name: str) -> None:
    """The package takes these names for its older releases and downloads others in their place."""
    install(monkeypatch, ultralytics={"YOLO": YOLO})
    with pytest.raises(ModelError, match="rename the file"):
        load_model(f"ultralytics:{file(tmp_path, name)},trust=true")
    other = name.replace(".pt", "u.pt")
    assert load_model(f"ultralytics:{file(tmp_path, other)},trust=true").name == other[:-3]


def test_oriented_boxes_keep_their_corners(monkeypatch, tmp_path: Path) -> None:
    corners = [[2.0, 2], [3, 3], [2, 4], [1, 3]]

    class Oriented(YOLO):
        def predict(self, source, **limits):
            (result,) = super().predict(source, **limits)
            boxes = result.boxes
            turned = SimpleNamespace(
                xyxy=boxes.xyxy, conf=boxes.conf, cls=boxes.cls, xyxyxyxy=torch.tensor([corners])
            )
            return [SimpleNamespace(boxes=None, obb=turned, masks=None)]

    install(monkeypatch, ultralytics={"YOLO": Oriented})
    (found,) = load_model(f"ultralytics:{file(tmp_path, 'yolo11n-obb.onnx')},score=0.2")([IMAGE])
    assert (found.boxes.tolist(), found.labels.tolist()) == ([[1, 2, 3, 4]], [1])
    assert found.data["corners"].tolist() == [corners]


def test_key_points_are_read(monkeypatch, tmp_path: Path) -> None:
    class Pose(YOLO):
        def predict(self, source, **limits):
            (result,) = super().predict(source, **limits)
            points = SimpleNamespace(data=torch.tensor([[[1.0, 2.0, 0.5]] * 17]))
            return [SimpleNamespace(boxes=result.boxes, masks=None, keypoints=points)]

    install(monkeypatch, ultralytics={"YOLO": Pose})
    (found,) = load_model(f"ultralytics:{file(tmp_path, 'yolo11n-pose.onnx')},score=0.2")([IMAGE])
    assert found.data["points"].shape == (1, 17, 3)
    assert found.data["points"][0, 3].tolist() == [1, 2, 0.5]


def test_semantic_masks_are_label_maps(monkeypatch, tmp_path: Path) -> None:
    class Semantic(YOLO):
        def predict(self, source, **limits):
            labels = torch.ones((1, *source.shape[:2]), dtype=torch.uint8)
            return [SimpleNamespace(boxes=None, masks=None, semantic_mask=SimpleNamespace(data=labels))]

    install(monkeypatch, ultralytics={"YOLO": Semantic})
    model = load_model(f"ultralytics:{file(tmp_path, 'yolo26n-sem.onnx')}")
    (found,) = model([IMAGE])
    assert model.semantic_classes == ("cat", "dog")
    assert found.semantic.shape == IMAGE.shape[:2]
    assert (found.semantic == 1).all()
