"""`inspect --fix`: every hint is applied, and the card that is written runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import yaml
from typer.testing import CliRunner

from stormproof.cli import app
from stormproof.core.errors import OutputError
from stormproof.core.sample import Instances, Sample, Truth
from stormproof.core.spec import Spec
from stormproof.datasets.opened import open_dataset
from stormproof.models import load_model
from stormproof.models.network import Network
from stormproof.models.sanity_checks import probe
from stormproof.tools.fix import apply_hints, fix_network, try_vocabularies

onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")
pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

SIDE = 64
IMAGE = np.random.default_rng(0).integers(0, 256, (48, 80, 3), np.uint8)


def save(path: Path, outputs: dict[str, np.ndarray], metadata: dict[str, str] | None = None) -> Path:
    """A network that says the same of every image."""
    weights = [numpy_helper.from_array(value, f"{name}_value") for name, value in outputs.items()]
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0, axes=[0, 1, 2, 3]),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        *(helper.make_node("Add", [f"{name}_value", "nothing"], [name]) for name in outputs),
    ]
    sides = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, value.shape) for name, value in outputs.items()
    ]
    image = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 3, SIDE, SIDE])
    zero = numpy_helper.from_array(np.float32(0), "zero")
    graph = helper.make_graph(nodes, "net", [image], sides, initializer=[*weights, zero])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, str(path))
    return path


def boxes(count: int = 30, classes: int = 80, logits: bool = False) -> dict[str, np.ndarray]:
    """Boxes as fractions of the input, with scores per class."""
    numbers = np.random.default_rng(1)
    corner = numbers.uniform(0, 0.6, (count, 2))
    scores = numbers.uniform(0, 0.9, (count, classes)).astype(np.float32)
    return {
        "boxes": np.hstack([corner, corner + numbers.uniform(0.1, 0.4, (count, 2))]).astype(np.float32)[None],
        "scores": (8 * scores - 4 if logits else scores)[None],
    }


def fix(path: Path, card: Path, *more: str, spec: str = "") -> tuple[int, str, dict]:
    result = CliRunner().invoke(app, ["inspect", f"onnx:{path}{spec}", "--fix", str(card), *more])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result.exit_code, result.output, yaml.safe_load(card.read_text()) if card.exists() else {}


def test_boxes_that_are_fractions_get_the_option_and_the_card_runs(tmp_path: Path) -> None:
    path = save(tmp_path / "net.onnx", boxes())
    code, said, card = fix(path, tmp_path / "card.yaml")
    assert code == 0, said
    assert card["options"] == {"fractions": True}
    assert card["classes"] == "coco80"
    assert "fixed: fractions: true" in said
    (found,) = load_model(f"onnx:{path},card={tmp_path}/card.yaml")([IMAGE])  # type: ignore[operator]
    assert found.boxes[:, 2].max() > 20
    assert {one.name for one in tmp_path.iterdir()} == {"net.onnx", "card.yaml"}


def test_two_hints_are_applied_one_after_the_other(tmp_path: Path) -> None:
    _, _, card = fix(save(tmp_path / "net.onnx", boxes(logits=True)), tmp_path / "card.yaml")
    assert card["options"] == {"fractions": True, "logits": True}


def test_fixes_a_single_plane_of_probabilities(tmp_path: Path) -> None:
    plane = np.random.default_rng(2).uniform(0, 1, (1, 1, SIDE, SIDE)).astype(np.float32)
    path = save(tmp_path / "net.onnx", {"out": plane})
    code, said, card = fix(path, tmp_path / "card.yaml")
    assert code == 0, said
    assert card["options"] == {"probabilities": True}
    assert card["classes"] == ["background", "foreground"]
    _, _, named = fix(path, tmp_path / "person.yaml", spec=",classes=person")
    assert load_model(f"onnx:{path},card={tmp_path}/person.yaml").semantic_classes == ("background", "person")
    assert named["options"] == {"probabilities": True}


def test_options_and_classes_can_be_given_in_the_spec(tmp_path: Path) -> None:
    path = save(tmp_path / "net.onnx", boxes(classes=3))
    spec = f"onnx:{path},options.fractions=true,classes=[cat,dog,bird]"
    model = load_model(spec)
    assert isinstance(model, Network)
    assert (model.card.options, model.classes) == ({"fractions": True}, ("cat", "dog", "bird"))
    assert model([IMAGE])[0].boxes.max() > 20
    with pytest.raises(Exception, match="It takes: logits, fractions"):
        load_model(f"onnx:{path},options.fraction=true,classes=[cat,dog,bird]")


def test_what_the_card_in_the_spec_says_is_kept(tmp_path: Path) -> None:
    path = save(tmp_path / "net.onnx", boxes(classes=3))
    (tmp_path / "names.txt").write_text("cat\ndog\nbird\n")
    (tmp_path / "old.yaml").write_text(
        "classes: names.txt\noptions: {fractions: true}\nscore: 0.3\ninput: {channels: BGR}\n"
    )
    (tmp_path / "new").mkdir()
    code, said, card = fix(path, tmp_path / "new/card.yaml", spec=f",card={tmp_path}/old.yaml")
    assert code == 0, said
    assert (card["classes"], card["options"], card["score"]) == (
        ["cat", "dog", "bird"],
        {"fractions": True},
        0.3,
    )
    assert card["input"]["channels"] == "BGR"


def test_a_card_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "card.yaml").write_text("x")
    result = CliRunner().invoke(
        app, ["inspect", f"onnx:{save(tmp_path / 'n.onnx', boxes())}", "--fix", str(tmp_path / "card.yaml")]
    )
    assert isinstance(result.exception, OutputError)


def test_unknown_outputs_leave_a_draft_of_a_card(tmp_path: Path) -> None:
    path = save(tmp_path / "net.onnx", {"out": np.zeros((1, 9, 11, 13, 7), np.float32)})
    code, said, card = fix(path, tmp_path / "card.yaml")
    assert code == 1
    assert "That card is a draft, which does not run" in said
    assert "decoder" not in card


def test_inspect_without_fix_proposes_it(tmp_path: Path) -> None:
    result = CliRunner().invoke(app, ["inspect", f"onnx:{save(tmp_path / 'net.onnx', boxes())}"])
    assert result.exit_code == 1
    assert "--fix CARD.yaml" in result.output
    assert [one.name for one in tmp_path.iterdir()] == ["net.onnx"]


def labelled(label: int, classes: tuple[str, ...], box: np.ndarray) -> list[Sample]:
    truth = Truth(Instances(box, np.array([label])))
    return [Sample(str(k), IMAGE, truth, classes=classes) for k in range(4)]


@pytest.mark.slow
def test_labelled_images_show_which_vocabulary_the_labels_index(tmp_path: Path) -> None:
    """Label 17 is dog by COCO's numbers, and horse among its 80 classes."""
    rows = np.array([[[8, 8, 40, 40, 0.9, 17]]], np.float32)
    spec = Spec.parse(f"onnx:{save(tmp_path / 'net.onnx', {'out': np.repeat(rows, 3, axis=1)})}")
    found = probe(spec, IMAGE)
    network = load_model(f"{spec},classes=dataset")
    assert isinstance(network, Network)
    (prediction,) = network([IMAGE])
    data = open_dataset(labelled(1, ("cat", "dog"), prediction.boxes[:1]), classes=("cat", "dog"))
    scored = try_vocabularies(network, data)
    assert max(scored, key=lambda one: scored[one]) == "coco91"
    done = fix_network(spec, found, [IMAGE], data, tune=False)
    assert done.card()["classes"] == "coco91"
    assert done.changes[-1].startswith("classes: coco91")


