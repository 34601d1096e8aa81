"""Python code as a model: scripts, functions, classes, factories, and answers in several forms."""

from __future__ import annotations

import sys
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, InvalidPrediction, UnknownName
from stormproof.core.sample import RLE, Prediction
from stormproof.models import load_model
from stormproof.models.python import function_model

IMAGES = [np.zeros((20, 30, 3), np.uint8), np.zeros((10, 12, 3), np.uint8)]

FIVE_LINES = """\
import numpy as np
from stormproof import Prediction

def my_detector(images):
    return [Prediction(np.array([[0, 0, 5, 5]]), np.array([0.5]), np.array([0])) for _ in images]
"""


def script(folder: Path, text: str, name: str = "script.py") -> Path:
    (folder / name).write_text(text)
    return folder / name


def answering(folder: Path, answer: str):
    """A model that says `answer` of every image."""
    text = f"import numpy as np\ndef f(images):\n    return [{answer} for image in images]\n"
    return load_model(f"{script(folder, text)}:f")


def test_a_function_of_five_lines_is_a_model(tmp_path: Path) -> None:
    model = load_model(f"{script(tmp_path, FIVE_LINES)}:my_detector")
    first, second = model(IMAGES)
    assert first.boxes.tolist() == second.boxes.tolist() == [[0, 0, 5, 5]]
    assert (model.name, model.classes, model.semantic_classes) == ("my_detector", (), ())


