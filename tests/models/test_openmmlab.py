"""MMDetection and MMSegmentation, by a stand-in that answers in its manner."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from helpers.standins import IMAGE, Weighted, file, install
from stormproof.core.errors import InvalidOption, ModelError
from stormproof.models import load_model

torch = pytest.importorskip("torch", reason="needs torch")


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
def test_runs_an_mmdetection_model(monkeypatch, tmp_path: Path, weights: Path, masks: bool) -> None:
    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks))
    model = load_model(f"mmdet:{file(tmp_path, 'rtmdet.py')},weights={weights}")
    assert (model.name, model.classes) == ("rtmdet", ("cat", "dog"))
    (found,) = model([IMAGE])
    assert found.labels.tolist() == [1]  # the other lies below the least score
    assert (found.masks is not None) == masks


def test_says_what_mmdetection_lacks(monkeypatch, tmp_path: Path, weights: Path) -> None:
    (tmp_path / "mmdet").mkdir()
    (tmp_path / "mmdet/__init__.py").write_text("import an_mmcv_that_is_not_there")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "mmdet"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(
        InvalidOption, match=r"mmdet is installed .*'an_mmcv_that_is_not_there'.*pip install mmdet"
    ):
        load_model(f"mmdet:{file(tmp_path, 'solo.py')},weights={weights}")


def test_mmdetection_gives_solo_no_boxes(monkeypatch, tmp_path: Path, weights: Path) -> None:
    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks=True, boxless=True))
    (found,) = load_model(f"mmdet:{file(tmp_path, 'solo.py')},weights={weights}")([IMAGE])
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


def test_opens_mmdetection_checkpoints_of_training_runs(monkeypatch, tmp_path: Path, weights: Path) -> None:
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
    model = load_model(f"mmdet:{file(tmp_path, 'rtmdet.py')},weights={weights}")
    assert model.classes == ("cat", "dog")
    assert len(model([IMAGE])[0]) == 1


def test_mmdetection_never_opens_a_pickle(monkeypatch, tmp_path: Path) -> None:
    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "it ran",))

    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks=False))
    torch.save({"state_dict": {"weight": torch.ones(1)}, "message_hub": Evil()}, tmp_path / "evil.pth")
    with pytest.raises(ModelError, match="contains more than weights"):
        load_model(f"mmdet:{file(tmp_path, 'rtmdet.py')},weights={tmp_path}/evil.pth")
    assert not (tmp_path / "it ran").exists()


def test_asks_for_the_class_names_of_mmdetection(monkeypatch, tmp_path: Path, weights: Path) -> None:
    install(monkeypatch, mmdet={}, mmdet__apis=mmdet_apis(masks=False))
    config = file(tmp_path, "rtmdet.py")
    torch.save({"state_dict": {"weight": torch.ones(1)}}, weights)
    with pytest.raises(ModelError, match="names no classes"):
        load_model(f"mmdet:{config},weights={weights}")
    assert len(load_model(f"mmdet:{config},weights={weights},classes=coco80").classes) == 80
    with pytest.raises(InvalidOption, match="lacks weights"):
        load_model(f"mmdet:{config}")


def test_runs_an_mmsegmentation_model(monkeypatch, tmp_path: Path, weights: Path) -> None:
    def init_model(config, checkpoint, device):
        return Weighted()

    def inference_model(net, image):
        return SimpleNamespace(
            pred_sem_seg=SimpleNamespace(data=torch.ones(1, *image.shape[:2], dtype=torch.long))
        )

    install(monkeypatch, mmseg={}, mmseg__apis={"init_model": init_model, "inference_model": inference_model})
    model = load_model(f"mmseg:{file(tmp_path, 'segformer.py')},weights={weights}")
    assert model.semantic_classes == ("cat", "dog")
    assert (model([IMAGE])[0].semantic == 1).all()
