"""Nine pretrained networks on real photographs find what they should, by their cards and without."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.sample import Prediction, Sample
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import Dataset
from stormproof.metrics.coco import box_numbers
from stormproof.metrics.records import DetectionTruth
from stormproof.models import load_model
from stormproof.models.classes import NO_PIXEL, match_classes
from stormproof.models.network import Network

pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")

CARDS = Path(__file__).parent / "cards"
# What the graph does not tell, and the AP50 that the network has on the first 60 photographs.
DETECTORS = {
    "efficientdet_lite0_coco_qdq": (",classes=coco91", 49.5),
    "ssdlite_mobilenetv2_300_coco_w16": ("", 49.4),
    "yolox_nano_416_coco": ("", 50.3),
    "nanodet_m_416_coco": ("", 43.8),
    "fastestdet_352_coco": ("", 35.7),
    "ssd_mobilenet_v1_300_coco_qdq": (",classes=coco91", 33.6),
    "yolo_fastest_1.1_xl_320_coco": ("", 44.4),
}
VOC, CITYSCAPES = "deeplabv3_mnv2_513_voc_qdq", "deeplab_edgetpuslim_513_cityscapes_qdq"


@cache
def with_card(shared: Path, name: str, card: str = "") -> Network:
    found = load_model(f"onnx:{shared}/models/{name}.onnx,card={CARDS}/{card or name}.yaml")
    assert isinstance(found, Network)
    return found


@cache
def photographs(shared: Path) -> Dataset:
    return read_dataset(f"coco:{shared}/data/coco/instances_val2017.json,masks=false")


@cache
def photograph(shared: Path, index: int) -> Sample:
    """Decoded once for all networks."""
    return photographs(shared)[index]


@cache
def found_in(shared: Path, name: str, index: int) -> Prediction:
    """What a network finds in a photograph; asked once for all tests."""
    return with_card(shared, name)([photograph(shared, index).image])[0]


def ap50(shared: Path, name: str, count: int) -> float:
    data = photographs(shared)
    match = match_classes(with_card(shared, name).classes, data.classes)
    assert not match.unmatched_dataset
    truth, said = [], {}
    for i in range(count):
        sample = photograph(shared, i)
        assert sample.truth.instances is not None
        truth.append((sample.id, sample.truth.instances))
        said[sample.id] = match.apply(found_in(shared, name, i))
    return 100 * box_numbers(DetectionTruth.of(truth, data.classes), said)["AP50"]


@cache
def scenes(spec: str) -> Dataset:
    return read_dataset(spec)


@cache
def confusion(shared: Path, name: str, card: str, spec: str, index: int) -> np.ndarray:
    """Pixels of a scene by true and predicted class, the last column for classes that the dataset lacks."""
    model, data = with_card(shared, name, card), scenes(spec)
    match = match_classes(model.semantic_classes, data.semantic_classes)
    kinds = len(data.semantic_classes)
    sample = data[index]
    truth, said = sample.truth.semantic, match.apply(model([sample.image])[0]).semantic
    assert truth is not None
    assert said is not None
    valid = truth.labels != truth.ignore
    column = np.where(said == NO_PIXEL, kinds, said)[valid]
    cells = truth.labels[valid] * np.int64(kinds + 1) + column
    return np.bincount(cells, minlength=kinds * (kinds + 1)).reshape(kinds, kinds + 1)


def miou(shared: Path, name: str, card: str, spec: str, count: int | None = None) -> float:
    """In per cent; a class that the dataset does not have is a miss, and nobody's false alarm."""
    count = count or len(scenes(spec))
    table = np.sum([confusion(shared, name, card, spec, i) for i in range(count)], axis=0)
    hits = np.diagonal(table)
    union = table.sum(axis=1) + table[:, :-1].sum(axis=0) - hits
    return 100 * float(np.mean(hits[union > 0] / union[union > 0]))


def on_voc(shared: Path, count: int | None = None) -> float:
    return miou(shared, VOC, VOC, f"voc-seg:{shared}/data/voc2012", count)


def on_camvid(shared: Path, count: int | None = None) -> float:
    return miou(shared, CITYSCAPES, "deeplab_cityscapes_on_camvid", f"camvid:{shared}/data/camvid", count)


@pytest.mark.parametrize("name", [*DETECTORS, VOC, CITYSCAPES])
def test_guesses_equal_the_cards(shared: Path, name: str) -> None:
    options = DETECTORS.get(name, ("", 0))[0]
    guessed, written = load_model(f"onnx:{shared}/models/{name}.onnx{options}"), with_card(shared, name)
    assert isinstance(guessed, Network)
    assert guessed.card.input == written.card.input
    assert guessed.card.decoder == written.card.decoder
    assert guessed.card.limits == written.card.limits
    assert guessed.names == written.names
    assert guessed.name == name  # without a card, the file's


@pytest.mark.parametrize("name", DETECTORS)
def test_detectors_find_things(shared: Path, name: str) -> None:
    """On eight photographs: enough to tell a wrong channel order, box format or class list."""
    assert ap50(shared, name, 8) > 20


def test_deeplab_reaches_its_miou_on_voc(shared: Path) -> None:
    assert on_voc(shared, 8) > 50


def test_deeplab_reaches_its_miou_on_camvid(shared: Path) -> None:
    assert on_camvid(shared, 6) > 35


@pytest.mark.slow
@pytest.mark.parametrize("name", DETECTORS)
def test_networks_reach_their_ap_on_sixty_photographs(shared: Path, name: str) -> None:
    assert ap50(shared, name, 60) == pytest.approx(DETECTORS[name][1], abs=1)


@pytest.mark.slow
def test_deeplab_has_its_miou_on_all_scenes(shared: Path) -> None:
    voc, camvid = on_voc(shared), on_camvid(shared)
    print(f"VOC mIoU {voc:.1f}, CamVid mIoU {camvid:.1f}")
    assert voc == pytest.approx(81.1, abs=2)
    assert camvid == pytest.approx(50.7, abs=2)
