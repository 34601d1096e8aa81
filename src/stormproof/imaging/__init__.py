"""The image primitives every recipe is made of, in two sets behind one list of names.

A recipe imports this module and nothing below it. `cpu` works on one image in NumPy arrays, `gpu` on a batch
of images in torch tensors that look like one image to a recipe. `on_device` chooses the second; each module
of a set has its twin in the other, and is imported when the first of its functions is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import TYPE_CHECKING, Any

from stormproof.imaging.plans import LUMA, Field, crop_for_zoom, in_channels, patch_centres

if TYPE_CHECKING:
    from stormproof.imaging.cpu.blocks import pixelate
    from stormproof.imaging.cpu.coding import jpeg
    from stormproof.imaging.cpu.colour import (
        add_layer,
        by_brightest,
        channel_means,
        cover,
        grey_of,
        look_up,
        mix,
        resaturate,
        whiten,
    )
    from stormproof.imaging.cpu.convolution import convolve, line_blur, line_blur_field
    from stormproof.imaging.cpu.cubic import enlarged_part
    from stormproof.imaging.cpu.depth import fade, fill_holes, survey
    from stormproof.imaging.cpu.drops import refract
    from stormproof.imaging.cpu.fields import relief, subdivide
    from stormproof.imaging.cpu.gaussian import gaussian_blur, gaussian_field
    from stormproof.imaging.cpu.mosaic import demosaic, mosaic
    from stormproof.imaging.cpu.moves import move, radial_field, sources
    from stormproof.imaging.cpu.noise import add_noise, noise_by_table, salt_and_pepper
    from stormproof.imaging.cpu.patches import blur_patches, spread_kernels
    from stormproof.imaging.cpu.pixels import black_and_white_pixels, noise_within, transform_colours
    from stormproof.imaging.cpu.radial import radial
    from stormproof.imaging.cpu.scattering import scatter_gaussian
    from stormproof.imaging.cpu.warps import displace, enlarge, scatter, zoom_mean
    from stormproof.imaging.cpu.yuv import dissolve, from_yuv, to_yuv

# Module, the same in either set → its primitives.
MODULES = {
    "blocks": ("pixelate",),
    "coding": ("jpeg",),
    "colour": (
        "add_layer", "by_brightest", "channel_means", "cover", "grey_of", "look_up", "mix", "resaturate",
        "whiten",
    ),
    "convolution": ("convolve", "line_blur", "line_blur_field"),
    "cubic": ("enlarged_part",),
    "depth": ("fade", "fill_holes", "survey"),
    "drops": ("refract",),
    "fields": ("relief", "subdivide"),
    "gaussian": ("gaussian_blur", "gaussian_field"),
    "mosaic": ("demosaic", "mosaic"),
    "moves": ("move", "radial_field", "sources"),
    "noise": ("add_noise", "noise_by_table", "salt_and_pepper"),
    "patches": ("blur_patches", "spread_kernels"),
    "pixels": ("black_and_white_pixels", "noise_within", "transform_colours"),
    "radial": ("radial",),
    "scattering": ("scatter_gaussian",),
    "warps": ("displace", "enlarge", "scatter", "zoom_mean"),
    "yuv": ("dissolve", "from_yuv", "to_yuv"),
}  # fmt: skip
_HOMES = {name: module for module, names in MODULES.items() for name in names}

_CHOSEN: ContextVar[str] = ContextVar("set of primitives", default="cpu")


@contextmanager
def on_device() -> Iterator[None]:
    """Within it, and in this thread alone, primitives are those of the GPU set."""
    token = _CHOSEN.set("gpu")
    try:
        yield
    finally:
        _CHOSEN.reset(token)


def _found(chosen: str, name: str) -> Callable[..., Any]:
    function: Callable[..., Any] = getattr(import_module(f"{__name__}.{chosen}.{_HOMES[name]}"), name)
    return function


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found: dict[str, Callable[..., Any]] = {}

    def primitive(*args: Any, **options: Any) -> Any:
        chosen = _CHOSEN.get()
        if chosen not in found:
            found[chosen] = _found(chosen, name)
        return found[chosen](*args, **options)

    primitive.__name__ = primitive.__qualname__ = name
    globals()[name] = primitive
    return primitive