def test_opens_a_module_in_the_working_directory(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "my_package_for_test"
    package.mkdir()
    (package / "__init__.py").touch()
    script(package, FIVE_LINES, "models.py")
    script(tmp_path, FIVE_LINES, "my_single_module.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    for spec in ("my_package_for_test.models:my_detector", "my_single_module:my_detector"):
        assert len(load_model(spec)(IMAGES)) == 2


def test_files_beside_a_script_can_be_imported(tmp_path: Path) -> None:
    script(tmp_path, "BOX = [1, 2, 3, 4]\n", "beside_the_script.py")
    text = (
        "from beside_the_script import BOX\n"
        "def f(images): return [{'boxes': [BOX], 'scores': [1], 'labels': [0]} for _ in images]\n"
    )
    assert load_model(f"{script(tmp_path, text)}:f")(IMAGES)[0].boxes.tolist() == [[1, 2, 3, 4]]


HELPED = """\
from helper_a import BOX
def f(images):
    from pack.deep import SCORE
    return [{'boxes': [BOX], 'scores': [SCORE], 'labels': [0]} for _ in images]
"""


def with_helpers(folder: Path, box: str = "[1, 2, 3, 4]", score: str = "0.5") -> str:
    (folder / "pack").mkdir(parents=True)
    script(folder, f"BOX = {box}\n", "helper_a.py")
    script(folder, "", "pack/__init__.py")
    script(folder, "from . import deeper\nSCORE = deeper.SCORE\n", "pack/deep.py")
    script(folder, f"SCORE = {score}\n", "pack/deeper.py")
    script(folder, "not imported\n", "unrelated.py")
    return f"{script(folder, HELPED)}:f"


def test_modules_beside_a_script_are_part_of_its_fingerprint(tmp_path: Path) -> None:
    spec = with_helpers(tmp_path / "a")
    first = load_model(spec)
    assert first(IMAGES)[0].scores.tolist() == [0.5]
    assert load_model(spec).fingerprint == first.fingerprint
    assert load_model(with_helpers(tmp_path / "copy")).fingerprint == first.fingerprint  # wherever it is
    script(tmp_path / "a", "# changed\n", "unrelated.py")
    assert load_model(spec).fingerprint == first.fingerprint
    for file, text in (("helper_a.py", "BOX = [1, 2, 3, 40]\n"), ("pack/deeper.py", "SCORE = 0.25\n")):
        before = load_model(spec).fingerprint
        script(tmp_path / "a", text, file)
        assert load_model(spec).fingerprint != before
    (found, _) = load_model(spec)(IMAGES)
    assert (found.boxes.tolist(), found.scores.tolist()) == ([[1, 2, 3, 40]], [0.25])


def test_a_function_in_memory_is_identified_by_the_local_modules_it_uses(tmp_path: Path, monkeypatch) -> None:
    script(tmp_path, "SCORE = 0.5\n", "module_of_a_notebook.py")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    used: dict[str, object] = {}
    exec("import module_of_a_notebook as own, json\ndef f(images): return own.SCORE, json.dumps", used)
    first = function_model(used["f"]).fingerprint
    script(tmp_path, "SCORE = 0.25\n", "module_of_a_notebook.py")
    assert function_model(used["f"]).fingerprint != first


def test_numpys_print_options_do_not_change_an_identity() -> None:
    level = np.float64(0.5)
    first = function_model(lambda images: level).fingerprint
    with np.printoptions(legacy="1.13"):
        assert function_model(lambda images: level).fingerprint == first


def test_scripts_in_two_folders_have_their_own_helpers(tmp_path: Path) -> None:
    """Two models of one plan may each have a helper of the same name."""
    specs = [with_helpers(tmp_path / "a"), with_helpers(tmp_path / "b", box="[5, 6, 7, 8]", score="0.75")]
    for spec in (*specs, specs[0]):
        expected = ([[5, 6, 7, 8]], [0.75]) if spec == specs[1] else ([[1, 2, 3, 4]], [0.5])
        (found, _) = load_model(spec)(IMAGES)
        assert (found.boxes.tolist(), found.scores.tolist()) == expected


def test_modules_of_a_local_package_are_part_of_its_fingerprint(tmp_path: Path, monkeypatch) -> None:
    package = tmp_path / "package_with_parts"
    package.mkdir()
    for name, text in (("__init__", ""), ("deep", "SCORE = 0.5\n"), ("entry", "from .deep import SCORE\n")):
        script(package, text + (FIVE_LINES if name == "entry" else ""), f"{name}.py")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    first = load_model("package_with_parts.entry:my_detector").fingerprint
    script(package, "SCORE = 0.125\n", "deep.py")
    assert load_model("package_with_parts.entry:my_detector").fingerprint != first


def test_refuses_a_script_that_calls_exit(tmp_path: Path) -> None:
    path = script(tmp_path, "import sys\nsys.exit(2)\n")
    with pytest.raises(InvalidOption, match=r"script\.py cannot be run: SystemExit: 2"):
        load_model(f"{path}:f")
    path = script(
        tmp_path, "class F:\n    def __init__(self):\n        raise SystemExit('no licence')\n", "b.py"
    )
    with pytest.raises(InvalidOption, match="cannot make a model: SystemExit: no licence"):
        load_model(f"{path}:F")


def test_a_function_may_declare_classes_and_a_fingerprint(tmp_path: Path) -> None:
    text = FIVE_LINES + "my_detector.classes = ['cat', 'dog']\nmy_detector.fingerprint = 'weights 7'\n"
    model = load_model(f"{script(tmp_path, text)}:my_detector")
    assert model.classes == ("cat", "dog")
    stated = model.fingerprint
    script(tmp_path, text + "# another comment\n")
    assert load_model(f"{tmp_path}/script.py:my_detector").fingerprint == stated


def test_otherwise_the_source_is_the_fingerprint(tmp_path: Path) -> None:
    spec = f"{script(tmp_path, FIVE_LINES)}:my_detector"
    first = load_model(spec).fingerprint
    assert load_model(spec).fingerprint == first
    script(tmp_path, FIVE_LINES.replace("0.5", "0.6"))
    assert load_model(spec).fingerprint != first


def test_opens_classes_and_factories_with_options(tmp_path: Path) -> None:
    text = """
class Detector:
    classes = ("person",)
    def __init__(self, *, score: float = 0.5): self.score = score
    def __call__(self, images):
        return [{"boxes": [[0, 0, 1, 1]], "scores": [self.score], "labels": [0]} for _ in images]
def make(*, score: float = 0.4): return Detector(score=score)
def plain(images, *, score: float = 0.3): return Detector(score=score)(images)
ready = Detector()
"""
    path = script(tmp_path, text)
    for attribute, default in (("Detector", 0.5), ("make", 0.4), ("plain", 0.3), ("ready", 0.5)):
        model = load_model(f"{path}:{attribute}")
        assert model(IMAGES)[0].scores.tolist() == [default]
        if attribute != "ready":
            other = load_model(f"{path}:{attribute},score=0.9")
            assert other(IMAGES)[0].scores.tolist() == [0.9]
            assert other.fingerprint != model.fingerprint
    assert load_model(f"{path}:make").classes == ("person",)
    with pytest.raises(UnknownName, match="It takes: score"):
        load_model(f"{path}:make,scor=1")


def test_reads_dicts_with_masks(tmp_path: Path) -> None:
    mask = "np.pad(np.ones((2, 3)), ((1, image.shape[0] - 3), (4, image.shape[1] - 7)))"
    (found, _) = answering(tmp_path, f"{{'scores': [0.7], 'labels': [1], 'masks': [{mask}]}}")(IMAGES)
    assert found.boxes.tolist() == [[4, 1, 7, 3]]  # the box is the mask's
    assert found.masks is not None
    assert isinstance(found.masks[0], RLE)


def test_a_mask_of_probabilities_is_where_they_exceed_one_half(tmp_path: Path) -> None:
    """Sigmoid masks are above 0 everywhere."""
    mask = "0.4 + 0.2 * np.pad(np.ones((2, 3)), ((1, image.shape[0] - 3), (4, image.shape[1] - 7)))"
    (found, _) = answering(tmp_path, f"{{'scores': [0.7], 'labels': [1], 'masks': [{mask}]}}")(IMAGES)
    assert found.boxes.tolist() == [[4, 1, 7, 3]]
    assert found.masks is not None
    assert found.masks[0].area == 6


@pytest.mark.parametrize("top", [255, 256, 257])
def test_maps_of_more_than_256_classes_keep_their_numbers(tmp_path: Path, top: int) -> None:
    (found, _) = answering(
        tmp_path, f"np.pad([[0, {top}]], ((0, image.shape[0] - 1), (0, image.shape[1] - 2)))"
    )(IMAGES)
    assert found.semantic is not None
    assert found.semantic[0, :2].tolist() == [0, top]


@pytest.mark.parametrize("kind", ["np.int64", "np.float32", "bool"])
def test_an_array_is_a_semantic_map(tmp_path: Path, kind: str) -> None:
    (found, _) = answering(tmp_path, f"np.ones(image.shape[:2], {kind})")(IMAGES)
    assert found.semantic is not None
    assert found.semantic.dtype == np.uint8
    assert found.semantic.shape == (20, 30)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ("np.full(image.shape[:2], 0.5)", InvalidPrediction, "fractions"),
        ("np.full(image.shape[:2], -1)", InvalidPrediction, "classes are 0"),
        ("np.full(image.shape[:2], np.nan)", InvalidPrediction, "nan"),
        ("3", InvalidPrediction, "returned int for an image"),
        ("{'boxes': [[0, 0, 1], [1]], 'scores': [1], 'labels': [0]}", InvalidPrediction, "read as numbers"),
        ("{'boxes': [['a']], 'scores': [1], 'labels': [0]}", InvalidPrediction, "read as numbers"),
        ("{'boxes': [0, 0, 1], 'scores': [], 'labels': []}", InvalidPrediction, "n×4 numbers"),
        ("{'masks': 3, 'scores': [1], 'labels': [0]}", InvalidPrediction, "int as masks"),
        ("{'masks': [{'size': [1, 1], 'counts': [1]}], 'scores': [1]}", InvalidPrediction, "RLE size"),
        ("{'boxes': [[0, 0, 1, 1]], 'scores': 1.0, 'labels': 10**400}", InvalidPrediction, "labels that"),
        (
            "{'boxes': np.zeros((4, 3)), 'scores': [1, 1, 1], 'labels': [0, 0, 0]}",
            InvalidPrediction,
            r"have shape \(4, 3\); they must be n×4 numbers x1 y1 x2 y2: transpose them \(boxes.T\)",
        ),
        (
            "{'boxes': np.zeros((3, 5)), 'scores': [1, 1, 1], 'labels': [0, 0, 0]}",
            InvalidPrediction,
            r"shape \(3, 5\)",
        ),
        ("np.ma.masked_array(np.zeros(image.shape[:2]), True)", InvalidPrediction, "masked numbers"),
        ("[[1, 2], [3]]", InvalidPrediction, "read as numbers"),
        ("{'box': []}", InvalidPrediction, "known keys are boxes"),
        ("{'boxes': [[0, 0, 1, 1]], 'scores': [], 'labels': [0]}", InvalidPrediction, "every box needs"),
        ("{'boxes': [[0, 0, 1, 1]], 'scores': [np.nan], 'labels': [0]}", InvalidPrediction, "Score 0 is nan"),
        ("{'boxes': [[0, 0, np.nan, 1]], 'scores': [1], 'labels': [0]}", InvalidPrediction, "Box 0"),
    ],
)
def test_says_what_is_wrong_with_an_answer(tmp_path: Path, answer: str, error, said: str) -> None:
    with pytest.raises(error, match=said):
        answering(tmp_path, answer)(IMAGES)