def test_labels_beyond_80_are_taken_for_the_numbers_of_coco(tmp_path: Path) -> None:
    rows = np.array([[[8, 8, 40, 40, 0.9, 84]] * 12], np.float32)
    code, said, card = fix(save(tmp_path / "net.onnx", {"out": rows}), tmp_path / "card.yaml")
    assert code == 0, said
    assert card["classes"] == "coco91"
    assert "coco91 is a guess" in said


def test_leaves_hints_that_the_decoder_has_no_option_for(tmp_path: Path) -> None:
    rows = np.array([[[1, 1, 3, 3, 0.9, 0]] * 12], np.float32)
    network = load_model(f"onnx:{save(tmp_path / 'net.onnx', {'out': rows})},classes=[cat]")
    assert isinstance(network, Network)
    after, said = apply_hints(network, [IMAGE])
    assert (after.card, said) == (network.card, [])


def one_class(side: int = SIDE) -> dict[str, np.ndarray]:
    """YOLOX's table of one class."""
    rows = sum((side // stride) ** 2 for stride in (8, 16, 32))
    return {"rows": np.random.default_rng(2).uniform(0, 1, (1, rows, 6)).astype(np.float32)}


def test_a_network_of_one_class_gets_one_name(tmp_path: Path) -> None:
    path = save(tmp_path / "net.onnx", one_class())
    code, said, card = fix(path, tmp_path / "card.yaml", "--data", "world:val,count=2,size=768x480")
    assert code == 0, said
    assert card["classes"] == ["object"]
    assert "score a single class" in said


def test_only_lists_of_as_many_names_as_there_are_scores_are_tried(tmp_path: Path) -> None:
    path = save(tmp_path / "net.onnx", boxes(classes=3))
    network = load_model(f"onnx:{path},classes=dataset,options.fractions=true")
    assert isinstance(network, Network)
    assert network.count_classes(IMAGE) == 3
    data = open_dataset("world:val,count=2,size=768x480")
    assert try_vocabularies(network, data, count=3) == {}


def test_tensorflows_networks_without_data_get_the_numbers_of_coco(tmp_path: Path) -> None:
    outputs = {
        "boxes": np.tile(np.array([0.2, 0.2, 0.7, 0.7]), (1, 5, 1)),
        "labels": np.arange(5)[None],
        "scores": np.full((1, 5), 0.7),
        "count": np.array([5]),
    }
    path = save(tmp_path / "net.onnx", {name: np.float32(value) for name, value in outputs.items()})
    _, said, card = fix(path, tmp_path / "card.yaml")
    assert card["classes"] == "coco91"
    assert "is a guess" in said
