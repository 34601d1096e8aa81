"""The image primitives that recipes are made of: one list of names, two implementations.

A recipe imports this package and nothing below it. `cpu` works on one image as a NumPy array, `gpu` on a
batch of images as torch tensors that look like one image to a recipe. `on_device` selects the second. Both
have the same modules, each imported when one of its functions is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stormproof.imaging.plans import (
    LUMA,
    TINY,
    Field,
    cloud_side,
    crop_for_zoom,
    enlarged_size,
    in_channels,
    patch_centres,
    picked,
    survey,
)

if TYPE_CHECKING:
    from stormproof.imaging.cpu.blocks import *
    from stormproof.imaging.cpu.colour import *
    from stormproof.imaging.cpu.convolution import *
    from stormproof.imaging.cpu.depth import *
    from stormproof.imaging.cpu.fields import *
    from stormproof.imaging.cpu.lens import *
    from stormproof.imaging.cpu.local_blur import *
    from stormproof.imaging.cpu.mosaic import *
    from stormproof.imaging.cpu.noise import *
    from stormproof.imaging.cpu.patterns import *
    from stormproof.imaging.cpu.warps import *

# The primitives by module; both sets have the same modules.
MODULES = {
    "blocks": ("jpeg", "pixelate"),
    "colour": (
        "add_layer", "add_pattern", "by_brightest", "channel_means", "cover", "from_yuv", "grey_of",
        "look_up", "mix", "resaturate", "to_yuv", "transform_colours", "whiten",
    ),
    "convolution": ("convolve", "gaussian_blur", "gaussian_field", "line_blur"),
    "depth": ("airlight", "facing", "fade", "fill_holes"),
    "fields": ("both_ways", "drift", "plasma", "relief", "snowfall"),
    "lens": ("radial", "refract"),
    "local_blur": ("blur_patches", "scatter_gaussian", "spread_kernels"),
    "mosaic": ("demosaic", "mosaic"),
    "noise": (
        "add_noise", "black_and_white_pixels", "dissolve", "expose", "noise_by_table", "noise_within",
        "salt_and_pepper",
    ),
    "patterns": (
        "board", "caustic_lens", "coloured_noise", "falling", "plane_wave", "rings", "spectrum_shape",
        "stars", "swirl", "turbulence",
    ),
    "warps": (
        "displace", "enlarged_part", "move", "radial_field", "scatter", "sources",
        "streak", "zoom_mean",
    ),
}  # fmt: skip
_HOMES = {name: module for module, names in MODULES.items() for name in names}

_CHOSEN: ContextVar[str] = ContextVar("set of primitives", default="cpu")


@contextmanager
def on_device() -> Iterator[None]:
    """Inside the block, and in this thread only, primitives are those of `gpu`."""
    token = _CHOSEN.set("gpu")
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    imported: dict[str, Callable[..., Any]] = {}  # from either set

    def primitive(*args: Any, **options: Any) -> Any:
        chosen = _CHOSEN.get()
        if chosen not in imported:
            imported[chosen] = getattr(import_module(f"{__name__}.{chosen}.{_HOMES[name]}"), name)
        return imported[chosen](*args, **options)

    primitive.__name__ = primitive.__qualname__ = name
    globals()[name] = primitive
    return primitive
