"""How the networks of the package were trained: PyTorch on scenes of the built-in street.

Each file is one concern: `pool` and `rendering` make the scenes, `scenes` and `augment` feed them,
`networks` and `losses` learn, `loop` runs, `evaluation` watches, `export` writes ONNX. What is trained is
said in `configs/`.
"""
