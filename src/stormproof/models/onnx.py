"""ONNX models through ONNX Runtime: `onnx:model.onnx[,card=card.yaml,classes=coco80,…]`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.loading import framework
from stormproof.core.spec import opens
from stormproof.models.card import Card
from stormproof.models.guess import (
    Graph,
    Tensor,
    guess_card,
    guess_input,
    image_input,
    outputs_in_words,
    several_at_once,
)
from stormproof.models.loading import model_file
from stormproof.models.network import Array, Forward, Network, assemble_card, chosen_outputs
from stormproof.models.onnxfile import inspect_onnx

_DTYPES = {
    "tensor(float)": "float32", "tensor(float16)": "float16", "tensor(double)": "float64",
    "tensor(uint8)": "uint8", "tensor(int8)": "int8", "tensor(int64)": "int64", "tensor(int32)": "int32",
    "tensor(bool)": "bool",
}  # fmt: skip
# transformers' DETR may ask which pixels belong to the image; one that is alone in its batch fills it.
_MASK = "pixel_mask"
_PROVIDERS = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
    "openvino": ["OpenVINOExecutionProvider", "CPUExecutionProvider"],
    "coreml": ["CoreMLExecutionProvider", "CPUExecutionProvider"],
}


@opens("onnx")
def open_onnx(
    main: str,
    *,
    card: str | None = None,
    classes: str | None = None,
    threads: int = 1,
    batch: int = 1,
    device: str = "cpu",
    score: float | None = None,
    iou: float | None = None,
    keep: int | None = None,
    decoder: str | None = None,
) -> Network:
    """Open a model file; `card` defaults to the YAML file of the same name beside it, if there is one."""
    path = model_file(main, "an ONNX model")
    runtime = framework("onnxruntime", extra="onnx")
    inside = inspect_onnx(path)
    session = _session(runtime, path, threads, device)
    graph = _graph(session, inside.classes)
    settings = {"decoder": decoder, "classes": classes, "score": score, "iou": iou, "keep": keep}
    whole, names = assemble_card(path, card, guess_card(graph), settings, path.name, outputs_in_words(graph))
    _check_inputs(graph, whole, path)
    fixed = image_input(graph).shape[0] == 1
    return Network(
        name=whole.name or path.stem,
        card=whole,
        forward=_forward(session, graph, whole),
        files=(path, *inside.files),
        names=names,
        batch=1 if fixed else batch,
        in_torch=device == "cuda",
    )


def probe_onnx(main: str) -> tuple[Graph, Forward]:
    """The outside of a network, and a way to run it on one input, before anything is known of its card."""
    path = model_file(main, "an ONNX model")
    session = _session(framework("onnxruntime", extra="onnx"), path, 1, "cpu")
    graph = _graph(session, inspect_onnx(path).classes)
    main_input = image_input(graph).name
    return graph, lambda batch: session.run(None, {main_input: batch})


def _session(runtime: Any, path: Path, threads: int, device: str) -> Any:
    if device not in _PROVIDERS:
        raise InvalidOption(f"device={device}: choose one of {', '.join(_PROVIDERS)}.")
    if threads < 1:
        raise InvalidOption(f"threads={threads}: at least 1 is needed.")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 3  # errors only; a run prints its own progress
    available = set(runtime.get_available_providers())
    if _PROVIDERS[device][0] not in available:
        raise InvalidOption(f"device={device}: this onnxruntime offers {', '.join(sorted(available))}.")
    try:
        return runtime.InferenceSession(str(path), options, providers=_PROVIDERS[device])
    except Exception as error:  # onnxruntime's exceptions have no common root of their own
        raise ModelError(f"{path}: onnxruntime cannot load it ({str(error).splitlines()[0]}).") from error


def _graph(session: Any, classes: int | None) -> Graph:
    def read(node: Any) -> Tensor:
        shape = tuple(side if isinstance(side, int) and side > 0 else None for side in node.shape)
        return Tensor(node.name, shape, _DTYPES.get(node.type, node.type))

    metadata = dict(session.get_modelmeta().custom_metadata_map)
    return Graph(
        tuple(map(read, session.get_inputs())), tuple(map(read, session.get_outputs())), metadata, classes
    )


def _check_inputs(graph: Graph, card: Card, path: Path) -> None:
    """Refuses, before the first image, what would fail with every one."""
    main, known = image_input(graph), guess_input(graph)
    others = [t.name for t in graph.inputs if t.name not in (main.name, card.size_input, _MASK)]
    if others:
        raise ModelError(f"{path}: besides the image it wants inputs {others}; export it without them.")
    if several_at_once(graph):
        raise ModelError(f"{path}: {several_at_once(graph)}")
    for key in ("layout", "dtype", "size"):
        said = getattr(card.input, key)
        if key in known and said != known[key]:
            raise ModelError(f"{path}: the card says {key} {said}, the graph wants {known[key]}.")


def _forward(session: Any, graph: Graph, card: Card) -> Forward:
    """Run the session; outputs come in the order of the card, else of the graph, always with a batch axis."""
    outputs = chosen_outputs(card.outputs, [tensor.name for tensor in graph.outputs])
    main = image_input(graph)
    mask = next((tensor for tensor in graph.inputs if tensor.name == _MASK), None)
    unbatched = len(main.shape) == 3
    # torchvision's exports return one image's boxes without an axis for the batch.
    bare = [unbatched or card.decoder == "torchvision" for _ in outputs]

    def forward(batch: Any) -> Sequence[Array]:
        feed = {main.name: batch[0] if unbatched else batch}
        height, width = batch.shape[-2:] if card.input.layout == "NCHW" else batch.shape[1:3]
        if mask is not None:  # some exports fix its sides, whatever the image's
            whole = zip(mask.shape, (len(batch), height, width), strict=True)
            feed[_MASK] = np.ones([fixed or side for fixed, side in whole], mask.dtype)
        if card.size_input:
            feed[card.size_input] = np.array([[width, height]] * len(batch), np.int64)
        on_host = isinstance(batch, np.ndarray)
        found = session.run(outputs, feed) if on_host else _run_on_device(session, outputs, feed)
        return [value[None] if alone else value for value, alone in zip(found, bare, strict=True)]

    return forward


def _run_on_device(session: Any, outputs: Sequence[str], feed: Mapping[str, Any]) -> list[Array]:
    """Run on torch tensors where they are; only what the network answers comes back to the host."""
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
