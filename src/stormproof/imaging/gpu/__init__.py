"""The primitives on torch tensors: a batch of images at a time, on any torch device.

Same modules, names and results as `imaging.cpu`, which describes the functions in full. Importing it loads
neither Numba nor OpenCV; the few primitives that need them are called through `patterns.on_host`.
"""