def test_refuses_a_wrong_number_of_answers(tmp_path: Path) -> None:
    path = script(tmp_path, "def few(images): return []\ndef single(images): return {'boxes': []}\n")
    with pytest.raises(InvalidPrediction, match="0 predictions for 2 images"):
        load_model(f"{path}:few")(IMAGES)
    with pytest.raises(InvalidPrediction, match="returned dict for 2 images"):
        load_model(f"{path}:single")(IMAGES)


def test_refuses_code_that_cannot_be_used(tmp_path: Path) -> None:
    path = script(tmp_path, "number = 3\n")
    with pytest.raises(InvalidOption, match="it has number"):
        load_model(f"{path}:nmber")
    with pytest.raises(InvalidOption, match="it is not callable"):
        load_model(f"{path}:number")
    with pytest.raises(InvalidOption, match="ZeroDivisionError"):
        load_model(f"{script(tmp_path, '1 / 0', 'broken.py')}:f")
    with pytest.raises(UnknownName, match="Did you mean 'onnx'"):
        load_model("onxx:model.onnx")
    with pytest.raises(InvalidOption, match="Cannot load"):
        load_model("stormproof.models:nothing")


def one_box(image: np.ndarray) -> dict[str, object]:
    height, width = image.shape[:2]  # a list has no shape
    return {"boxes": [[0, 0, width, height]], "scores": [0.9], "labels": [1]}


