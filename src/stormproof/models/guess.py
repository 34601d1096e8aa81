"""What a network's graph reveals: layout, size and type of its input, and its family by its outputs.

Each family is recognised by the shapes and names that its exporters write. Nothing is guessed from pixels.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stormproof.core.errors import ModelError
from stormproof.models.decoders import DECODERS, IMAGENET, Rule

Shape = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Tensor:
    """An input or output of a graph; a side that varies is None."""

    name: str
    shape: Shape
    dtype: str


@dataclass(frozen=True, slots=True)
class Graph:
    """A network's inputs and outputs. `channels` is the number of classes, if the graph's nodes show it."""

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    metadata: Mapping[str, str] = field(default_factory=dict)
    channels: int | None = None


def describe_shape(shape: Sequence[int | None]) -> str:
    """A shape in words.

    >>> describe_shape((1, 3, None))
    '1×3×?'
    """
    return "×".join("?" if side is None else str(side) for side in shape) or "scalar"


def explain_outputs(graph: Graph) -> str:
    """Why outputs that fit no family cannot be read, and what to do; an error's second half."""
    shapes = _without_batch(graph)
    shown = ", ".join(f"{tensor.name} {describe_shape(tensor.shape)}" for tensor in graph.outputs)
    if all(sum(side != 1 for side in shape) <= 1 for shape in shapes):
        kind = "one list of numbers for each image, as a classifier's, or a reader's of text or landmarks"
        return f"its outputs are {kind} ({shown}); Stormproof tests detectors and segmenters."
    if len(shapes) == 1 and len(shapes[0]) == 2 and (shapes[0][1] or 0) >= _CHARACTERS:
        kind = f"a row of {shapes[0][1]} scores for each character, as a text recogniser's"
        return f"its output is {kind} ({shown}); Stormproof tests detectors and segmenters."
    return (
        f"the graph does not show how to read its outputs {shown}; add ,decoder=NAME or write decoder: in a "
        "card, such as yolov8, boxes or logits (docs/models.md lists them all)."
    )


def guess_card(graph: Graph) -> dict[str, Any]:
    """The part of a card that the graph shows."""
    known = guess_input(graph)
    outputs, _ = recognise(graph, known.get("size"))
    found = {**outputs, "input": {**outputs.get("input", {}), **known}}
    names = metadata_classes(graph.metadata)
    if names:
        found["classes"] = names
    size_input = next(
        (t.name for t in graph.inputs[1:] if t.name in ("orig_target_sizes", "orig_size")), None
    )
    if size_input:
        found["size_input"] = size_input
    return found


def image_input(graph: Graph) -> Tensor:
    """The input for the image: the first with four axes, else with three, where there is no batch axis."""
    for axes in (4, 3):
        found = next((tensor for tensor in graph.inputs if len(tensor.shape) == axes), None)
        if found is not None:
            return found
    shapes = {tensor.name: tensor.shape for tensor in graph.inputs}
    raise ModelError(f"The network has no input for an image: its inputs are {shapes}.")


def batch_problem(graph: Graph) -> str:
    """The problem of a network that was exported for several images at a time; empty if there is none."""
    shape = image_input(graph).shape
    fixed = len(shape) == 4 and shape[0] not in (None, 1)
    return f"it takes {shape[0]} images at once; export it for 1, or any number." if fixed else ""


def guess_input(graph: Graph) -> dict[str, Any]:
    tensor = image_input(graph)
    shape = tensor.shape[-3:]
    last = shape[2] in (1, 3) and shape[0] not in (1, 3)
    height, width = (shape[0], shape[1]) if last else (shape[1], shape[2])
    found: dict[str, Any] = {"layout": "NHWC" if last else "NCHW", "dtype": tensor.dtype}
    if height and width:
        found["size"] = (height, width)
    elif "imgsz" in graph.metadata:
        found["size"] = tuple(literal_list(graph.metadata["imgsz"], "imgsz"))
    for key in ("mean", "std"):  # from the metadata of a .tflite file
        values = literal_list(graph.metadata.get(key, "[]"), key)
        if len(values) in (1, 3):
            found[key] = tuple(values) if len(values) == 3 else values[0]
    return found


