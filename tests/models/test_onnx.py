"""The ONNX adapter on tiny graphs made here: feeding, batching, outputs, and what it refuses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stormproof.core.errors import InvalidOption, ModelError, UnknownName
from stormproof.core.sessions import _PROVIDERS
from stormproof.core.spec import Spec
from stormproof.models import load_model
from stormproof.models.onnx import confine
from stormproof.models.sanity_checks import probe

onnx = pytest.importorskip("onnx", reason="needs the extra 'onnx'")
pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
from onnx import TensorProto, helper  # noqa: E402

FLOAT, LONG = TensorProto.FLOAT, TensorProto.INT64
IMAGE = np.arange(40 * 60 * 3, dtype=np.uint8).reshape(40, 60, 3)


def save(path: Path, nodes, inputs, outputs, weights=(), metadata=None) -> Path:
    tensors = [
        [helper.make_tensor_value_info(name, kind, shape) for name, kind, shape in side]
        for side in (inputs, outputs)
    ]
    graph = helper.make_graph(nodes, "net", *tensors, initializer=list(weights))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    helper.set_model_props(model, metadata or {})
    onnx.save(model, str(path))
    return path


def constant(name: str, value: np.ndarray):
    return onnx.numpy_helper.from_array(value, name)


def echo(path: Path, batch: int | str = 1, channels: int = 3) -> Path:
    """The image itself as semantic scores: the class of a pixel is its strongest channel."""
    shape = [batch, channels, 32, 32]
    return save(
        path, [helper.make_node("Identity", ["x"], ["out"])], [("x", FLOAT, shape)], [("out", FLOAT, shape)]
    )


def fixed_rows(path: Path, rows: np.ndarray, metadata=None, masks: np.ndarray | None = None) -> Path:
    """A detector that says the same of every image."""
    weights, outputs = [constant("rows", rows)], [("out", FLOAT, list(rows.shape))]
    nodes = [
        helper.make_node("ReduceMean", ["x"], ["mean"], keepdims=0, axes=[0, 1, 2, 3]),
        helper.make_node("Mul", ["mean", "zero"], ["nothing"]),
        helper.make_node("Add", ["rows", "nothing"], ["out"]),
    ]
    weights.append(constant("zero", np.float32(0)))
    if masks is not None:
        weights.append(constant("protos", masks))
        nodes.append(helper.make_node("Add", ["protos", "nothing"], ["masks"]))
        outputs.append(("masks", FLOAT, list(masks.shape)))
    return save(path, nodes, [("x", FLOAT, [1, 3, 64, 64])], outputs, weights, metadata)


def test_a_yolov8_export_needs_no_card(tmp_path: Path) -> None:
    rows = np.zeros((1, 6, 84), np.float32)  # an input of 64×64 has 84 cells on strides 8, 16 and 32
    rows[0, :, 5] = [32, 32, 16, 8, 0.1, 0.9]
    path = fixed_rows(tmp_path / "yolo.onnx", rows, {"names": "{0: 'cat', 1: 'dog'}", "imgsz": "[64, 64]"})
    model = load_model(f"onnx:{path}")
    assert model.classes == ("cat", "dog")
    (found,) = model([np.zeros((32, 64, 3), np.uint8)])  # letterboxed by 16 rows above and below
    assert found.boxes[0] == pytest.approx([24, 12, 40, 20])
    assert (found.labels[0], found.scores[0]) == (1, pytest.approx(0.9))


def test_a_segmentation_export_gives_masks(tmp_path: Path) -> None:
    rows = np.zeros((1, 7, 84), np.float32)  # two classes, one coefficient
    rows[0, :, 5] = [32, 32, 16, 8, 0.1, 0.9, 1.0]
    prototypes = np.full((1, 1, 16, 16), -3, np.float32)
    prototypes[..., 8:] = 3  # the right half of the image
    path = fixed_rows(tmp_path / "seg.onnx", rows, {"names": "{0: 'cat', 1: 'dog'}"}, prototypes)
    (found,) = load_model(f"onnx:{path}")([np.zeros((64, 64, 3), np.uint8)])
    assert found.masks is not None
    assert found.masks[0].area == pytest.approx(8 * 8, abs=8)  # the right half of the box 16×8


def test_a_second_input_takes_the_size(tmp_path: Path) -> None:
    """RT-DETR's own export scales boxes by a size it is given."""
    weights = [
        constant("labels0", np.array([[3]], np.int64)),
        constant("boxes0", np.array([[[0.5, 0.5, 1, 1]]], np.float32)),
        constant("scores0", np.array([[0.5]], np.float32)),
    ]
    nodes = [
        helper.make_node("Identity", ["labels0"], ["labels"]),
        helper.make_node("Identity", ["scores0"], ["scores"]),
        helper.make_node("Cast", ["orig_target_sizes"], ["size"], to=FLOAT),
        helper.make_node("Concat", ["size", "size"], ["whole"], axis=1),
        helper.make_node("Mul", ["boxes0", "whole"], ["boxes"]),
    ]
    inputs = [("images", FLOAT, [1, 3, 64, 64]), ("orig_target_sizes", LONG, [1, 2])]
    outputs = [("labels", LONG, [1, 1]), ("boxes", FLOAT, [1, 1, 4]), ("scores", FLOAT, [1, 1])]
    path = save(tmp_path / "rtdetr.onnx", nodes, inputs, outputs, weights)
    (found,) = load_model(f"onnx:{path},classes=coco80")([np.zeros((100, 200, 3), np.uint8)])
    assert found.boxes.tolist() == [[100, 50, 200, 100]]
    assert found.labels.tolist() == [3]


