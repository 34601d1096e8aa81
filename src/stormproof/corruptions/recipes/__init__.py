"""The recipes, by what goes wrong; importing this package registers them all."""

from importlib import import_module

# The order of lists and galleries.
for _module in (
    "noise", "blur", "weather", "digital", "optics", "mutators", "camera", "isp", "board", "patterns",
    "scene", "physical",
):  # fmt: skip
    import_module(f"{__name__}.{_module}")
