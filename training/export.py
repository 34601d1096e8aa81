"""Exports trained weights as the package ships them: an ONNX file, its card, and the log of its training.

Weights are stored as float16 and widened by the first nodes of the graph, which ONNX Runtime folds when it
loads the file, so the network computes in float32.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
import yaml
from onnx import TensorProto, helper, numpy_helper
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from stormproof.world.classes import OBJECTS, SEMANTIC
from training.boxes import LONGEST, cells
from training.networks import STRIDES, build

SIZE = (320, 512)  # height, width
NARROW = 64  # arrays with fewer values stay float32


class Exported(nn.Module):
    """A network whose outputs have the names and form that one of the package's decoders reads."""

    outputs: tuple[str, ...]

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network


class Rows(Exported):
    """YOLOX's table: centre and log sides in strides, objectness, classes."""

    outputs = ("rows",)

    def forward(self, x: Tensor) -> Tensor:
        rows = self.network(x)["rows"]
        sides = rows[..., 2:4].clamp(max=LONGEST)
        return torch.cat([rows[..., :2], sides, rows[..., 4:].sigmoid()], -1)


class MaskRows(Exported):
    """YOLOv5's table of masks: centre and sides in pixels, objectness, classes, coefficients; prototypes."""

    outputs = ("rows", "prototypes")

    def __init__(self, network: nn.Module) -> None:
        super().__init__(network)
        places, steps = cells(SIZE, torch.device("cpu"))
        self.register_buffer("places", places)
        self.register_buffer("steps", steps)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        found = self.network(x)
        rows, end = found["rows"], 5 + len(OBJECTS)
        middle = (rows[..., :2] + self.places) * self.steps
        sides = rows[..., 2:4].clamp(max=LONGEST).exp() * self.steps
        table = torch.cat([middle, sides, rows[..., 4:end].sigmoid(), rows[..., end:]], -1)
        return table, found["prototypes"]


class Peaks(Exported):
    """CenterNet's maps: heat, sides and offsets in cells."""

    outputs = ("heat", "sides", "offsets")

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        found = self.network(x)
        edges = found["edges"].clamp(max=LONGEST).exp()
        before, after = edges[:, :2], edges[:, 2:]
        return found["heat"], before + after, 0.5 + (after - before) / 2


class Scores(Exported):
    """A plane of scores for each class."""

    outputs = ("logits",)

    def forward(self, x: Tensor) -> Tensor:
        logits: Tensor = self.network(x)["logits"]
        return logits


_STRIDES = {"strides": list(STRIDES)}
_LIMITS = {"score": 0.01, "keep": 100}  # the thresholds of the scores in NAME.json
# The wrapper that exports each kind of network, and its card's output section.
WAYS: dict[str, tuple[type[Exported], dict[str, Any]]] = {
    "grid": (Rows, {"decoder": "yolox", "options": _STRIDES, "classes": list(OBJECTS), **_LIMITS}),
    "masks": (MaskRows, {"decoder": "yolov5", "classes": list(OBJECTS), **_LIMITS}),
    "centre": (Peaks, {"decoder": "centernet", "classes": list(OBJECTS)}),
    "semantic": (Scores, {"decoder": "logits", "classes": list(SEMANTIC)}),
}
INPUT = {
    "size": list(SIZE), "channels": "RGB", "resize": "letterbox", "align": "centre", "pad": 127,
    "mean": 127.5, "std": 127.5,
}  # fmt: skip


def fused(network: nn.Module) -> nn.Module:
    """Fold every batch norm into the convolution before it."""
    for name, child in network.named_children():
        layers = list(child) if isinstance(child, nn.Sequential) else []
        match layers:
            case [nn.Conv2d() as convolution, nn.BatchNorm2d() as norm, *rest]:
                setattr(network, name, nn.Sequential(fuse_conv_bn_eval(convolution, norm), *rest))
            case _:
                fused(child)
    return network


def load_weights(path: Path) -> tuple[nn.Module, dict[str, Any]]:
    """A trained network in evaluation mode, and the log of its training."""
    kept = torch.load(path, map_location="cpu", weights_only=True)
    log: dict[str, Any] = json.loads(kept["log"])
    training = log["training"]
    network = build(training["network"], training["options"], 0)
    network.load_state_dict(
        {k: t.float() if t.is_floating_point() else t for k, t in kept["weights"].items()}
    )
    return network.eval(), log


def export(path: Path, out: Path) -> Path:
    """Write NAME.onnx, NAME.yaml (the card) and NAME.json (the log) for the weights in NAME.pt."""
    network, log = load_weights(path)
    name = log["training"]["name"]
    wrap, card = WAYS[log["training"]["network"]]
    target = out / f"{name}.onnx"
    out.mkdir(parents=True, exist_ok=True)
    write_onnx(wrap(fused(network)).eval(), target)
    whole = {"name": name, "input": INPUT, **card}
    (out / f"{name}.yaml").write_text(yaml.safe_dump(whole, sort_keys=False))
    (out / f"{name}.json").write_text(json.dumps(log, indent=1) + "\n")
    return target


def write_onnx(network: Exported, target: Path) -> None:
    example = torch.zeros(1, 3, *SIZE)
    torch.onnx.export(
        network, (example,), str(target), input_names=["image"], output_names=list(network.outputs),
        opset_version=17, dynamo=False,
    )  # fmt: skip
    onnx.save(narrowed(onnx.load(str(target))), str(target))


def narrowed(model: Any) -> Any:
    """The same model with its weights as float16, each widened by a Cast node."""
    graph = model.graph
    casts = []
    for tensor in list(graph.initializer):
        values = numpy_helper.to_array(tensor)
        if values.dtype != np.float32 or values.size < NARROW:
            continue
        half = f"{tensor.name}.half"
        graph.initializer.remove(tensor)
        graph.initializer.append(numpy_helper.from_array(values.astype(np.float16), half))
        casts.append(helper.make_node("Cast", [half], [tensor.name], to=TensorProto.FLOAT))
    nodes = list(graph.node)
    del graph.node[:]
    graph.node.extend([*casts, *nodes])
    onnx.checker.check_model(model)
    return model
