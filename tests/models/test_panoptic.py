"""Instance and semantic networks as one panoptic model, by the rule of panopticapi; and panoptic results."""

from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.condition import CLEAN, Condition
from stormproof.core.errors import DatasetError, InvalidOption, InvalidPrediction
from stormproof.core.imagefile import write_image
from stormproof.core.masks import mask_boxes
from stormproof.core.sample import RLE, SEGMENTS, Image, Prediction, Sample, SemanticMap, Truth, panoptic_map
from stormproof.datasets.dataset import SampleDataset
from stormproof.datasets.panoptic import paint_segments
from stormproof.models import load_model
from stormproof.models.classes import match_classes
from stormproof.models.panoptic import Merged, MergeRule
from stormproof.models.predictions import read_predictions
from stormproof.models.python import FunctionModel

SIZE = (20, 30)
SCRIPT = """
import numpy as np
from stormproof.core.sample import Prediction, RLE

def objects(images):
    mask = np.zeros(images[0].shape[:2], bool)
    mask[5:15, 5:15] = True
    return [Prediction([[5, 5, 15, 15]], [0.9], [0], (RLE.from_mask(mask),)) for _ in images]
objects.classes, objects.semantic_classes = ("person",), ()

def areas(images):
    return [Prediction(semantic=np.ones(image.shape[:2], np.uint8)) for image in images]
areas.classes, areas.semantic_classes = (), ("pedestrian", "road")
"""


def rectangle(x1: int, y1: int, x2: int, y2: int) -> RLE:
    mask = np.zeros(SIZE, np.bool_)
    mask[y1:y2, x1:x2] = True
    return RLE.from_mask(mask)


def objects(scores: Sequence[float], masks: Sequence[RLE], labels: Sequence[int]) -> Prediction:
    return Prediction(mask_boxes(masks), np.array(scores), np.array(labels), tuple(masks))


