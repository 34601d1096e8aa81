"""Sessions of ONNX Runtime, which run the graphs of models, style networks and depth networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from stormproof.core.errors import InvalidOption, ModelError
from stormproof.core.loading import framework

_PROVIDERS = {
    "cpu": ["CPUExecutionProvider"],
    "cuda": ["CUDAExecutionProvider", "CPUExecutionProvider"],
    "openvino": ["OpenVINOExecutionProvider", "CPUExecutionProvider"],
    "coreml": ["CoreMLExecutionProvider", "CPUExecutionProvider"],
}


def open_session(model: Path | bytes, *, threads: int = 1, device: str = "cpu") -> Any:
    """A session for a file or a graph in memory.

    It has one thread, since several processes share the machine, unless `threads` says otherwise: 0 is one
    for each core.
    """
    if device not in _PROVIDERS:
        raise InvalidOption(f"device={device}: choose one of {', '.join(_PROVIDERS)}.")
    runtime = framework("onnxruntime", install="pip install onnxruntime")
    available = set(runtime.get_available_providers())
    if _PROVIDERS[device][0] not in available:
        raise InvalidOption(f"device={device}: this onnxruntime offers {', '.join(sorted(available))}.")
    options = runtime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    options.log_severity_level = 4  # errors are raised; nothing else may mix with a run's progress
    name, source = (model, str(model)) if isinstance(model, Path) else ("the graph", model)
    try:
        quiet = {"enable_fallback": device != "cpu"}  # on the CPU, a fallback to the CPU would print a banner
        return runtime.InferenceSession(source, options, providers=_PROVIDERS[device], **quiet)
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise ModelError(f"{name}: onnxruntime cannot load it ({str(error).splitlines()[0]}).") from error
