"""Class names of models and datasets meet by name."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption
from stormproof.core.sample import RLE, Prediction
from stormproof.models.classes import (
    ALIASES,
    COCO,
    COCO_IDS,
    NO_CLASS,
    NO_PIXEL,
    VOCABULARIES,
    class_lines,
    match_classes,
    normalise,
    resolve_classes,
)
from stormproof.world.classes import OBJECTS, SEMANTIC


def test_every_voc_class_is_a_coco_class() -> None:
    match = match_classes(VOCABULARIES["voc21"], VOCABULARIES["coco80"])
    assert match.unmatched_model == ()
    assert match.labels[0] == NO_CLASS  # background
    assert {COCO[i] for i in match.labels[1:]} >= {
        "tv",
        "motorcycle",
        "airplane",
        "couch",
        "dining table",
        "potted plant",
    }


def test_coco91_is_coco80_with_holes() -> None:
    match = match_classes(VOCABULARIES["coco91"], VOCABULARIES["coco80"])
    assert match.unmatched_model == match.unmatched_dataset == ()
    assert [label for label in match.labels if label != NO_CLASS] == list(range(80))
    assert [i + 1 for i, label in enumerate(match.labels) if label != NO_CLASS] == list(COCO_IDS)


@pytest.mark.parametrize(
    ("model", "dataset", "missing"),
    [
        ("coco80", "kitti8", {"Van", "Person_sitting", "Cyclist", "Misc"}),
        ("coco80", "bdd10", {"rider", "traffic sign"}),
        ("coco80", "cityscapes8", {"rider"}),
        ("cityscapes19", "camvid11", set()),
        (
            "voc20",
            "coco80",
            {*COCO} - set(map(COCO.__getitem__, match_classes(VOCABULARIES["voc20"], COCO).labels)),
        ),
    ],
)
def test_names_the_dataset_classes_that_a_model_lacks(model: str, dataset: str, missing: set[str]) -> None:
    match = match_classes(VOCABULARIES[model], VOCABULARIES[dataset])
    assert {*match.unmatched_dataset} == missing


def test_the_built_in_world_needs_no_translation() -> None:
    assert match_classes(COCO, OBJECTS).unmatched_dataset == ()
    assert match_classes(VOCABULARIES["cityscapes19"], SEMANTIC).unmatched_dataset == ()


def test_an_equal_name_takes_precedence_over_an_alias() -> None:
    match = match_classes(["person", "pedestrian"], ["pedestrian", "person"])
    assert match.labels == (1, 0)
    assert match_classes(["people"], ["rider", "Pedestrian", "person"]).labels == (1,)


def test_a_model_without_names_uses_those_of_the_dataset() -> None:
    assert match_classes((), ["a", "b"]).labels == (0, 1)


def test_predictions_are_relabelled() -> None:
    match = match_classes(["background", "sofa", "zebra"], ["tv", "couch"])
    mask = RLE.from_mask(np.ones((2, 2)))
    boxes = np.tile([0.0, 0, 1, 1], (3, 1))
    semantic = np.array([[0, 1, 2]], np.uint8)
    found = match.apply(
        Prediction(boxes, np.array([0.1, 0.2, 0.3]), np.array([2, 1, 0]), (mask,) * 3, semantic)
    )
    assert found.labels.tolist() == [1]
    assert found.scores.tolist() == [0.2]
    assert found.masks is not None
    assert len(found.masks) == 1
    assert found.semantic is not None
    assert found.semantic.tolist() == [[NO_PIXEL, 1, NO_PIXEL]]
    with pytest.raises(InvalidOption, match="label 3"):
        match.apply(Prediction(boxes[:1], np.array([0.1]), np.array([3])))
    assert len(match.apply(Prediction())) == 0


def test_printed_lines_show_what_did_not_match() -> None:
    match = match_classes(["tvmonitor", "zebra", "cat"], ["tv", "bed", "cat"])
    assert class_lines(match) == [
        "2 of 3 classes of the dataset are scored: tv, cat. The model does not know: bed.",
        "Under another name: tvmonitor is tv.",
        "Predictions of classes that the dataset lacks are dropped: zebra.",
    ]


def test_one_known_class_of_eighty_is_printed_in_one_line() -> None:
    lines = class_lines(match_classes(["person"], COCO))
    assert lines == [
        "1 of 80 classes of the dataset are scored: person. The model does not know: bicycle, car, "
        "motorcycle, airplane, bus and 74 more."
    ]


def test_classes_that_all_match_need_no_line() -> None:
    assert class_lines(match_classes(COCO, COCO)) == []


def test_no_alias_is_listed_twice() -> None:
    names = [normalise(name) for name in chain.from_iterable(ALIASES)]
    assert len(names) == len({*names})


def test_reads_class_lists_from_files(tmp_path) -> None:
    (tmp_path / "names.txt").write_text("cat\n\ndog\n")
    assert resolve_classes("names.txt", tmp_path) == ("cat", "", "dog")
    assert resolve_classes(["a"], None) == ("a",)
    assert resolve_classes(None, None) is None
    assert len(COCO) == 80
