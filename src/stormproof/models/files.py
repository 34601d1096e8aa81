"""Model files by their names: the kind that opens a file, and how to convert one that no kind opens."""

from __future__ import annotations

import json
from pathlib import Path, PurePath

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.files import expand, is_file
from stormproof.core.spec import Spec

# Files of one kind only, which therefore need not be named.
_KINDS = {".onnx": "onnx", ".tflite": "tflite"}
# The spec that other files may need, by suffix.
_LIKELY = {
    ".pt": "torch:{0}", ".pth": "torch:{0},module=package.module:factory",
    ".safetensors": "torch:{0},module=package.module:factory", ".json": "results:{0}", ".py": "{0}:function",
}  # fmt: skip
_CHECKED = ("onnx", "tflite", "torch", "results")  # kinds that open files of their own formats alone
_FUNCTION = "or call it from a Python function, script.py:function"
_TF2ONNX = "convert it with python -m tf2onnx.convert {} --output model.onnx"
_ORIGINAL = "export the network that it was made from as ONNX"
# Formats that no kind opens, by suffix: what they are, and how to get an ONNX file.
_OTHERS: dict[tuple[str, ...], tuple[str, str]] = {
    (".caffemodel", ".prototxt"): ("a Caffe model", "convert it with caffe2onnx"),
    (".pb",): ("a TensorFlow graph", _TF2ONNX.format("--graphdef FILE --inputs NAME:0 --outputs NAME:0")),
    (".h5", ".hdf5", ".keras"): ("a Keras model", _TF2ONNX.format("--keras FILE")),
    (".engine", ".trt", ".plan"): ("a TensorRT engine, which fits one GPU", _ORIGINAL),
    (".mlmodel", ".mlpackage", ".mlmodelc"): ("a Core ML model", _ORIGINAL),
    (".xml",): ("an OpenVINO model", _ORIGINAL),
    (".param", ".ncnn"): ("an ncnn model", _ORIGINAL),
    (".pdmodel", ".pdiparams", ".pdparams"): ("a PaddlePaddle model", "convert it with paddle2onnx"),
    (".weights", ".cfg"): ("a Darknet model", "convert it to ONNX"),
    (".mnn", ".rknn", ".hef", ".dlc", ".om", ".kmodel"): ("a model for one runtime or chip", _ORIGINAL),
    (".pt2",): ("a program of torch.export", "export the module with torch.onnx.export"),
    (".ckpt",): ("a training checkpoint", "save its weights with torch.save(model.state_dict(), 'w.pth')"),
    (".pkl", ".pickle"): ("a pickle, which can run any code when opened", "export the model as ONNX"),
}  # fmt: skip


def full_spec(text: str) -> str:
    """The spec with the kind of a bare file, `onnx:a.onnx` for `a.onnx`; all other specs as they are.

    A bare file that may be of several kinds is refused, and the likely spec suggested.

    >>> full_spec("a.onnx,classes=coco80"), full_spec("onnx:a.onnx")
    ('onnx:a.onnx,classes=coco80', 'onnx:a.onnx')
    """
    main, comma, rest = text.strip().partition(",")
    suffix = PurePath(main).suffix.lower()
    if ":" in main.removeprefix("C:"):
        return text
    refuse_other_formats(main)
    if suffix in _KINDS:
        return f"{_KINDS[suffix]}:{main}{comma}{rest}"
    if suffix in _LIKELY:
        yolo = suffix == ".pt" and "yolo" in main.lower()
        form = "ultralytics:{0},trust=true" if yolo else _LIKELY[suffix]
        raise InvalidOption(f"{text!r} names a file but not its kind; write {form.format(main)}{comma}{rest}")
    return text


def check_format(spec: Spec) -> None:
    """Refuse a file that its kind does not open; name the kind that does, or how to convert the file."""
    if spec.kind not in _CHECKED:
        return
    refuse_other_formats(spec.main)
    right = _KINDS.get(PurePath(spec.main).suffix.lower(), spec.kind)
    if right != spec.kind:
        raise InvalidOption(
            f"{spec.main} is not for {spec.kind}:; write {Spec(right, spec.main, spec.options)}"
        )


def refuse_other_formats(main: str) -> None:
    """Refuse a file or folder in a format that no kind opens, and say how to convert it."""
    path = expand(main, error=ModelError)
    suffix = path.suffix.lower()
    known = next((entry for suffixes, entry in _OTHERS.items() if suffix in suffixes), None)
    if is_file(path / "saved_model.pb"):
        known = "a TensorFlow SavedModel", _TF2ONNX.format(f"--saved-model {main}")
    elif suffix == ".json" and _is_tfjs(path):
        how = "convert it with tensorflowjs_converter or tfjs-graph-converter, then tf2onnx"
        known = "a TensorFlow.js model", how
    if known is not None:
        what, how = known
        raise ModelError(
            f"{main} is {what}, which is not supported; {how.replace('FILE', main)}, {_FUNCTION}."
        )


def _is_tfjs(path: Path) -> bool:
    """Whether a JSON file describes a network of TensorFlow.js."""
    if path.name != "model.json" or not path.is_file():
        return False
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        return False
    return isinstance(content, dict) and bool({"modelTopology", "weightsManifest"} & {*content})
