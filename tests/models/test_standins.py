"""Frameworks that are not dependencies, with stand-ins that answer in their manner.

A stand-in has the few names that an adapter calls, with the signatures and result types of the real
package; pictures reach it as the real one wants them (BGR), and what it says comes back as predictions.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from stormproof.errors import InvalidOption, ModelError, UnknownName
from stormproof.models import open_model
from stormproof.models.detectron2 import _pixels

torch = pytest.importorskip("torch", reason="needs torch")

IMAGE = np.zeros((20, 30, 3), np.uint8)
IMAGE[..., 0] = 255  # red


def install(monkeypatch, **modules) -> None:
    """Put stand-ins where `import` finds them; dots in names are written as two underscores."""
    for name, members in modules.items():
        module = ModuleType(name.replace("__", "."))
        module.__dict__.update(members)
        monkeypatch.setitem(sys.modules, module.__name__, module)


class Weighted(torch.nn.Module):
    """A module with one weight, as a network is to a loader of state dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.zeros(1))


@pytest.fixture
def weights(tmp_path: Path) -> Path:
    torch.save(
        {"state_dict": {"weight": torch.ones(1)}, "meta": {"dataset_meta": {"classes": ("cat", "dog")}}},
        tmp_path / "weights.pth",
    )
    return tmp_path / "weights.pth"


def file(folder: Path, name: str, text: str = "") -> Path:
    (folder / name).write_text(text)
    return folder / name


# Ultralytics


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


def test_ultralytics(monkeypatch, tmp_path: Path) -> None:
    install(monkeypatch, ultralytics={"YOLO": YOLO})
    model = open_model(f"ultralytics:{file(tmp_path, 'yolo11n.onnx')},score=0.2")
    assert model.classes == ("cat", "dog")
    (found,) = model([IMAGE])
    assert (found.boxes.tolist(), found.labels.tolist()) == ([[1, 2, 3, 4]], [1])
    assert found.scores[0] == pytest.approx(0.3)
    assert found.masks is None
    (found,) = open_model(f"ultralytics:{file(tmp_path, 'yolo11n-seg.onnx')}")([IMAGE])
    assert found.masks is not None
    assert found.masks[0].area == 600


def test_ultralytics_pickles_need_trust(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.delenv("YOLO_OFFLINE", raising=False)
    install(monkeypatch, ultralytics={"YOLO": YOLO})
    path = file(tmp_path, "yolo11n.pt")
    with pytest.raises(ModelError, match="trust=true"):
        open_model(f"ultralytics:{path}")
    assert open_model(f"ultralytics:{path},trust=true").name == "yolo11n"
    assert os.environ["YOLO_OFFLINE"] == "true"
    with pytest.raises(Exception, match="no such file"):  # never handed on, as the package would download it
        open_model(f"ultralytics:{tmp_path}/yolov8n.pt,trust=true")


@pytest.mark.parametrize("name", ["yolov5n.pt", "yolov5x6.pt", "yolov3-tiny.pt"])
def test_ultralytics_is_not_asked_for_files_it_would_fetch(monkeypatch, tmp_path: Path, name: str) -> None:
    """The package takes these names for its older releases and downloads others in their place."""
    install(monkeypatch, ultralytics={"YOLO": YOLO})
    with pytest.raises(ModelError, match="rename the file"):
        open_model(f"ultralytics:{file(tmp_path, name)},trust=true")
    other = name.replace(".pt", "u.pt")
    assert open_model(f"ultralytics:{file(tmp_path, other)},trust=true").name == other[:-3]


# OpenMMLab


class Instances(dict):
    """mmengine's InstanceData: members by attribute, asked for with `in`."""

    __getattr__ = dict.__getitem__


def mmdet_apis(masks: bool, boxless: bool = False):
    def init_detector(config, checkpoint, device):
        assert checkpoint is None
        net = Weighted()
        net.dataset_meta = {"classes": ("person", "bicycle")}  # COCO's, whatever the checkpoint
        return net

    def inference_detector(net, image):
        assert net.weight.item() == 1
        assert image[0, 0].tolist() == [0, 0, 255]
        found = Instances(
            bboxes=torch.tensor([[1.0, 2, 3, 4], [0, 0, 1, 1]]),
            scores=torch.tensor([0.6, 0.001]),
            labels=torch.tensor([1, 0]),
        )
        if masks:
            found["masks"] = torch.ones(2, *image.shape[:2], dtype=torch.bool)
        if boxless:
            found["bboxes"] = torch.zeros(2, 4)
        return SimpleNamespace(pred_instances=found)

    return {"init_detector": init_detector, "inference_detector": inference_detector}


@pytest.mark.parametrize("masks", [False, True])
def test_mmdetection(monkeypatch, tmp_path: Path, weights: Path, masks: bool) -> None:
    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks))
    model = open_model(f"mmdet:{file(tmp_path, 'rtmdet.py')},weights={weights}")
    assert (model.name, model.classes) == ("rtmdet", ("cat", "dog"))
    (found,) = model([IMAGE])
    assert found.labels.tolist() == [1]  # the other lies below the least score
    assert (found.masks is not None) == masks