def test_a_function_of_one_image_is_called_for_each() -> None:
    model = function_model(one_box)
    with pytest.warns(UserWarning, match="takes one image, not a list of images"):
        found = model(IMAGES)
    assert [each.boxes.tolist() for each in found] == [[[0, 0, 30, 20]], [[0, 0, 12, 10]]]
    assert len(model(IMAGES[:1])) == 1  # without another word

    def first_only(image: object) -> dict[str, object]:  # as a framework does that takes either
        return one_box(image[0] if isinstance(image, list) else image)

    with pytest.warns(UserWarning, match="takes one image"):
        assert len(function_model(first_only)(IMAGES)) == 2


def test_a_function_of_one_image_may_reuse_its_arrays() -> None:
    boxes, labels = np.zeros((1, 4)), np.zeros(1, np.int64)

    def reusing(image: np.ndarray) -> dict[str, object]:
        boxes[0], labels[0] = (0, 0, image.shape[1], image.shape[0]), image.shape[0] // 10
        return {"boxes": boxes, "scores": np.ones(1), "labels": labels}

    with pytest.warns(UserWarning, match="takes one image"):
        found = function_model(reusing)(IMAGES)
    assert [(each.boxes.tolist(), each.labels.tolist()) for each in found] == [
        ([[0, 0, 30, 20]], [2]),
        ([[0, 0, 12, 10]], [1]),
    ]