def test_the_card_decides_the_order_of_channels(tmp_path: Path) -> None:
    path = echo(tmp_path / "net.onnx")
    image = np.zeros((32, 32, 3), np.uint8)
    image[..., 0] = 200  # red
    for channels, label in (("RGB", 0), ("BGR", 2)):
        card = tmp_path / f"{channels}.yaml"
        card.write_text(f"classes: [a, b, c]\ninput: {{channels: {channels}}}\n")
        (found,) = load_model(f"onnx:{path},card={card}")([image])
        assert found.semantic is not None
        assert {*found.semantic.ravel()} == {label}


def test_a_prediction_does_not_depend_on_its_batch(tmp_path: Path) -> None:
    path = echo(tmp_path / "net.onnx", batch="n")
    images = [np.random.default_rng(i).integers(0, 255, (30 + i, 40, 3), dtype=np.uint8) for i in range(5)]
    one, many = (load_model(f"onnx:{path},classes=dataset,batch={n}") for n in (1, 4))
    for left, right in zip(one(images), many(images), strict=True):
        assert left.semantic is not None
        assert np.array_equal(left.semantic, right.semantic)
    assert one([]) == []


def test_tensors_are_bound_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The way of ONNX Runtime's CUDA provider, on its CPU provider: the same answers as from arrays."""
    torch = pytest.importorskip("torch", reason="needs torch")
    file, card = echo(tmp_path / "a.onnx", batch="n"), tmp_path / "a.yaml"
    card.write_text(
        "decoder: logits\nclasses: [r, g, b]\ninput: {resize: none, size: [32, 32], mean: 9, std: 3}\n"
    )
    monkeypatch.setitem(_PROVIDERS, "cuda", ["CPUExecutionProvider"])
    model = load_model(f"onnx:{file},device=cuda,batch=2")
    assert model.takes_tensors
    assert not load_model(f"onnx:{file}").takes_tensors
    images = [IMAGE[:32, :32], IMAGE[8:, 20:52]]
    monkeypatch.setattr("numpy.stack", None)  # what makes a batch of arrays is not called
    on_device = model([torch.from_numpy(np.ascontiguousarray(image)) for image in images])
    monkeypatch.undo()
    for one, two in zip(model(images), on_device, strict=True):
        assert (one.semantic == two.semantic).all()


def test_the_fingerprint_covers_file_card_and_options(tmp_path: Path) -> None:
    path = echo(tmp_path / "net.onnx")
    spec = f"onnx:{path},classes=dataset"
    first = load_model(spec).fingerprint
    assert load_model(spec).fingerprint == first
    assert load_model(f"{spec},score=0.5").fingerprint != first
    assert load_model(f"onnx:{path},classes=voc21").fingerprint != first
    (tmp_path / "net.yaml").write_text("input: {channels: BGR}\n")
    assert load_model(spec).fingerprint != first
    (tmp_path / "net.yaml").unlink()
    echo(path, channels=3)
    assert load_model(spec).fingerprint == first
    save(
        path,
        [helper.make_node("Relu", ["x"], ["out"])],
        [("x", FLOAT, [1, 3, 32, 32])],
        [("out", FLOAT, [1, 3, 32, 32])],
    )
    assert load_model(spec).fingerprint != first


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        (",threads=0", InvalidOption, "threads=0: at least 1"),
        (",batch=-1", InvalidOption, "batch=-1: at least 1"),
        (",device=tpu", InvalidOption, "choose one of cpu"),
        (",device=cuda", InvalidOption, "this onnxruntime offers"),
        (",colour=3", UnknownName, "It takes:"),
        (",classes=coco81", UnknownName, "Did you mean 'coco91'"),
        (",decoder=yolox", ModelError, "cannot read outputs"),
        (",card=missing.yaml", Exception, "no such file"),
    ],
)
def test_refuses_wrong_options(tmp_path: Path, options: str, error, said: str) -> None:
    path = echo(tmp_path / "net.onnx")
    spec = f"onnx:{path}{options}" + ("" if "classes" in options else ",classes=dataset")
    with pytest.raises(error, match=said):
        load_model(spec)([IMAGE])