def test_mmdetection_gives_solo_no_boxes(monkeypatch, tmp_path: Path, weights: Path) -> None:
    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks=True, boxless=True))
    (found,) = open_model(f"mmdet:{file(tmp_path, 'solo.py')},weights={weights}")([IMAGE])
    assert found.boxes.tolist() == [[0, 0, 30, 20]]  # the mask's


HISTORY = """
import numpy as np
class HistoryBuffer:
    def __init__(self):
        self._log_history = np.array([1.5, 2.5])
        self._last = np.float64(2.5)
        self._statistics_methods = {"min": HistoryBuffer.min}
    def min(self):
        return self._log_history.min()
"""


def test_mmdetection_checkpoints_of_training_runs(monkeypatch, tmp_path: Path, weights: Path) -> None:
    """mmengine keeps its log beside the weights, as objects of its own that refer to their methods."""
    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks=False))
    name = "mmengine.logging.history_buffer"
    module = ModuleType(name)
    exec(HISTORY, module.__dict__)
    checkpoint = torch.load(weights, weights_only=True)
    with monkeypatch.context() as there:
        for package in ("mmengine", "mmengine.logging"):
            there.setitem(sys.modules, package, ModuleType(package))
        there.setitem(sys.modules, name, module)
        checkpoint["message_hub"] = {"log_scalars": {"train/loss": module.HistoryBuffer()}}
        torch.save(checkpoint, weights)
    model = open_model(f"mmdet:{file(tmp_path, 'rtmdet.py')},weights={weights}")
    assert model.classes == ("cat", "dog")
    assert len(model([IMAGE])[0]) == 1


def test_mmdetection_never_opens_a_pickle(monkeypatch, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "it ran",))

    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks=False))
    torch.save({"state_dict": {"weight": torch.ones(1)}, "message_hub": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(ModelError, match="holds more than weights"):
        open_model(f"mmdet:{file(tmp_path, 'rtmdet.py')},weights={tmp_path}/evil.pth")
    assert not (tmp_path / "it ran").exists()


def test_mmdetection_without_class_names(monkeypatch, tmp_path: Path, weights: Path) -> None:
    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks=False))
    config = file(tmp_path, "rtmdet.py")
    torch.save({"state_dict": {"weight": torch.ones(1)}}, weights)
    with pytest.raises(ModelError, match="names no classes"):
        open_model(f"mmdet:{config},weights={weights}")
    assert len(open_model(f"mmdet:{config},weights={weights},classes=coco80").classes) == 80
    with pytest.raises(InvalidOption, match="lacks weights"):
        open_model(f"mmdet:{config}")


