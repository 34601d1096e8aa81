"""The primitives on NumPy arrays: one image at a time, by Numba and OpenCV."""
