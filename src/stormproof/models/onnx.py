"""ONNX models through ONNX Runtime: `onnx:model.onnx[,card=card.yaml,classes=coco80,…]`.

A file is checked before a session opens it: weights may lie only in its own folder, and names must be text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.files import is_file
from stormproof.core.forms import Array
from stormproof.core.loading import framework
from stormproof.core.sessions import open_session
from stormproof.models.card import Card, assemble_card, chosen_outputs
from stormproof.models.guess import (
    Graph,
    Tensor,
    batch_problem,
    explain_outputs,
    guess_card,
    guess_input,
    image_input,
)
from stormproof.models.model import ADAPTERS, model_file
from stormproof.models.network import Forward, Network, usual_batch

_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64"} | {
    f"tensor({name})": name for name in ("float16", "uint8", "int8", "int64", "int32", "bool")
}
# transformers' DETR may ask which pixels belong to the image: all of them, since it is alone in its batch.
_MASK = "pixel_mask"


@ADAPTERS.declare("onnx")
def open_onnx(
    main: str,
    *,
    card: str | None = None,
    classes: str | None = None,
    threads: int = 1,
    batch: int | None = None,
    device: str = "cpu",
    score: float | None = None,
    iou: float | None = None,
    keep: int | None = None,
    decoder: str | None = None,
    options: dict[str, str] | None = None,
) -> Network:
    """Open a model file; `card` defaults to the YAML file of the same name beside it, if there is one."""
    path = model_file(main, "an ONNX model")
    session, graph, weights = _load(path, threads, device)
    settings = {
        "decoder": decoder, "options": options, "classes": classes, "score": score, "iou": iou, "keep": keep,
    }  # fmt: skip
    whole, names = assemble_card(path, card, guess_card(graph), settings, path.name, explain_outputs(graph))
    _check_inputs(graph, whole, path)
    fixed = image_input(graph).shape[0] == 1
    return Network(
        name=whole.name or path.stem,
        card=whole,
        forward=_forward(session, graph, whole),
        files=(path, *weights),
        names=names,
        batch=1 if fixed or whole.decoder == "torchvision" else usual_batch(batch, device),
        in_torch=device == "cuda",
    )


def probe_onnx(main: str) -> tuple[Graph, Forward]:
    """The network's inputs and outputs, and a function that runs it on one input, without a card."""
    session, graph, _ = _load(model_file(main, "an ONNX model"), 1, "cpu")
    main_input = image_input(graph).name
    return graph, lambda batch: session.run(None, {main_input: batch})


def _load(path: Path, threads: int, device: str) -> tuple[Any, Graph, tuple[Path, ...]]:
    """The session, its graph, and the files with weights outside the model."""
    weights, classes = check_file(path)
    session = open_session(path, threads=threads, device=device)

    def read(node: Any) -> Tensor:
        shape = tuple(side if isinstance(side, int) and side > 0 else None for side in node.shape)
        return Tensor(node.name, shape, _DTYPES.get(node.type, node.type))

    inputs, outputs = (tuple(map(read, nodes)) for nodes in (session.get_inputs(), session.get_outputs()))
    metadata = dict(session.get_modelmeta().custom_metadata_map)
    return session, Graph(inputs, outputs, metadata, classes), weights


def _check_inputs(graph: Graph, card: Card, path: Path) -> None:
    """Refuse, before the first image, a network that would fail on every image."""
    main, known = image_input(graph), guess_input(graph)
    others = [t.name for t in graph.inputs if t.name not in (main.name, card.size_input, _MASK)]
    if others:
        raise ModelError(f"{path}: besides the image it needs inputs {others}; export it without them.")
    if batch_problem(graph):
        raise ModelError(f"{path}: {batch_problem(graph)}")
    for key in ("layout", "dtype", "size"):
        stated = getattr(card.input, key)
        if key in known and stated != known[key]:
            raise ModelError(f"{path}: the card says {key} {stated}, but the graph needs {known[key]}.")


def _forward(session: Any, graph: Graph, card: Card) -> Forward:
    """Run the session; outputs come in the order of the card, else of the graph, always with a batch axis."""
    outputs = chosen_outputs(card.outputs, [tensor.name for tensor in graph.outputs])
    for tensor in graph.outputs:
        if tensor.name in outputs and "(" in tensor.dtype and not tensor.dtype.startswith("tensor("):
            raise ModelError(
                f"Output {tensor.name} is {tensor.dtype}, not a tensor; list others in the card."
            )
    main = image_input(graph)
    mask = next((tensor for tensor in graph.inputs if tensor.name == _MASK), None)
    unbatched = len(main.shape) == 3
    # torchvision's exports return the boxes of one image without a batch axis.
    bare = unbatched or card.decoder == "torchvision"

    def forward(batch: Any) -> Sequence[Array]:
        feed = {main.name: batch[0] if unbatched else batch}
        height, width = batch.shape[-2:] if card.input.layout == "NCHW" else batch.shape[1:3]
        if mask is not None:  # some exports fix its sides, whatever the image's
            whole = zip(mask.shape, (len(batch), height, width), strict=True)
            feed[_MASK] = np.ones([fixed or side for fixed, side in whole], mask.dtype)
        if card.size_input:
            feed[card.size_input] = np.array([[width, height]] * len(batch), np.int64)
        on_host = isinstance(batch, np.ndarray)
        try:
            found = session.run(outputs, feed) if on_host else _run_on_device(session, outputs, feed)
        except Exception as error:
            if "onnxruntime" not in type(error).__module__:  # such as a timeout's
                raise
            raise ModelError(f"onnxruntime cannot run it ({' '.join(str(error).split())}).") from error
        return [value[None] for value in found] if bare else found

    return forward


