"""ONNX Runtime sessions: one thread on the CPU, since several processes share the machine."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from stormproof.core.errors import ModelError
from stormproof.core.files import read_bytes
from stormproof.core.loading import framework
from stormproof.style.adain import Field, Run


def fingerprint(files: Iterable[Path]) -> str:
    """A hash of the files that make up a network."""
    return hashlib.blake2b(
        b"".join(read_bytes(file, error=ModelError) for file in files), digest_size=16
    ).hexdigest()


def session(model: bytes | Path) -> Any:
    """An ONNX Runtime session on the CPU."""
    onnxruntime = framework("onnxruntime", install="pip install onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    source = model if isinstance(model, bytes) else str(model)
    try:
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's exceptions have no common base class
        raise ModelError(
            f"{model if isinstance(model, Path) else 'graph'}: cannot be loaded ({error})."
        ) from error


def runner(model: bytes | Path) -> Run:
    """A function that runs a graph with one input and one output."""
    opened = session(model)
    name = opened.get_inputs()[0].name

    def run(batch: Field) -> Field:
        return np.asarray(opened.run(None, {name: batch})[0], np.float32)

    return run
