"""The image primitives every recipe is made of.

A recipe imports this module and nothing below it. The functions here run on the CPU; a second set with
the same names for GPU arrays can stand behind the same interface without a change in any recipe.
"""

from stormproof.imaging.cpu.blocks import pixelate
from stormproof.imaging.cpu.coding import jpeg
from stormproof.imaging.cpu.colour import (
    LUMA,
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
from stormproof.imaging.cpu.fields import relief, subdivide
from stormproof.imaging.cpu.gaussian import Field, gaussian_blur, gaussian_field
from stormproof.imaging.cpu.noise import add_noise, noise_by_table, salt_and_pepper
from stormproof.imaging.cpu.warps import (
    crop_for_zoom,
    displace,
    enlarge,
    resize_cubic,
    scatter,
    zoom_mean,
)

__all__ = [
    "LUMA",
    "Field",
    "add_layer",
    "add_noise",
    "by_brightest",
    "channel_means",
    "convolve",
    "cover",
    "crop_for_zoom",
    "displace",
    "enlarge",
    "gaussian_blur",
    "gaussian_field",
    "grey_of",
    "jpeg",
    "line_blur",
    "line_blur_field",
    "look_up",
    "mix",
    "noise_by_table",
    "pixelate",
    "relief",
    "resaturate",
    "resize_cubic",
    "salt_and_pepper",
    "scatter",
    "subdivide",
    "whiten",
    "zoom_mean",
]