def _run_on_device(session: Any, outputs: Sequence[str], feed: Mapping[str, Any]) -> list[Array]:
    """Run on torch tensors where they are; only the outputs are copied to the host."""
    binding = session.io_binding()
    for name, value in feed.items():
        if isinstance(value, np.ndarray):
            binding.bind_cpu_input(name, value)
            continue
        if value.is_cuda:
            framework("torch", extra="torch").cuda.current_stream(value.device).synchronize()
        kind = np.dtype(str(value.dtype).removeprefix("torch."))
        place = value.device.type, value.device.index or 0
        binding.bind_input(name, *place, kind, tuple(value.shape), value.data_ptr())
    for name in outputs:
        binding.bind_output(name)  # to the host's memory
    session.run_with_iobinding(binding)
    found: list[Array] = binding.copy_outputs_to_cpu()
    return found


def check_file(path: Path) -> tuple[tuple[Path, ...], int | None]:
    """The files with weights outside the model, and the number of classes, if a final ArgMax shows it.

    The file is parsed without its weights, and refused if a session could not be trusted with it.
    """
    onnx = framework("onnx", install="pip install onnx")
    try:
        model = onnx.load(str(path), load_external_data=False)
    except Exception as error:  # protobuf's DecodeError cannot be imported without protobuf
        raise ModelError(f"{path} is not an ONNX model ({error}).") from None
    held = [*_messages(model)]
    if not all(isinstance(text, str) for message in held for text in _texts(message)):
        raise ModelError(f"{path} contains a name that is not UTF-8; export it again.")
    tensors = (message for message in held if isinstance(message, onnx.TensorProto))
    entries = (entry for tensor in tensors for entry in tensor.external_data)
    locations = {entry.value for entry in entries if entry.key == "location"}
    return tuple(confine(path, location) for location in sorted(locations)), _arg_max_classes(onnx, model)


def confine(model: Path, location: str) -> Path:
    """The file of external weights at `location`, which must lie in the model's folder.

    A model file may come from anywhere; it must not be able to read, say, a key from the home folder into
    its weights. Links count as the file they lead to, but model and weights may be links into one folder.
    """
    posix, windows = PurePosixPath(location), PureWindowsPath(location)
    absolute = posix.is_absolute() or windows.is_absolute() or windows.drive
    if absolute or ".." in {*posix.parts, *windows.parts} or not location or "\0" in location:
        raise ModelError(f"{model} stores weights in {location!r}, outside its folder; this is refused.")
    target = (model.parent / posix).resolve()
    homes = (model.parent.resolve(), model.resolve().parent)
    if not any(target.is_relative_to(home) for home in homes):
        raise ModelError(f"{model} stores weights in {location!r}, a link that leads outside to {target}.")
    if not is_file(target):
        raise ModelError(f"{model} stores weights in {location!r}, which is missing; copy it there.")
    return target


def _messages(message: Any) -> Iterator[Any]:
    """A message of protobuf and all those inside it: graphs, nodes, tensors, functions, entries."""
    yield message
    for field, value in message.ListFields():
        if field.type == field.TYPE_MESSAGE:
            for inside in [value] if hasattr(value, "ListFields") else value:
                yield from _messages(inside)


def _texts(message: Any) -> Iterator[object]:
    """The texts of a message but for remarks, which no session reads; protobuf gives bytes if not UTF-8."""
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING and field.name != "doc_string":
            yield from [value] if isinstance(value, str | bytes) else value


def _arg_max_classes(onnx: Any, model: Any) -> int | None:
    """The number of classes that a final ArgMax chooses from."""
    outputs = {value.name for value in model.graph.output}
    last = next((n for n in model.graph.node if n.op_type == "ArgMax" and outputs & {*n.output}), None)
    if last is None or not last.input:
        return None
    try:
        graph = onnx.shape_inference.infer_shapes(model).graph
    except Exception:  # an unusual graph: the user must state the classes
        return None
    shapes = {value.name: value.type.tensor_type.shape.dim for value in graph.value_info}
    axis = next((a.i for a in last.attribute if a.name == "axis"), 0)
    sides = shapes.get(last.input[0], ())
    return sides[axis].dim_value or None if -len(sides) <= axis < len(sides) else None
