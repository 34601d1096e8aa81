"""What a graph's outside tells: one line per family of exports."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stormproof.core.errors import ModelError
from stormproof.models.guess import Graph, Tensor, batch_problem, explain_outputs, guess_card

F, N = "float32", "int64"


def graph(
    size, *outputs, layout="NCHW", dtype=F, metadata=None, names=None, inputs=(), channels=None
) -> Graph:
    shape = (1, 3, *size) if layout == "NCHW" else (1, *size, 3)
    names = names or [f"out{i}" for i in range(len(outputs))]
    tensors = tuple(Tensor(name, *output) for name, output in zip(names, outputs, strict=True))
    return Graph((Tensor("images", shape, dtype), *inputs), tensors, metadata or {}, channels)


S = (640, 640)
CASES = {
    "ISNet, a plane before its sources and features": (
        graph(S, *[((1, 1, 640, 640), F)] * 2, ((1, 64, 320, 320), F), ((1, 512, 16, 16), F)),
        "logits",
        None,
    ),
    "a text detector's plane of any size": (
        graph((None, None), ((None, 1, None, None), F)),
        "logits",
        None,
    ),
    "MediaPipe's palms": (
        graph((192, 192), ((1, 2016, 18), F), ((1, 2016, 1), F), layout="NHWC"),
        "blazeface",
        ["palm"],
    ),
    "MediaPipe's poses": (
        graph((224, 224), ((1, 2254, 12), F), ((1, 2254, 1), F), layout="NHWC"),
        "blazeface",
        ["head"],
    ),
    "yolox": (graph(S, ((1, 8400, 85), F)), "yolox", "coco80"),
    "yolox of one class": (graph(S, ((1, 8400, 6), F)), "yolox", None),
    "yolov5": (graph(S, ((1, 25200, 85), F)), "yolov5", "coco80"),
    "yolov5-seg": (graph(S, ((1, 25200, 117), F), ((1, 32, 160, 160), F)), "yolov5", "coco80"),
    "yolov8": (graph(S, ((1, 84, 8400), F)), "yolov8", "coco80"),
    "yolov8-seg": (graph(S, ((1, 116, 8400), F), ((1, 32, 160, 160), F)), "yolov8", "coco80"),
    "yolov10": (graph(S, ((1, 300, 6), F)), "yolov10", None),
    "efficientdet rows": (graph(S, ((1, 100, 7), F)), "efficientdet-rows", "coco91"),
    "tflite": (
        graph(
            (300, 300), ((1, 10, 4), F), ((1, 10), F), ((1, 10), F), ((1,), F), layout="NHWC", dtype="uint8"
        ),
        "postprocessed",
        None,
    ),
    "tf zoo": (
        graph(
            (None, None),
            ((1,), F),
            ((1, None, 4), F),
            ((1, None), F),
            ((1, None), F),
            layout="NHWC",
            dtype="uint8",
            names=["num_detections:0", "detection_boxes:0", "detection_scores:0", "detection_classes:0"],
        ),
        "postprocessed",
        None,
    ),
    "ssd": (graph((300, 300), ((1, 1917, 1, 4), F), ((1, 1917, 90), F), layout="NHWC"), "ssd", "coco91"),
    "ssd before its boxes are decoded": (
        graph((300, 300), ((1, 1917, 4), F), ((1, 1917, 91), F), layout="NHWC", names=["box_encodings", "p"]),
        "ssd-raw",
        "coco91",
    ),
    "scrfd": (graph(S, *[((1, n, w), F) for w in (1, 4, 10) for n in (12800, 3200, 800)]), "scrfd", ["face"]),
    "u²-net": (graph((320, 320), *[((1, 1, 320, 320), F)] * 7), "logits", None),
    "boxes": (graph((320, 320), ((1, 1500, 4), F), ((1, 1500, 80), F)), "boxes", "coco80"),
    "boxes, scores first": (graph((320, 320), ((1, 1500, 80), F), ((1, 1500, 4), F)), "boxes", "coco80"),
    "nanodet": (
        graph((416, 416), *[((1, n, c), F) for c in (80, 32) for n in (2704, 676, 169)]),
        "nanodet",
        "coco80",
    ),
    "picodet": (
        graph((800, 608), *[((1, n, c), F) for c in (10, 32) for n in (7600, 1900, 475, 130)]),
        "picodet",
        None,
    ),
    "picodet, level by level": (
        graph((320, 320), *[((1, n, c), F) for n in (1600, 400, 100, 25) for c in (80, 32)]),
        "picodet",
        "coco80",
    ),
    "centernet with finished boxes": (
        graph((512, 512), *[((1, n, 128, 128), F) for n in (80, 2, 2)], ((1, 100, 6), F)),
        "yolov10",
        None,
    ),
    "fastestdet": (graph((352, 352), ((1, 85, 22, 22), F)), "fastestdet", "coco80"),
    "detr": (
        graph((800, 800), ((1, 100, 92), F), ((1, 100, 4), F), names=["logits", "pred_boxes"]),
        "detr",
        "coco91",
    ),
    "rt-detr": (
        graph(S, ((1, 300, 80), F), ((1, 300, 4), F), names=["logits", "pred_boxes"]),
        "rtdetr",
        "coco80",
    ),
    "detr by its authors": (
        graph((800, 800), ((1, 100, 92), F), ((1, 100, 4), F), names=["pred_logits", "pred_boxes"]),
        "detr",
        "coco91",
    ),
    "rf-detr": (
        graph((560, 560), ((1, 300, 4), F), ((1, 300, 91), F), names=["dets", "labels"]),
        "rtdetr",
        "coco91",
    ),
    "logits, any size": (
        graph((None, None), ((None, 150, None, None), F), names=["logits"]),
        "logits",
        "ade150",
    ),
    "rt-detr with sizes": (
        graph(
            S,
            ((1, 300), N),
            ((1, 300, 4), F),
            ((1, 300), F),
            names=["labels", "boxes", "scores"],
            inputs=(Tensor("orig_target_sizes", (1, 2), N),),
        ),
        "labelled",
        None,
    ),
    "torchvision": (graph(S, ((None, 4), F), ((None,), N), ((None,), F)), "torchvision", None),
    "mask r-cnn": (
        graph(S, ((None, 4), F), ((None,), N), ((None,), F), ((None, 1, 640, 640), F)),
        "torchvision",
        None,
    ),
    "logits": (graph((512, 512), ((1, 19, 128, 128), F)), "logits", "cityscapes19"),
    "logits and aux": (
        graph(S, ((1, 21, 640, 640), F), ((1, 21, 640, 640), F), names=["out", "aux"]),
        "logits",
        "voc21",
    ),
    "logits, channels last": (graph((513, 513), ((1, 65, 65, 21), F), layout="NHWC"), "logits", "voc21"),
    "arg-max": (graph((513, 513), ((1, 513, 513), N), layout="NHWC", channels=21), "argmax", "voc21"),
    "arg-max, classes unknown": (
        graph((513, 513), ((1, 513, 513, 1), "uint8"), layout="NHWC"),
        "argmax",
        None,
    ),
}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_recognises_the_family_of_an_export(case: str) -> None:
    outside, decoder, classes = CASES[case]
    found = guess_card(outside)
    assert found.get("decoder") == decoder
    assert found.get("classes") == classes


def test_puts_named_outputs_in_the_order_of_the_decoder() -> None:
    assert guess_card(CASES["tf zoo"][0])["outputs"] == [
        "detection_boxes:0",
        "detection_classes:0",
        "detection_scores:0",
        "num_detections:0",
    ]
    assert guess_card(CASES["boxes, scores first"][0])["outputs"] == ["out1", "out0"]
    assert guess_card(CASES["rt-detr with sizes"][0])["size_input"] == "orig_target_sizes"


def test_finished_boxes_take_precedence_over_raw_maps() -> None:
    assert guess_card(CASES["centernet with finished boxes"][0])["outputs"] == ["out3"]
    raw = graph(S, ((1, 8400, 6), F), ((1, 1, 80, 80), F), ((1, 1, 40, 40), F))
    assert guess_card(raw).get("decoder") != "yolov10"  # YOLOX of one class: a row per cell is not finished


def test_a_classifier_is_not_taken_for_a_segmenter() -> None:
    assert "decoder" not in guess_card(graph((224, 224), ((1, 1000, 1, 1), F)))


@pytest.mark.parametrize(
    "outputs",
    [
        [((1, 1, 1, 1404), F), ((1, 1, 1, 1), F)],  # landmarks and a score
        [((1, 1000), F)],  # a classifier
        [((1, None), N)],  # a text recogniser that has chosen its characters
        [((None, None, 18710), F)],  # one that has not
    ],
)
def test_says_of_other_networks_that_they_are_not_supported(outputs: list) -> None:
    other = graph((48, None), *outputs)
    assert "decoder" not in guess_card(other)
    assert "Stormproof tests detectors and segmenters" in explain_outputs(other)
    assert "decoder=NAME" in explain_outputs(graph(S, ((1, 3, 5, 7), F), ((1, 9), F)))


def test_recognises_names_as_paddle_writes_them() -> None:
    outside = CASES["picodet"][0]
    named = Graph(outside.inputs, outside.outputs, {"character": "text\ntitle"})
    assert guess_card(named)["classes"] == ["text", "title"]


sides = st.none() | st.sampled_from([1, 2, 3, 4, 6, 7, 16, 32, 64, 84, 85, 91, 336])
shapes = st.lists(sides, max_size=5).map(tuple)
literals = st.sampled_from(["[64, 64]", "64", "{0: 'a'}", "{0: 'a', 'b': 1}", "(", "[1]", "None", "['a']"])


@given(
    st.lists(shapes, min_size=1, max_size=2),
    st.lists(st.tuples(shapes, st.sampled_from([F, N, "bool", "seq(tensor(float))"])), max_size=8),
    st.dictionaries(st.sampled_from(["names", "imgsz", "mean", "std", "character", "task"]), literals),
)
def test_any_graph_is_guessed_or_refused(inputs, outputs, metadata) -> None:
    names = ("logits", "pred_boxes", "labels", "dets", "out", "boxes", "scores", "a")
    tensors = tuple(Tensor(name, *output) for name, output in zip(names, outputs, strict=False))
    outside = Graph(tuple(Tensor(f"in{i}", shape, F) for i, shape in enumerate(inputs)), tensors, metadata)
    with suppress(ModelError):
        guess_card(outside)


def test_a_column_for_nothing_is_left_out_where_the_classes_are_known() -> None:
    assert guess_card(CASES["ssd before its boxes are decoded"][0])["options"] == {"background": True}
    own = graph(
        (300, 300), ((1, 1917, 4), F), ((1, 1917, 24), F), layout="NHWC", names=["box_encodings", "p"]
    )
    assert "options" not in guess_card(own)  # a list of its own names may name nothing, too


def test_reads_the_first_of_equal_planes() -> None:
    assert guess_card(CASES["u²-net"][0])["outputs"] == ["out0"]


def test_guesses_the_normalisation_of_detr() -> None:
    """Networks of 80 classes are RT-DETR's kin, all others keep to what DETR began with."""
    assert "mean" not in guess_card(CASES["rt-detr"][0])["input"]
    found = guess_card(CASES["rf-detr"][0])
    assert found["outputs"] == ["labels", "dets"]
    assert found["input"]["mean"] == (123.675, 116.28, 103.53)
    assert found["input"]["size"] == (560, 560)


