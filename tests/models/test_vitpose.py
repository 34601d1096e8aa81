"""ViTPose: tiny networks built from configs, compared with transformers' own decoding."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.models import load_model

torch = pytest.importorskip("torch", reason="needs the extra 'hf'")
T = pytest.importorskip("transformers", reason="needs the extra 'hf'")
pytest.importorskip("scipy")

IMAGE = np.random.default_rng(0).integers(0, 255, (60, 80, 3), dtype=np.uint8)
BOXES = np.array([[4.0, 6.0, 40.0, 50.0], [30.0, 2.0, 79.0, 58.0]])
DETECTOR = """
import numpy as np
classes = ("car", "person")
def find(images):
    boxes = [[4, 6, 40, 50], [30, 2, 79, 58], [1, 1, 9, 9], [2, 2, 9, 9]]
    return [{"boxes": boxes, "scores": [0.5, 0.9, 0.01, 0.8], "labels": [1, 1, 1, 0]} for _ in images]
find.classes = classes
"""


def vitpose(folder: Path, experts: int = 1) -> Path:
    torch.manual_seed(0)
    part = 8 if experts > 1 else 0
    backbone = T.VitPoseBackboneConfig(
        image_size=[64, 48], patch_size=[16, 16], hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        num_experts=experts, part_features=part, out_indices=[1],
    )  # fmt: skip
    config = T.VitPoseConfig(backbone_config=backbone, num_labels=17, use_simple_decoder=True)
    T.VitPoseForPoseEstimation(config).save_pretrained(folder)
    T.VitPoseImageProcessor(size={"height": 64, "width": 48}).save_pretrained(folder)
    return folder


def decode(folder: Path, boxes: np.ndarray, **further) -> tuple[np.ndarray, np.ndarray]:
    """Places and confidences as transformers' documentation computes them."""
    net = T.VitPoseForPoseEstimation.from_pretrained(folder).eval()
    processor = T.AutoImageProcessor.from_pretrained(folder)
    given = [np.hstack([boxes[:, :2], boxes[:, 2:] - boxes[:, :2]]).tolist()]
    inputs = processor(images=IMAGE, boxes=given, return_tensors="pt", input_data_format="channels_last")
    with torch.inference_mode():
        outputs = net(**inputs, **further)
    (poses,) = processor.post_process_pose_estimation(outputs, boxes=given)
    return tuple(np.stack([pose[key].numpy() for pose in poses]) for key in ("keypoints", "scores"))


@pytest.mark.parametrize("experts", [1, 6])
def test_points_equal_those_of_transformers(tmp_path: Path, experts: int) -> None:
    folder = vitpose(tmp_path / "pose", experts)
    (tmp_path / "near.py").write_text(DETECTOR)
    model = load_model(f"vitpose:{folder},detector={tmp_path}/near.py:find")
    (found,) = model([IMAGE])
    index = {"dataset_index": torch.zeros(2, dtype=torch.long)} if experts > 1 else {}
    places, sure = decode(folder, BOXES[::-1], **index)  # the highest score first
    assert model.classes == ("person",)
    assert np.array_equal(found.boxes, BOXES[::-1])
    assert np.array_equal(found.data["points"][..., :2], places)
    assert np.array_equal(found.data["points"][..., 2], np.clip(sure, 0, 1))
    mean = found.data["points"][..., 2].mean(axis=1)
    assert found.scores == pytest.approx([0.9 * mean[0], 0.5 * mean[1]])


@pytest.mark.parametrize(("experts", "expert"), [(1, 1), (6, 6), (6, -1)])
def test_an_expert_that_the_network_lacks_is_refused(tmp_path: Path, experts: int, expert: int) -> None:
    folder = vitpose(tmp_path / "pose", experts)
    with pytest.raises(InvalidOption, match=f"numbered 0 to {experts - 1}"):
        load_model(f"vitpose:{folder},expert={expert}")


def test_vitpose_without_a_detector_treats_the_image_as_one_person(tmp_path: Path) -> None:
    folder = vitpose(tmp_path / "pose")
    (found,) = load_model(f"vitpose:{folder}")([IMAGE])
    places, _ = decode(folder, np.array([[0.0, 0.0, 80.0, 60.0]]))
    assert np.array_equal(found.data["points"][..., :2], places)


def test_an_image_without_people_gets_an_empty_prediction(tmp_path: Path) -> None:
    folder = vitpose(tmp_path / "pose")
    (found,) = load_model(f"vitpose:{folder},detector=hog:people")([IMAGE[:50, :30]])
    assert len(found) == 0


def test_the_detector_is_part_of_the_fingerprint(tmp_path: Path) -> None:
    folder = vitpose(tmp_path / "pose")
    prints = {
        load_model(f"vitpose:{folder}{rest}").fingerprint
        for rest in ("", ",detector=hog:people", r",detector=hog:people\,margin=1", ",score=0.1")
    }
    assert len(prints) == 4


def test_a_detector_without_people_is_refused(tmp_path: Path) -> None:
    folder = vitpose(tmp_path / "pose")
    (tmp_path / "near.py").write_text(DETECTOR.replace("person", "cat"))
    with pytest.raises(ModelError, match="a class person; it knows car, cat"):
        load_model(f"vitpose:{folder},detector={tmp_path}/near.py:find")


def test_hf_says_how_to_open_it(tmp_path: Path) -> None:
    folder = vitpose(tmp_path / "pose")
    with pytest.raises(ModelError, match=f"open it as vitpose:{folder}"):
        load_model(f"hf:{folder}")
