"""Networks as files: `builtin:NAME` is NAME.onnx, NAME.yaml and NAME.json; style/ is the pair that paints."""