def test_reports_a_network_with_a_fixed_batch_size() -> None:
    several = Graph((Tensor("x", (10, 3, 32, 32), F),), (Tensor("y", (10, 1, 8, 8), F),))
    assert batch_problem(several).startswith("it takes 10 images at once; export it for 1")
    assert not batch_problem(CASES["yolox"][0])


def test_finds_the_image_among_several_inputs() -> None:
    mask, pixels = Tensor("pixel_mask", (1, 64, 64), N), Tensor("pixel_values", (1, 3, 64, 96), F)
    outside = Graph((mask, pixels), (Tensor("logits", (1, 19, 16, 24), F),))
    assert guess_card(outside)["input"]["size"] == (64, 96)


def test_reads_the_metadata_of_ultralytics_exports() -> None:
    metadata = {"names": "{0: 'cat', 1: 'dog'}", "imgsz": "[320, 320]", "task": "detect"}
    outside = Graph(
        (Tensor("images", (None, 3, None, None), F),), (Tensor("output0", (None, 6, None), F),), metadata
    )
    found = guess_card(outside)
    assert found["classes"] == ["cat", "dog"]
    assert found["input"]["size"] == (320, 320)
    assert found["decoder"] == "yolov8"
    with pytest.raises(ModelError, match="metadata names"):
        guess_card(graph(S, ((1, 84, 8400), F), metadata={"names": "__import__('os').system('true')"}))


def test_leaves_open_what_cannot_be_inferred() -> None:
    assert "decoder" not in guess_card(graph(S, ((1, 5, 5, 5, 5), F)))
    unsure = graph(S, ((1, 100, 4), F), ((1, 100, 7), F), names=["pred_boxes", "logits"])
    assert guess_card(unsure)["outputs"] == ["logits", "pred_boxes"]
    assert "decoder" not in guess_card(unsure)
    with pytest.raises(ModelError, match="no input for an image"):
        guess_card(Graph((Tensor("x", (1, 7), F),), (Tensor("y", (1,), F),)))