def test_a_function_of_one_image_may_reuse_tensors_and_predictions() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    boxes, labels = torch.zeros(1, 4), torch.zeros(1, dtype=torch.int64)

    def tensors(image: np.ndarray) -> dict[str, object]:
        boxes[0], labels[0] = torch.tensor([0.0, 0, image.shape[1], 1]), image.shape[0]
        return {"boxes": boxes, "scores": torch.ones(1), "labels": labels}

    kept = Prediction(np.zeros((1, 4)), np.ones(1), np.zeros(1, np.int64))

    def same_prediction(image: np.ndarray) -> Prediction:
        kept.labels[0], kept.scores[0] = image.shape[0], 1 / image.shape[1]
        return kept

    for function in (tensors, same_prediction):
        with pytest.warns(UserWarning, match="takes one image"):
            first, second = function_model(function)(IMAGES)
        assert (first.labels.tolist(), second.labels.tolist()) == ([20], [10])


def test_boxes_changed_inside_a_prediction_are_refused() -> None:
    """Its sides would be those of the boxes before."""
    kept = Prediction(np.zeros((1, 4)), np.ones(1), np.zeros(1, np.int64))

    def moves_boxes(images: list[np.ndarray]) -> list[Prediction]:
        kept.boxes[0, 2:] = 5
        return [kept for _ in images]

    with pytest.raises(InvalidPrediction, match="make a new object instead of changing one"):
        function_model(moves_boxes)(IMAGES)


def test_trying_a_function_changes_no_image() -> None:
    def brightens(image: np.ndarray) -> dict[str, object]:
        first = image[0] if isinstance(image, list) else image  # as code that takes either does, and fails
        first += 51
        level = float(image.mean()) / 255
        return {"boxes": [[0, 0, 1, 1]], "scores": [level], "labels": [0]}

    with pytest.warns(UserWarning, match="takes one image"):
        found = function_model(brightens)([image.copy() for image in IMAGES])
    assert [each.scores.tolist() for each in found] == [[0.2], [0.2]]


def test_a_function_that_makes_warnings_errors_is_still_called_for_each_image() -> None:
    def strict(image: np.ndarray) -> dict[str, object]:
        warnings.simplefilter("error")
        return one_box(image)

    with warnings.catch_warnings():
        assert len(function_model(strict)(IMAGES)) == 2


def test_labels_may_be_names_of_the_models_classes() -> None:
    def named(images: list[np.ndarray]) -> list[dict[str, object]]:
        return [{"boxes": [[0, 0, 1, 1]] * 2, "scores": [1, 1], "labels": ["dog", "cat"]} for _ in images]

    assert function_model(named, classes=["cat", "dog"])(IMAGES)[0].labels.tolist() == [1, 0]
    with pytest.raises(InvalidPrediction, match=r"'dog', but names no classes; set named.classes"):
        function_model(named)(IMAGES)
    with pytest.raises(InvalidPrediction, match="'dog', which is not one of its classes: cat, cow"):
        function_model(named, classes=["cat", "cow"])(IMAGES)


def test_bfloat16_is_read() -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    answer = {"boxes": torch.tensor([[0, 0, 1.5, 2]], dtype=torch.bfloat16, requires_grad=True),
              "scores": torch.tensor([0.5], dtype=torch.bfloat16), "labels": torch.tensor([1])}  # fmt: skip
    found, _ = function_model(lambda images: [answer] * 2)(IMAGES)
    assert (found.boxes.tolist(), found.scores.tolist()) == ([[0, 0, 1.5, 2]], [0.5])


