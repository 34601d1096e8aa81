"""The recipes, one module for each part of the world that goes wrong; importing this registers them all."""

from importlib import import_module

# The order of lists and galleries.
for _module in (
    "noise", "blur", "weather", "light", "digital", "optics", "mutators", "contextual",
    "camera", "isp", "board", "style",
):  # fmt: skip
    import_module(f"{__name__}.{_module}")
