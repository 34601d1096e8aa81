"""How the built-in networks were trained: PyTorch on scenes of the built-in street.

`pool` and `rendering` make the scenes, `scenes` and `augment` load them, `networks` and `losses` define what
is learnt, `loop` trains, `evaluation` scores along the way, `export` writes ONNX. `configs/` holds the
settings of each training.
"""