def test_bfloat16_of_jax_is_read() -> None:
    bfloat16 = pytest.importorskip("ml_dtypes", reason="needs ml_dtypes").bfloat16
    answer = {
        "boxes": np.array([[0, 0, 1.5, 2]], bfloat16),
        "scores": np.array([0.5], bfloat16),
        "labels": [1],
        "masks": np.ones((1, *IMAGES[0].shape[:2]), bfloat16),
    }
    found, _ = function_model(lambda images: [answer] * 2)(IMAGES)
    assert found.masks is not None
    assert found.masks[0].area == IMAGES[0][..., 0].size
    assert (found.boxes.tolist(), found.scores.tolist()) == ([[0, 0, 1.5, 2]], [0.5])


def test_a_failing_function_keeps_its_own_error() -> None:
    def broken(image: object) -> None:
        raise RuntimeError("no weights")

    with pytest.raises(RuntimeError, match="no weights"):
        function_model(broken)(IMAGES)


class _Boxes(NamedTuple):
    xyxy: np.ndarray
    conf: np.ndarray
    cls: np.ndarray


class _Results:
    """As Ultralytics answers: boxes with floats for classes, masks of the image's size or not."""

    obb = None

    def __init__(self, masks: np.ndarray | None = None) -> None:
        self.boxes = _Boxes(np.array([[1.0, 2, 3, 4]]), np.array([0.5]), np.array([1.0]))
        self.masks = None if masks is None else SimpleNamespace(data=masks)
        self.orig_shape = (20, 30)

    def __len__(self) -> int:
        return 1


def test_recognises_results_of_other_libraries_by_their_shape() -> None:
    masks = np.zeros((1, 20, 30), bool)
    masks[0, 2:4, 1:3] = True
    plain, masked = function_model(lambda images: [_Results(), _Results(masks)])(IMAGES)
    assert (plain.boxes.tolist(), plain.labels.tolist()) == ([[1, 2, 3, 4]], [1])
    assert plain.scores.tolist() == [0.5]
    assert plain.masks is None
    assert masked.masks is not None
    assert masked.masks[0].area == 4
    small = function_model(lambda images: [_Results(masks[:, ::2, ::2])] * 2)
    with pytest.raises(InvalidPrediction, match="retina_masks=True"):
        small(IMAGES)
    torchvision = {"boxes": [[0, 0, 5, 5]], "labels": [1], "scores": [0.5], "masks": np.ones((1, 1, 20, 30))}
    (found, _) = function_model(lambda images: [{**torchvision, "keypoints": [[[1, 1, 1]]]}] * 2)(IMAGES)
    assert found.masks is not None
    assert found.masks[0].area == 600
    assert found.data["points"].tolist() == [[[1, 1, 1]]]


def test_key_points_and_corners_need_no_boxes() -> None:
    corners = [[[2.0, 0], [4, 2], [2, 4], [0, 2]]]
    points = [[[3.0, 4], [5, 9]]]
    turned, posed = function_model(
        lambda images: [
            {"corners": corners, "scores": [0.5], "labels": [0]},
            {"keypoints": points, "scores": [0.5], "labels": [0]},
        ]
    )(IMAGES)
    assert turned.boxes.tolist() == [[0, 0, 4, 4]]
    assert posed.boxes.tolist() == [[3, 4, 5, 9]]
    assert posed.data["points"].tolist() == [[[3, 4, 1], [5, 9, 1]]]


def test_reads_results_of_supervision() -> None:
    supervision = pytest.importorskip("supervision", reason="needs supervision")
    detections = supervision.Detections(
        xyxy=np.array([[1.0, 2, 3, 4]]), confidence=np.array([0.5]), class_id=np.array([1])
    )
    (found, _) = function_model(lambda images: [detections] * 2)(IMAGES)
    assert (found.boxes.tolist(), found.labels.tolist()) == ([[1, 2, 3, 4]], [1])
    bare = supervision.Detections(xyxy=np.array([[1.0, 2, 3, 4]]))
    with pytest.raises(InvalidPrediction, match="Detections without scores and labels"):
        function_model(lambda images: [bare] * 2)(IMAGES)