def test_classes_are_never_assumed(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="classes=dataset"):
        load_model(f"onnx:{echo(tmp_path / 'net.onnx')}")


def test_classes_can_be_renamed(tmp_path: Path) -> None:
    path = echo(tmp_path / "net.onnx")
    (tmp_path / "net.yaml").write_text("classes: [car, bus, sky]\nrename: {bus: car}\n")
    assert load_model(f"onnx:{path}").semantic_classes == ("car", "car", "sky")
    (tmp_path / "net.yaml").write_text("classes: [car, bus, sky]\nrename: {buss: car}\n")
    with pytest.raises(UnknownName, match="Did you mean 'bus'"):
        load_model(f"onnx:{path}")


def test_refuses_a_card_that_contradicts_the_graph(tmp_path: Path) -> None:
    path = echo(tmp_path / "net.onnx")
    (tmp_path / "net.yaml").write_text("input: {size: 64}\nclasses: dataset\n")
    with pytest.raises(ModelError, match=r"but the graph needs \(32, 32\)"):
        load_model(f"onnx:{path}")
    (tmp_path / "net.yaml").write_text("outputs: [scores]\nclasses: dataset\n")
    with pytest.raises(ModelError, match="not among the network"):
        load_model(f"onnx:{path}")


def test_refuses_fixed_batches_and_unknown_inputs(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="4 images at once"):
        load_model(f"onnx:{echo(tmp_path / 'net.onnx', batch=4)},classes=dataset")
    nodes = [helper.make_node("Mul", ["x", "gain"], ["out"])]
    shape = [1, 3, 8, 8]
    path = save(
        tmp_path / "two.onnx", nodes, [("x", FLOAT, shape), ("gain", FLOAT, [1])], [("out", FLOAT, shape)]
    )
    with pytest.raises(ModelError, match="gain"):
        load_model(f"onnx:{path},classes=dataset")


def test_refuses_files_that_are_no_models(tmp_path: Path) -> None:
    (tmp_path / "bad.onnx").write_bytes(b"\x08nonsense")
    with pytest.raises(ModelError, match=r"is not an ONNX model|cannot load"):
        load_model(f"onnx:{tmp_path}/bad.onnx")
    with pytest.raises(Exception, match="did you mean"):
        load_model(f"onnx:{tmp_path}/bda.onnx")


def external(path: Path, location: str) -> Path:
    """A network whose weights lie in another file."""
    tensor = TensorProto()
    tensor.name, tensor.data_type, tensor.data_location = "w", FLOAT, TensorProto.EXTERNAL
    tensor.dims.extend([1])
    for key, value in (("location", location), ("offset", "0"), ("length", "4")):
        entry = tensor.external_data.add()
        entry.key, entry.value = key, value
    nodes = [helper.make_node("Mul", ["x", "w"], ["out"])]
    shape = [1, 3, 8, 8]
    return save(path, nodes, [("x", FLOAT, shape)], [("out", FLOAT, shape)], [tensor])


def test_weights_beside_the_model_are_read(tmp_path: Path) -> None:
    (tmp_path / "weights.bin").write_bytes(np.float32(1).tobytes())
    model = load_model(f"onnx:{external(tmp_path / 'net.onnx', 'weights.bin')},classes=dataset")
    (found,) = model([IMAGE])
    assert found.semantic is not None
    first = model.fingerprint
    (tmp_path / "weights.bin").write_bytes(np.float32(2).tobytes())
    assert load_model(f"onnx:{tmp_path}/net.onnx,classes=dataset").fingerprint != first


@pytest.mark.parametrize(
    "location", ["../secret", "/etc/passwd", "a/../../secret", "C:\\secret", "..\\secret"]
)
def test_weights_outside_the_folder_are_refused(tmp_path: Path, location: str) -> None:
    (tmp_path / "secret").write_bytes(b"1234")
    (tmp_path / "model").mkdir()
    path = external(tmp_path / "model/net.onnx", location)
    with pytest.raises(ModelError, match="outside its folder"):
        load_model(f"onnx:{path},classes=dataset")