def test_mmsegmentation(monkeypatch, tmp_path: Path, weights: Path) -> None:
    def init_model(config, checkpoint, device):
        return Weighted()

    def inference_model(net, image):
        return SimpleNamespace(
            pred_sem_seg=SimpleNamespace(data=torch.ones(1, *image.shape[:2], dtype=torch.long))
        )

    install(monkeypatch, mmseg={}, mmseg__apis={"init_model": init_model, "inference_model": inference_model})
    model = open_model(f"mmseg:{file(tmp_path, 'segformer.py')},weights={weights}")
    assert model.semantic_classes == ("cat", "dog")
    assert (model([IMAGE])[0].semantic == 1).all()


# Detectron2


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


def test_detectron2(monkeypatch, tmp_path: Path) -> None:
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
    model = open_model(f"detectron2:{config},weights={tmp_path}/model.pth")
    (found,) = model([IMAGE])
    assert (found.boxes.tolist(), found.labels.tolist()) == ([[1, 2, 3, 4]], [2])
    assert found.masks is not None
    semantic = open_model(f"detectron2:{config},weights={tmp_path}/model.pth,semantic=true,classes=voc21")
    assert (semantic([IMAGE])[0].semantic == 0).all()
    with pytest.raises(ModelError, match="is a pickle"):
        open_model(f"detectron2:{config},weights={file(tmp_path, 'model.pkl')}")


def test_detectron2_scales_as_pillow_does() -> None:
    stripes = np.zeros((8, 64, 3), np.uint8)
    stripes[:, ::8, 0] = 255  # thin red lines, which a plain linear resize steps over
    settings = CfgNode({"MIN_SIZE_TEST": 8, "MAX_SIZE_TEST": 8, "FORMAT": "BGR"})
    small = _pixels(stripes, settings)
    assert small.shape == (3, 1, 8)
    assert small[2].min() > 10
    settings.MIN_SIZE_TEST = 0  # leaves pictures as they are
    assert np.array_equal(_pixels(stripes, settings)[2], stripes[..., 0])


# torchvision


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


def test_torchvision_detector(vision, weights: Path) -> None:
    model = open_model(f"torchvision:fasterrcnn_resnet50_fpn,weights={weights}")
    assert vision == [
        ("fasterrcnn_resnet50_fpn", {"weights": None, "weights_backbone": None, "num_classes": 91})
    ]
    (found,) = model([IMAGE])
    assert model.classes[found.labels[0]] == "car"  # COCO's number 3
    assert found.boxes.tolist() == [[1, 2, 3, 4]]


def test_torchvision_segmenter(vision, weights: Path) -> None:
    model = open_model(f"torchvision:deeplabv3_resnet50,weights={weights}")
    assert model.semantic_classes[15] == "person"
    assert vision[0][1]["num_classes"] == 21
    assert model([IMAGE])[0].semantic.shape == (20, 30)


def test_torchvision_second_head(vision, tmp_path: Path) -> None:
    torch.save({"weight": torch.ones(1), "aux_classifier.0.weight": torch.ones(1)}, tmp_path / "aux.pth")
    with pytest.raises(ModelError, match="does not fit"):  # the stand-in has no such head
        open_model(f"torchvision:deeplabv3_resnet50,weights={tmp_path}/aux.pth")
    assert vision[0][1]["aux_loss"] is True


def test_torchvision_with_classes_of_ones_own(vision, weights: Path, tmp_path: Path) -> None:
    names = file(tmp_path, "names.txt", "cat\ndog\n")
    open_model(f"torchvision:fasterrcnn_resnet50_fpn,weights={weights},classes={names}")
    assert vision[0][1]["num_classes"] == 3  # and background


def test_torchvision_downloads_only_when_told(vision) -> None:
    with pytest.raises(InvalidOption, match="download=true"):
        open_model("torchvision:fasterrcnn_resnet50_fpn")
    open_model("torchvision:fasterrcnn_resnet50_fpn,download=true")
    assert vision == [("fasterrcnn_resnet50_fpn", {"weights": "DEFAULT"})]
    with pytest.raises(UnknownName, match="Did you mean 'fasterrcnn_resnet50_fpn'"):
        open_model("torchvision:fastrcnn_resnet50_fpn,download=true")
