"""The primitives on torch tensors: a batch of images at a time, on any device that torch knows.

Module by module the twin of `imaging.cpu`, with the same names and the same results. Importing it loads
neither Numba nor OpenCV; the few primitives that need them are in `hosted`, by declaration.
"""
