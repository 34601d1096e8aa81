"""Networks as files: for `builtin:NAME`, NAME.onnx with its card and record; in style/, the pair that paints."""