def test_weights_behind_a_link_count_as_its_target(tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(b"1234")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/weights.bin").symlink_to(tmp_path / "secret")
    path = external(tmp_path / "model/net.onnx", "weights.bin")
    with pytest.raises(ModelError, match="leads outside"):
        load_model(f"onnx:{path},classes=dataset")
    blobs = tmp_path / "blobs"  # as in a download cache: model and weights are links into one folder
    blobs.mkdir()
    for name in ("net.onnx", "weights.bin"):
        (tmp_path / "model" / name).rename(blobs / name) if name == "net.onnx" else (
            blobs / name
        ).write_bytes(b"1234")
        (tmp_path / "model" / name).unlink(missing_ok=True)
        (tmp_path / "model" / name).symlink_to(blobs / name)
    assert confine(tmp_path / "model/net.onnx", "weights.bin") == blobs / "weights.bin"


def test_weights_hidden_in_a_subgraph_are_found(tmp_path: Path) -> None:
    inner = external(tmp_path / "inner.onnx", "../secret")
    graph = onnx.load(str(inner), load_external_data=False).graph
    branch = helper.make_graph(
        list(graph.node), "branch", [], list(graph.output), initializer=list(graph.initializer)
    )
    node = helper.make_node("If", ["flag"], ["out"], then_branch=branch, else_branch=branch)
    shape = [1, 3, 8, 8]
    weights = [constant("flag", np.array(True))]
    path = save(tmp_path / "net.onnx", [node], [("x", FLOAT, shape)], [("out", FLOAT, shape)], weights)
    with pytest.raises(ModelError, match="outside its folder"):
        load_model(f"onnx:{path},classes=dataset")


def refused(path: Path, content: bytes) -> list[str]:
    """What is said of a file, by opening it and by looking at it; nothing but our own errors comes out."""
    path.write_bytes(content)
    lines = []
    with pytest.raises(ModelError) as error:
        load_model(f"onnx:{path},classes=dataset")
    lines.append(str(error.value))
    try:
        lines.append(probe(Spec("onnx", str(path)), IMAGE).problem)
    except ModelError as problem:
        lines.append(str(problem))
    assert not any("\n" in line for line in lines)
    return lines


def test_refuses_a_graph_without_outputs(tmp_path: Path) -> None:
    path = save(
        tmp_path / "a.onnx", [helper.make_node("Relu", ["x"], ["y"])], [("x", FLOAT, [1, 3, 8, 8])], []
    )
    assert all("has no outputs" in line for line in refused(path, path.read_bytes()))


def test_refuses_an_argmax_without_inputs(tmp_path: Path) -> None:
    inputs, outputs = [("x", FLOAT, [1, 3, 8, 8])], [("y", LONG, [1, 8, 8])]
    path = save(tmp_path / "a.onnx", [helper.make_node("ArgMax", [], ["y"])], inputs, outputs)
    assert all("onnxruntime cannot load it" in line for line in refused(path, path.read_bytes()))


@pytest.mark.parametrize("name", [b"input-name", b"output-name", b"ReduceMean", b"a-class-name"])
def test_refuses_names_that_are_not_utf_8(tmp_path: Path, name: bytes) -> None:
    shape = [1, 3, 32, 32]
    node = helper.make_node("ReduceMean", ["input-name"], ["output-name"], keepdims=1, axes=[1])
    sides = [("input-name", FLOAT, shape)], [("output-name", FLOAT, shape)]
    path = save(tmp_path / "a.onnx", [node], *sides, metadata={"names": "['a-class-name']"})
    content = path.read_bytes()
    assert name in content
    broken = content.replace(name, b"\xff" * len(name))
    assert all("a name that is not UTF-8" in line for line in refused(path, broken))


@pytest.mark.parametrize("location", ["../secret", "a\0b", "w" * 5000])
def test_a_file_is_checked_before_a_session_opens_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, location: str
) -> None:
    """`inspect`, too, asks us first: no runtime sees where the weights are said to lie."""
    path = external(tmp_path / "net.onnx", location)
    monkeypatch.setattr("onnxruntime.InferenceSession", None)
    lines = refused(path, path.read_bytes())
    assert all("stores weights in" in line for line in lines)


def test_refuses_outputs_that_are_no_tensors(tmp_path: Path) -> None:
    shape = [1, 3, 8, 8]
    path = save(
        tmp_path / "a.onnx", [helper.make_node("SequenceConstruct", ["x"], ["y"])], [("x", FLOAT, shape)], []
    )
    model = onnx.load(str(path))
    model.graph.output.append(helper.make_tensor_sequence_value_info("y", FLOAT, shape))
    onnx.save(model, str(path))
    with pytest.raises(ModelError, match="not a tensor"):
        load_model(f"onnx:{path},classes=dataset,decoder=boxes")


def test_a_network_that_fails_says_so_in_one_line(tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["out"])]
    shape = constant("shape", np.array([1, 7, 32, 32], np.int64))
    sides = [("x", FLOAT, [1, 3, "h", "w"])], [("out", FLOAT, [1, 7, 32, 32])]
    path = save(tmp_path / "a.onnx", nodes, *sides, [shape])
    (tmp_path / "a.yaml").write_text("input: {size: 32}\n")
    with pytest.raises(ModelError, match="onnxruntime cannot run it") as error:
        load_model(f"onnx:{path},classes=dataset,decoder=logits")([IMAGE])
    assert "\n" not in str(error.value)
