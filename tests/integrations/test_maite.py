"""MAITE: an evaluation by its own tasks around our corruption, and its datasets and models in our runs."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import stormproof as sp
from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.integrations import maite as ours
from stormproof.integrations.maite import Augmentation, Target
from stormproof.models.builtin import find_builtin
from stormproof.world.classes import OBJECTS
from stormproof.world.samples import render

SCENES = range(4)
LABELS = dict(enumerate(OBJECTS))


class Scenes:
    """A MAITE dataset."""

    metadata: ClassVar = {"id": "scenes", "index2label": LABELS}

    def __init__(self) -> None:
        self._samples = [render(0, "test", index).sample for index in SCENES]

    def __len__(self) -> int:
        return len(self._samples)

    def __getitem__(self, index: int, /) -> tuple:
        sample = self._samples[index]
        objects = sample.truth.instances
        target = Target(objects.boxes, objects.labels, np.ones(len(objects)))
        return sample.image.transpose(2, 0, 1), target, {"id": f"scene-{index}"}


class Detector:
    """A MAITE model."""

    metadata: ClassVar = {"id": "detector", "index2label": LABELS}

    def __init__(self) -> None:
        find_builtin("street-grid")
        self._model = sp.open_model("builtin:street-grid")

    def __call__(self, batch, /) -> list[Target]:
        found = self._model([np.ascontiguousarray(image.transpose(1, 2, 0)) for image in batch])
        return [Target(one.boxes, one.labels, one.scores) for one in found]


class CocoAP:
    """A MAITE metric: COCO's AP by pycocotools."""

    metadata: ClassVar = {"id": "AP"}

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        self.truth, self.found, self.images = [], [], []

    def update(self, predictions, targets, metadata) -> None:
        for found, target, own in zip(predictions, targets, metadata, strict=True):
            image = len(self.images)
            self.images.append({"id": image, "name": own["id"]})
            for part, listed in ((target, self.truth), (found, self.found)):
                for box, label, score in zip(part.boxes, part.labels, part.scores, strict=True):
                    x1, y1, x2, y2 = map(float, box)
                    listed.append({
                        "id": len(listed) + 1, "image_id": image, "category_id": int(label), "iscrowd": 0,
                        "bbox": [x1, y1, x2 - x1, y2 - y1], "area": (x2 - x1) * (y2 - y1),
                        "score": float(score),
                    })  # fmt: skip

    def compute(self) -> dict[str, float]:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval

        truth = COCO()
        truth.dataset = {
            "images": self.images, "annotations": self.truth,
            "categories": [{"id": k, "name": name} for k, name in LABELS.items()],
        }  # fmt: skip
        truth.createIndex()
        judged = COCOeval(truth, truth.loadRes(self.found), "bbox")
        judged.evaluate()
        judged.accumulate()
        judged.summarize()
        return {"AP": float(judged.stats[0])}


def test_an_evaluation_by_maite_around_our_corruption_equals_our_own_score(tmp_path: Path) -> None:
    tasks = pytest.importorskip("maite.tasks")
    model, data = Detector(), Scenes()
    found = {}
    for condition in ("clean", "snow@3"):
        result, _, _ = tasks.evaluate(
            model=model, dataset=data, metric=CocoAP(), augmentation=Augmentation(condition), batch_size=3
        )
        found[condition] = result["AP"]
    run = sp.run(
        ours.model(model), ours.dataset(data), conditions="snow@3", out=tmp_path / "run", progress=False
    )
    cells = run.score().per_condition["AP"]
    assert cells["snow@3"] < cells["clean"]
    assert {name: cells[name] for name in found} == pytest.approx(found, abs=1e-12)


def test_specs_name_a_model_and_a_dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    dataset = ours.open_dataset("test_maite:Scenes")
    model = ours.open_model("test_maite:Detector")
    assert (dataset.name, len(dataset), dataset.ids[1]) == ("scenes", len(SCENES), "scene-1")
    assert dataset.classes == model.classes == tuple(OBJECTS)
    assert sp.open_dataset("maite:test_maite:Scenes").fingerprint == dataset.fingerprint
    sample = dataset[2]
    assert dataset.size(2) == sample.image.shape[:2]
    assert len(model([sample.image])[0]) > 0


def test_pixels_follow_from_the_id_whatever_the_batch() -> None:
    data, noise = Scenes(), Augmentation("gaussian_noise@3", seed=7)
    inputs, targets, metadata = zip(*(data[i] for i in range(3)), strict=True)
    together = noise((inputs, targets, metadata))[0]
    alone = noise((inputs[2:], targets[2:], metadata[2:]))[0]
    assert np.array_equal(together[2], alone[0])
    expected = sp.corrupt_image(data._samples[2].image, "gaussian_noise@3", seed=7, image_id="scene-2")
    assert np.array_equal(alone[0].transpose(1, 2, 0), expected)


def test_floats_and_tensors_come_back_as_they_were() -> None:
    torch = pytest.importorskip("torch")
    image, target, metadata = Scenes()[0]
    dark = Augmentation("contrast@3")
    (exact,), _, _ = dark(([image], [target], [metadata]))
    (floats,), _, _ = dark(([image.astype(np.float32) / 255], [target], [metadata]))
    (tensor,), _, _ = dark(([torch.from_numpy(image)], [target], [metadata]))
    assert floats.dtype == np.float32
    assert np.array_equal(np.rint(floats * 255), exact)
    assert tensor.dtype == torch.uint8
    assert np.array_equal(tensor.numpy(), exact)


def test_boxes_move_with_the_image() -> None:
    image, target, metadata = Scenes()[0]
    _, (moved,), _ = Augmentation("geometric_distortion@4")(([image], [target], [metadata]))
    assert 0 < len(moved.boxes) <= len(target.boxes)
    assert len(moved.boxes) == len(moved.labels) == len(moved.scores)
    assert not np.allclose(moved.boxes[0], target.boxes[0])


def test_what_is_not_maites_is_refused() -> None:
    with pytest.raises(InvalidOption, match="no metadata"):
        ours.dataset([1, 2])
    with pytest.raises(InvalidImage, match="from 0 to 1"):
        Augmentation("fog@3")(([np.full((3, 8, 8), 200.0)], [None], [{"id": "a"}]))
    with pytest.raises(InvalidImage, match="3×H×W"):
        Augmentation("fog@3")(([np.zeros((8, 8, 3), np.uint8)], [None], [{"id": "a"}]))
