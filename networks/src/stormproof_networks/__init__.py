"""Networks as files: NAME.onnx, its card and its training for `builtin:NAME`; in style/, the pair that paints."""
