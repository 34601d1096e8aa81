"""Networks as files: for `builtin:NAME`, NAME.onnx, its card NAME.yaml and its training NAME.json; in style/, the
pair that paints in styles."""
