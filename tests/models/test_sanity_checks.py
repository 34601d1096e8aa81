"""Networks as users bring them: each is read right, or refused with the fix."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.sample import Prediction
from stormproof.models import load_model
from stormproof.models.candidates import Candidates, Limits, to_prediction
from stormproof.models.card import assemble_card, complete_card
from stormproof.models.decoders import DECODERS
from stormproof.models.decoding import blazeface, centernet, plain_boxes, score_planes
from stormproof.models.geometry import plan_fit
from stormproof.models.guess import Graph, Tensor, explain_outputs, guess_card
from stormproof.models.network import Network
from stormproof.models.sanity_checks import describe_model, find_faults

INPUT = {"size": (64, 64)}


def network(decoder: str, names: tuple[str, ...], outputs: list[np.ndarray], **card) -> Network:
    whole = complete_card({}, {"decoder": decoder, "input": INPUT, "classes": list(names), **card}, "card")
    return Network("net", whole, lambda batch: [output[None] for output in outputs], (), names)


def graph(*outputs: tuple[str, tuple[int, ...]], metadata=None, size=64) -> Graph:
    tensors = tuple(Tensor(name, shape, "float32") for name, shape in outputs)
    return Graph((Tensor("in", (1, 3, size, size), "float32"),), tensors, metadata or {})


def test_boxes_in_fractions_are_not_taken_for_pixels() -> None:
    rows = np.random.default_rng(0).uniform(0, 1, (20, 4))
    with pytest.raises(ModelError, match="fractions: true"):
        plain_boxes([rows, np.ones((20, 3))], (300, 300))
    assert plain_boxes([rows, np.ones((20, 3))], (300, 300), fractions=True).boxes.max() > 100


def test_background_does_not_use_up_the_limit_of_detections() -> None:
    corners = np.array([[i, 0, i + 1.0, 9] for i in range(50)])
    scores = np.tile([0.9, 0.2], (50, 1))  # background is likelier everywhere
    fit = plan_fit((64, 64), (64, 64), "stretch")
    kept = to_prediction(Candidates(corners, scores), fit, Limits(0.01, 10, 0.5), background=[0])
    assert kept.labels.tolist() == [1] * 10
    said = network("boxes", ("background", "cat"), [corners * 1.2, scores], keep=10)(
        [np.zeros((64, 64, 3), np.uint8)]
    )
    assert said[0].labels.tolist() == [1] * 10


def test_yolox_cuts_the_sides_of_its_letterbox() -> None:
    fit = plan_fit((427, 640), (416, 416), "letterbox", "top-left", rounding="down")
    ratio = min(416 / 427, 416 / 640)
    assert fit.inner == (int(427 * ratio), int(640 * ratio)) == (277, 416)
    assert plan_fit((427, 640), (416, 416), "letterbox").inner == (278, 416)
    assert fit.boxes_to_image(np.array([[0.0, 0, 65, 65]]))[0, 2] == 65 / ratio
    card = complete_card({}, {"decoder": "yolox", "input": INPUT, "classes": "coco80"}, "card")
    assert card.input.rounding == "down"


def test_efficientdet_counts_as_coco_does() -> None:
    assert guess_card(graph(("rows", (1, 100, 7))))["classes"] == "coco91"
    with pytest.raises(ModelError, match="coco91"):
        assemble_card(
            None, None, {}, {"decoder": "efficientdet-rows", "classes": "coco80", "input": INPUT}, "net"
        )
    rows = np.array([[0, 1, 1, 30, 30, 0.9, 85.0]])
    net = network("efficientdet-rows", tuple(f"c{i}" for i in range(80)), [rows])
    with pytest.raises(ModelError, match=r"label 85.*coco91"):
        net([np.zeros((64, 64, 3), np.uint8)])


def test_centernet_is_known_by_its_planes_in_either_layout() -> None:
    found = guess_card(graph(("heat", (1, 80, 16, 16)), ("wh", (1, 2, 16, 16)), ("reg", (1, 2, 16, 16))))
    assert (found["decoder"], found["classes"]) == ("centernet", "coco80")
    dice = np.random.default_rng(1)
    planes = [dice.normal(size=(count, 16, 16)) for count in (5, 2, 2)]
    last = [plane.transpose(1, 2, 0) for plane in planes]
    assert np.array_equal(centernet(planes, (64, 64)).boxes, centernet(last, (64, 64)).boxes)


def test_unknown_outputs_are_named() -> None:
    strange = graph(("a", (1, 3, 5, 7)), ("b", (1, 9)))
    with pytest.raises(ModelError, match="a 1×3×5×7, b 1×9"):
        complete_card(guess_card(strange), {}, "net.onnx", explain_outputs(strange))


@pytest.mark.parametrize(
    ("shape", "metadata", "expected"),
    [
        ((1, 56, 84), {"task": "pose", "kpt_shape": "[17, 3]", "names": "{0: 'person'}"}, "yolov8-pose"),
        ((1, 300, 57), {"kpt_shape": "[17, 3]", "names": "{0: 'person'}"}, "yolov10-pose"),
        ((1, 56, 84), {}, "yolov8-pose"),
    ],
)
def test_a_pose_network_is_recognised(shape: tuple[int, ...], metadata: dict, expected: str) -> None:
    card = guess_card(graph(("out", shape), metadata=metadata))
    assert card["decoder"] == expected
    assert card["classes"] == ["person"]
    assert card["options"] == {"points": [17, 3]}


@pytest.mark.parametrize(("shape", "decoder"), [((1, 7, 84), "yolov8-obb"), ((1, 300, 7), "yolov10-obb")])
def test_oriented_boxes_are_recognised_by_their_metadata(shape: tuple[int, ...], decoder: str) -> None:
    metadata = {"task": "obb", "names": "{0: 'ship', 1: 'plane'}"}
    card = guess_card(graph(("out", shape), metadata=metadata))
    assert (card["decoder"], card["classes"]) == (decoder, ["ship", "plane"])


def test_an_unknown_option_lists_the_allowed_ones() -> None:
    with pytest.raises(ModelError, match="strides"):
        complete_card({}, {"decoder": "yolox", "input": INPUT, "options": {"stride": 8}}, "card")


@pytest.mark.parametrize(
    ("text", "form"),
    [("yolo11n.pt", "ultralytics:yolo11n.pt,trust=true"), ("m.pt", "torch:m.pt"),
     ("d.json", "results:d.json")],
)  # fmt: skip
def test_a_file_without_a_kind_gets_an_error_that_names_its_kind(text: str, form: str) -> None:
    with pytest.raises(InvalidOption, match="write " + form.replace(".", r"\.")):
        load_model(text)


def test_code_in_the_current_folder_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from stormproof.core.loading import load_attribute

    (tmp_path / "my_own_module_of_models.py").write_text("def make():\n    return 7\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", [p for p in __import__("sys").path if p])
    assert load_attribute("my_own_module_of_models:make")() == 7


def test_one_plane_of_probabilities_is_not_taken_for_logits() -> None:
    plane = np.array([[[0.1, 0.9]]])
    with pytest.raises(ModelError, match="probabilities: true"):
        score_planes([plane], (1, 2))
    assert (score_planes([plane], (1, 2), probabilities=True) > 0).tolist() == [[[False, True]]]


def test_blazeface_reads_boxes_around_anchors() -> None:
    rows, scores = np.zeros((896, 16)), np.full((896, 1), -50.0)
    rows[0, :4], scores[0] = (4, 0, 20, 10), 3
    found = blazeface([rows, scores], (128, 128))
    assert found.boxes[0].tolist() == [
        -2,
        -1,
        18,
        9,
    ]  # around the first cell's centre (4, 4), moved by (4, 0)
    assert found.scores.argmax() == 0
    shapes = (("regressors", (1, 896, 16)), ("classificators", (1, 896, 1)))
    assert guess_card(graph(*shapes, size=128))["decoder"] == "blazeface"


SHAPES = [(0,), (1,), (6,), (4, 4), (5, 6), (85, 30), (30, 85), (3, 8, 8), (8, 8, 3), (2, 3, 4, 5), (0, 4)]
NUMPYS_WORDS = re.compile(
    r"ax[ei]s|gufunc|matmul|broadcast|index \d|out of (range|bounds)|reshape|concatenat|unpack|OpenCV"
)


@pytest.mark.parametrize("decoder", DECODERS)
@pytest.mark.filterwarnings("error")
def test_outputs_of_any_shape_are_read_or_refused_in_our_words(decoder: str) -> None:
    dice = np.random.default_rng(4)
    said = set()
    for _ in range(300):
        chosen = [SHAPES[i] for i in dice.integers(0, len(SHAPES), dice.integers(1, 5))]
        scale = dice.choice([0.3, 100.0])
        outputs = [dice.normal(0.5, scale, shape).astype(np.float32) for shape in chosen]
        try:
            network(decoder, ("cat", "dog"), outputs)([np.zeros((48, 64, 3), np.uint8)])
        except ModelError as error:
            said.add(str(error))
    assert said
    assert not [line for line in said if NUMPYS_WORDS.search(line)]


def test_one_line_describes_how_a_model_is_read() -> None:
    line = describe_model(network("yolox", ("cat", "dog"), []))
    assert all(part in line for part in ("yolox", "64×64", "letterbox", "BGR", "2 classes (cat, dog)"))
    assert "score ≥ 0.001, NMS at IoU 0.65, at most 300 boxes per image" in line
    assert "score ≥ 0.2, no NMS" in describe_model(network("detr", ("cat",), [], score=0.2))
    assert "score" not in describe_model(network("logits", ("cat", "dog"), []))
    assert "stretch (cubic)" in describe_model(network("picodet", ("cat",), []))
    assert "(linear)" not in line


def test_reports_suspicious_predictions_with_their_cause() -> None:
    def faults(network: Network, *predictions: Prediction) -> list[str]:
        return [words for words, _ in find_faults(network, predictions, [(480, 640)] * len(predictions))]

    net = network("yolox", tuple(f"c{i}" for i in range(9)), [])
    many = np.tile([10.0, 10, 50, 50], (30, 1))
    said = Prediction(many, np.full(30, 0.6), np.full(30, 4))
    lines = " ".join(faults(net, said))
    assert "only c4" in lines
    assert "threshold" in lines
    small = Prediction(many / 50, np.linspace(0.01, 1, 30), np.arange(30) % 9)
    assert "fractions" in faults(net, small)[0]
    assert "nothing was found" in faults(net, Prediction())[0]
    cells = network("yolov10", tuple(f"c{i}" for i in range(9)), [])
    corner = Prediction(many * 2, np.linspace(0.01, 1, 30), np.arange(30) % 9)
    assert "options: {scale: 4}" in faults(cells, corner, Prediction())[0]
    fine = Prediction(many, np.linspace(0.01, 1, 30), np.arange(30) % 9)
    assert faults(net, fine) == []


@pytest.mark.parametrize("decoder", sorted(DECODERS))
@pytest.mark.parametrize(
    "shapes", [[(7,)], [(3, 5)], [(2, 3, 4)], [(5, 4), (3, 2, 2)], [(9, 6), (4, 4), (2,), (1,)]]
)
def test_outputs_that_do_not_fit_are_refused_in_our_words(
    decoder: str, shapes: list[tuple[int, ...]]
) -> None:
    outputs = [np.full(shape, 0.5, np.float32) for shape in shapes]
    image = np.zeros((48, 64, 3), np.uint8)
    said = ""
    try:
        network(decoder, ("a", "b"), outputs)([image])
    except ModelError as error:
        said = str(error)
    assert not re.search(r"axes|axis|broadcast|gufunc|matmul|ufunc|index \d+|dimension", said)