def segments(found: np.ndarray) -> dict[tuple[int, int], int]:
    """The pixels of each segment, by class and number."""
    numbers, pixels = np.unique(found[found > 0], return_counts=True)
    return {(int(n) // SEGMENTS - 1, int(n) % SEGMENTS): int(p) for n, p in zip(numbers, pixels, strict=True)}


def test_the_highest_scored_object_takes_its_pixels_first() -> None:
    """Of the second, 60 of 100 pixels are left: it stays. Of the third, 40: it goes. The last is unsure."""
    found = objects(
        [0.6, 0.9, 0.7, 0.4],
        [rectangle(6, 0, 16, 10), rectangle(0, 0, 10, 10), rectangle(0, 4, 10, 14), rectangle(20, 0, 30, 10)],
        [2, 1, 1, 1],
    )
    stuff = np.full(SIZE, -1)
    assert segments(MergeRule().merge(found, stuff, found.labels)) == {(1, 0): 100, (2, 0): 60}
    assert segments(MergeRule(overlap=0.7).merge(found, stuff, found.labels)) == {
        (1, 0): 100, (1, 1): 40, (2, 0): 60,
    }  # fmt: skip
    assert (1, 1) in segments(MergeRule(score=0.3).merge(found, stuff, found.labels))


def test_stuff_fills_the_rest_and_small_segments_are_dropped() -> None:
    found = objects([0.9], [rectangle(0, 0, 30, 10)], [0])
    stuff = np.full(SIZE, 3)
    stuff[:, 25:] = 4
    stuff[19] = -1
    rule = MergeRule(area=46)
    assert segments(rule.merge(found, stuff, found.labels)) == {(0, 0): 300, (3, 0): 225}
    assert segments(MergeRule(area=45).merge(found, stuff, found.labels))[4, 0] == 45


def test_the_dataset_decides_which_classes_are_things(tmp_path: Path) -> None:
    def model(names: tuple[str, ...], maps: tuple[str, ...], said: Prediction) -> FunctionModel:
        return FunctionModel(lambda images: [said] * len(images), "net", names, maps, "1")

    sign, person = rectangle(0, 0, 10, 20), rectangle(10, 0, 20, 20)
    both = model(("stop sign", "person"), (), objects([0.9, 0.9], [sign, person], [0, 1]))
    plane = np.zeros(SIZE, np.uint8)
    plane[:, 20:] = 1
    areas = model((), ("road", "rider", "background"), Prediction(semantic=plane))
    merged = Merged(both, areas, MergeRule(area=10), both.classes)
    assert merged.semantic_classes == ("road", "rider", "background", "stop sign", "person")
    image = np.zeros((*SIZE, 3), np.uint8)
    (found,) = merged([image])
    assert segments(found.panoptic) == {(3, 0): 200, (4, 0): 200, (1, 0): 200}
    assert len(found) == 2
    assert np.array_equal(found.semantic, plane)
    known = ("person", "rider", "road", "stop sign")
    truth = Truth(semantic=SemanticMap(np.zeros(SIZE, np.uint8)))
    data = SampleDataset.of([Sample("a", image, truth)], classes=("person", "rider"), semantic_classes=known)
    bound = merged.bind(data)
    assert bound.fingerprint != merged.fingerprint
    # Signs are stuff there, so the road is left where one was found; riders are things, and none was found.
    assert segments(bound([image])[0].panoptic) == {(0, 0): 200, (4, 0): 200}
    assert segments(match_classes(bound.semantic_classes, known).apply(bound([image])[0]).panoptic) == {
        (0, 0): 200, (2, 0): 200,
    }  # fmt: skip


def test_opens_by_spec_and_refuses_incomplete_ones(tmp_path: Path) -> None:
    script = tmp_path / "nets.py"
    script.write_text(SCRIPT)
    model = load_model(f"panoptic:{script}:objects,semantic={script}:areas,area=9")
    assert (model.name, model.semantic_classes) == ("objects+areas", ("pedestrian", "road"))
    (found,) = model([np.zeros((20, 30, 3), np.uint8)])
    assert segments(found.panoptic) == {(0, 0): 100, (1, 0): 500}
    with pytest.raises(InvalidOption, match=r"lacks semantic; add ,semantic="):
        load_model(f"panoptic:{script}:objects")
    with pytest.raises(InvalidOption, match="overlap=2"):
        load_model(f"panoptic:{script}:objects,semantic={script}:areas,overlap=2")
    with pytest.raises(InvalidOption, match="name the classes"):
        load_model(f"panoptic:{script}:areas,semantic={script}:areas")


def test_refuses_objects_without_masks() -> None:
    image = np.zeros((*SIZE, 3), np.uint8)

    def answering(said: Prediction, names: tuple[str, ...] = ("a",)) -> FunctionModel:
        return FunctionModel(lambda images: [said], "net", names, names, "1")

    boxes = answering(Prediction([[0, 0, 3, 3]], [0.5], [0]))
    plane = answering(Prediction(semantic=np.zeros(SIZE, np.uint8)))
    with pytest.raises(InvalidOption, match="net returned no masks"):
        Merged(boxes, plane, MergeRule(), ("a",))([image])
    with pytest.raises(InvalidOption, match="net returned no semantic map"):
        Merged(boxes, boxes, MergeRule(), ("a",))([image])


def test_functions_return_ids_and_labels() -> None:
    ids = np.array([[4, 4, 9]])
    (found,) = read_predictions([{"panoptic": ids, "segments": {4: 1, 9: 0}}], [(1, 3)], "mine")
    assert found.panoptic.tolist() == [[2 * SEGMENTS, 2 * SEGMENTS, SEGMENTS]]
    for wrong in ({"panoptic": ids}, {"segments": {4: 1}}, {"panoptic": ids / 2, "segments": {4: 1}}):
        with pytest.raises(InvalidPrediction, match="mine"):
            read_predictions([wrong], [(1, 3)], "mine")
    assert repr(found) == "<prediction: a panoptic map>"


@pytest.fixture
def street() -> SampleDataset:
    image: Image = np.zeros((*SIZE, 3), np.uint8)
    return SampleDataset.of([Sample("7", image)], classes=("car",), semantic_classes=("road", "car"))


def write(folder: Path, condition: str, ids: np.ndarray, info: list[dict[str, int]]) -> None:
    (folder / condition).mkdir(parents=True)
    write_image(folder / condition / "x.png", paint_segments(ids))
    row = {"image_id": 7, "file_name": "x.png", "segments_info": info}
    (folder / f"{condition}.json").write_text(json.dumps({"annotations": [row]}))


def test_reads_results_by_condition(tmp_path: Path, street: SampleDataset) -> None:
    ids = np.zeros(SIZE, np.int32)
    ids[:10], ids[10:15] = 70000, 3
    info = [{"id": 70000, "category_id": 1}, {"id": 3, "category_id": 2}]
    write(tmp_path / "out", "clean", ids, info)
    write(tmp_path / "out", "fog@3", ids, [info[0], {"id": 3, "category_id": 1}])
    model = load_model(f"results:{tmp_path / 'out'}")
    assert {*model.conditions} == {CLEAN, Condition.parse("fog@3")}
    bound = pickle.loads(pickle.dumps(model.bind(street)))
    assert segments(bound.lookup("7", CLEAN).panoptic) == {(0, 0): 300, (1, 0): 150}
    assert segments(bound.lookup("7", Condition.parse("fog@3")).panoptic) == {(0, 0): 150, (0, 1): 300}
    alone = load_model(f"results:{tmp_path / 'out' / 'clean.json'}").bind(street)
    assert segments(alone.lookup("7", CLEAN).panoptic) == {(0, 0): 300, (1, 0): 150}
    with pytest.raises(InvalidPrediction, match="no panoptic map for image '8'"):
        alone.lookup("8", CLEAN)


def test_refuses_results_that_disagree_with_their_png(tmp_path: Path, street: SampleDataset) -> None:
    ids = np.full(SIZE, 5, np.int32)
    write(tmp_path / "a", "clean", ids, [])
    with pytest.raises(InvalidPrediction, match="pixels of segment 5"):
        load_model(f"results:{tmp_path / 'a'}").bind(street).lookup("7", CLEAN)
    write(tmp_path / "b", "clean", ids, [{"id": 5, "category_id": 40}])
    with pytest.raises(DatasetError, match="unknown category_id 40"):
        load_model(f"results:{tmp_path / 'b'}").bind(street).lookup("7", CLEAN)


def test_refuses_too_many_classes() -> None:
    with pytest.raises(InvalidPrediction, match="class 40000"):
        panoptic_map(np.array([[1]]), {1: 40000})