def recognise(graph: Graph, size: Sequence[int] | None) -> tuple[dict[str, Any], str]:
    """The decoder and the classes, and how the outputs were recognised."""
    if not graph.outputs:
        raise ModelError("The network has no outputs; export it again.")
    shapes = _without_batch(graph)
    names = [tensor.name for tensor in graph.outputs]
    declared = (decoder.recognise for decoder in DECODERS.values() if decoder.recognise is not None)
    for rule in (*_RULES, *declared, *_LAST):
        found = rule(graph, names, shapes, size)
        if found:
            return found, " ".join((rule.__doc__ or "").split())
    return {}, ""


def _without_batch(graph: Graph) -> list[Shape]:
    return [t.shape[1:] if len(t.shape) > 1 else t.shape or (1,) for t in graph.outputs]


Shapes = Sequence[Shape]
_CHARACTERS = 1000  # more classes than any detector's row of scores has, and fewer than a Chinese alphabet
# The vocabulary that a network with this many classes most likely uses.
_VOCABULARIES = {
    80: "coco80", 90: "coco91", 91: "coco91", 20: "voc20", 21: "voc21", 19: "cityscapes19", 150: "ade150",
}  # fmt: skip


def _classes(count: int | None) -> dict[str, Any]:
    return {"classes": _VOCABULARIES[count]} if count in _VOCABULARIES else {}


# TensorFlow's object detection models, in the order that 'postprocessed' expects.
_TF_OUTPUTS = ("detection_boxes", "detection_classes", "detection_scores", "num_detections")
# DETR's two outputs as transformers, the networks' own authors and RF-DETR name them.
_DETR_OUTPUTS = (("logits", "pred_boxes"), ("pred_logits", "pred_boxes"), ("labels", "dets"))
# DETR by its number of logits: COCO's own numbers from 0 to 90 are 91, one more is for "no object". Networks
# with 91 (Deformable, Conditional, RF-DETR) are normalised as DETR is, those with 80 as RT-DETR.
_DETR: dict[int, dict[str, Any]] = {
    80: {"decoder": "rtdetr", "classes": "coco80"},
    91: {"decoder": "rtdetr", "classes": "coco91", "label_offset": -1, "input": IMAGENET},
    92: {"decoder": "detr", "classes": "coco91", "label_offset": -1},
}


