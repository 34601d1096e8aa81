"""The networks that `builtin:NAME` opens, as files: NAME.onnx, its card NAME.yaml, its training NAME.json."""