def _by_names(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """Output names of a known exporter: transformers, RT-DETR or TensorFlow."""
    for logits, boxes in _DETR_OUTPUTS:
        if {logits, boxes} <= {*names} and shapes[names.index(boxes)][-1] == 4:
            count = shapes[names.index(logits)][-1]
            return {"outputs": [logits, boxes], **_DETR.get(count or 0, {})}
    if {"labels", "boxes", "scores"} <= {*names} and len(graph.inputs) > 1:
        return {"decoder": "labelled", "outputs": ["labels", "boxes", "scores"]}
    plain = {name.removesuffix(":0"): name for name in names}
    if {*_TF_OUTPUTS} <= {*plain}:  # these count classes from 1
        return {"decoder": "postprocessed", "outputs": [plain[n] for n in _TF_OUTPUTS], "label_offset": -1}
    return {}


def _guess_finished(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """Decoded boxes, N×6 of x1 y1 x2 y2, score and class, beside raw maps, which are not needed."""
    cells = sum(grid_cells(size, (8, 16, 32)))
    tables = [i for i, s in enumerate(shapes) if s[1:] == (6,) and s[0] not in (cells, 3 * cells)]
    maps = [i for i, shape in enumerate(shapes) if len(shape) > 2]
    both = len(tables) == 1 and maps and len(maps) == len(shapes) - 1
    return {"decoder": "yolov10", "outputs": [names[tables[0]]]} if both else {}


def _semantic(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """One map of whole numbers as large as the input, one stack of score planes, or equal single planes."""
    if len(shapes) == 1 and graph.outputs[0].dtype.startswith(("int", "uint")) and len(shapes[0]) in (2, 3):
        return {"decoder": "argmax", **_classes(graph.channels)}
    shape = shapes[0]
    named = names[0] in ("out", "logits")
    plane = size and shape == (1, *size)  # U²-Net, ISNet: the first is the result, the others are its sources
    if not (named or plane or len(shapes) == 1) or len(shape) != 3 or shape[1:] == (1, 1):  # a classifier's
        return {}
    if not size:  # exported for any size: only its name, or being single, distinguishes a map of scores
        planes = (named or shape[0] == 1) and shape[0] is not None and shape[1] is shape[2] is None
        return {"decoder": "logits", "outputs": [names[0]], **_classes(shape[0])} if planes else {}
    if shape[0] and size[0] == 16 * (shape[1] or 0) and shape[0] - 5 in (80, 20):
        return {"decoder": "fastestdet", **_classes(shape[0] - 5)}
    last = shape[2] is not None and shape[1] is not None and shape[2] < min(shape[1], shape[0] or 0)
    found = {"decoder": "logits", "outputs": [names[0]], **_classes(shape[2] if last else shape[0])}
    return {**found, "options": {"channels_last": True}} if last else found


# What MediaPipe's detectors find, by the width of a row: a box, and x and y of 6, 7 or 4 key points. The box
# of its pose detector surrounds the head.
_MEDIAPIPE = {16: "face", 18: "palm", 12: "head"}


def _anchored(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """MediaPipe's detectors of faces, palms and poses: a box and key points, and a logit, for each anchor."""
    wide = next((shape[1] for shape in shapes if len(shape) == 2 and shape[1] in _MEDIAPIPE), None)
    rows = next((shape[0] for shape in shapes if shape[1:] == (wide,)), None)
    if len(shapes) != 2 or not wide or not rows or (rows, 1) not in shapes or not size:
        return {}
    step = size[0] // 16
    layouts: tuple[dict[str, Any], ...] = (
        {"strides": [4], "each": 1},
        {"strides": [step, *[2 * step] * 3]},
        {"strides": [8, 16, 16, 16]},
        {"strides": [8, 16, 32, 32, 32]},
    )
    counts = (one.get("each", 2) * sum(grid_cells(size, one["strides"])) for one in layouts)
    options = next((one for one, count in zip(layouts, counts, strict=True) if count == rows), None)
    order = [names[shapes.index((rows, width))] for width in (wide, 1)]
    found = {"decoder": "blazeface", "outputs": order, "classes": [_MEDIAPIPE[wide]], "options": options}
    return found if options else {}


def _faces_by_distance(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """SCRFD: scores, distances and optionally five key points for strides 8, 16, 32, two rows per cell."""
    rows = [2 * cells for cells in grid_cells(size, (8, 16, 32))]
    widths = [1, 4, 10][: len(shapes) // 3]
    same = sorted(map(str, shapes)) == sorted(str((n, width)) for width in widths for n in rows)
    return {"decoder": "scrfd", "classes": ["face"]} if rows and len(widths) > 1 and same else {}


def _heat(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """CenterNet: a heat map per class, two planes of sides and two of offsets on the same grid."""
    if len(shapes) not in (2, 3) or any(len(shape) != 3 for shape in shapes) or not size:
        return {}
    for axis in (0, 2):
        planes = [shape[axis] for shape in shapes]
        grids = {tuple(side for i, side in enumerate(shape) if i != axis) for shape in shapes}
        first = next((i for i, count in enumerate(planes) if count != 2), None)
        if len(grids) == 1 and first == 0 and planes[1:].count(2) == len(planes) - 1:
            return {"decoder": "centernet", **_classes(planes[0])}
    return {}


def _post_processed(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """Boxes, classes, scores and a count: TensorFlow's post-processing."""
    ranks = [len([side for side in shape if side != 1]) for shape in shapes]
    four = len(shapes) == 4 and shapes[0][-1:] == (4,) and ranks[1] == ranks[2] == 1 and ranks[3] == 0
    return {"decoder": "postprocessed"} if four else {}


def _pairs(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """n×4 boxes and n×classes scores. TensorFlow's boxes are fractions y1 x1 y2 x2, or offsets from anchors
    if they are named encodings; others are pixels x1 y1 x2 y2."""
    if len(shapes) != 2:
        return {}
    first = next((i for i, shape in enumerate(shapes) if shape[-1] == 4 and len(shape) in (2, 3)), None)
    if first is None or len(shapes[1 - first]) != 2:
        return {}
    order = {"outputs": [names[first], names[1 - first]]}
    tensorflow = guess_input(graph)["layout"] == "NHWC" or any("Postprocessor" in name for name in names)
    if tensorflow and any("box_encodings" in name for name in names):
        raw, known = {"decoder": "ssd-raw", **order}, _classes((shapes[1 - first][-1] or 1) - 1)
        return {**raw, **known, "options": {"background": True}} if known else raw  # one column is background
    return {"decoder": "ssd" if tensorflow else "boxes", **order, **_classes(shapes[1 - first][-1])}


def _levels(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """NanoDet (strides 8, 16, 32) or PicoDet (8, 16, 32, 64): for every stride one output of class scores and
    one of distances, 4×bins, as long as the grid."""
    for decoder, strides in (("nanodet", (8, 16, 32)), ("picodet", (8, 16, 32, 64))):
        lengths = sorted([*grid_cells(size, strides)] * 2)
        if lengths and all(len(s) == 2 for s in shapes) and sorted(s[0] or 0 for s in shapes) == lengths:
            return {"decoder": decoder, **_classes(shapes[0][1])}
    return {}


def _table(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """One table of boxes: the number of rows for this input size reveals the family. A second output may
    hold prototypes of masks."""
    shape, masks = shapes[0], len(shapes[1]) == 3 if len(shapes) == 2 else False
    if len(shape) != 2 or len(shapes) > 1 + masks:
        return {}
    extra = (shapes[1][0] or 0) if masks else 0
    long, wide = shape
    cells = sum(grid_cells(size, (8, 16, 32)))
    if long and (wide == cells or long == 4 + extra + len(metadata_classes(graph.metadata)) > 4 + extra):
        return {"decoder": "yolov8", **_classes(long - 4 - extra)}
    if cells and long == 3 * cells and wide:
        return {"decoder": "yolov5", **_classes(wide - 5 - extra)}
    if cells and long == cells and wide:
        return {"decoder": "yolox", **_classes(wide - 5)}
    if wide == 6 + extra:
        return {"decoder": "yolov10"}
    rows = {"decoder": "efficientdet-rows", "classes": "coco91", "label_offset": -1}
    return rows if wide == 7 else {}


def _torchvision(graph: Graph, names: list[str], shapes: Shapes, size: Any) -> dict[str, Any]:
    """A varying number of boxes, integer labels, scores, optionally masks; no batch axis."""
    tensors = graph.outputs
    if len(tensors) not in (3, 4) or tensors[0].shape[-1:] != (4,) or len(tensors[0].shape) != 2:
        return {}
    return {"decoder": "torchvision", "label_offset": -1} if tensors[1].dtype.startswith("int") else {}


# The first rule that recognises the outputs decides; before the last two, the rules of decoders are asked.
_RULES: tuple[Rule, ...] = (
    _by_names, _guess_finished, _anchored, _faces_by_distance, _heat, _semantic, _post_processed, _pairs,
    _levels,
)  # fmt: skip
_LAST: tuple[Rule, ...] = (_table, _torchvision)


def grid_cells(size: Any, strides: Iterable[int]) -> list[int]:
    """The cells of a feature map of each stride; none if the size of the input is unknown."""
    return [-(-size[0] // stride) * -(-size[1] // stride) for stride in strides] if size else []


def metadata_classes(metadata: Mapping[str, str]) -> list[str]:
    """Class names in the file: Ultralytics writes a Python dict {0: 'person', …}, PaddleOCR lines of text."""
    if "names" not in metadata:
        return metadata.get("character", "").splitlines()
    return [str(name) for name in literal_list(metadata["names"], "names")]


def literal_list(text: str, key: str) -> list[Any]:
    """A list that the file's metadata holds as text; of a dict, its values in the order of its keys."""
    try:
        found = ast.literal_eval(text)
        values = [found[index] for index in sorted(found)] if isinstance(found, dict) else found
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        values = None
    if not isinstance(values, list | tuple):
        raise ModelError(f"The network's metadata {key} is {text!r:.60}, which cannot be read.")
    return [*values]
