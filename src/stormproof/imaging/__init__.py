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
    in_channels,
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
from stormproof.imaging.cpu.gaussian import Field, gaussian_blur, gaussian_field
from stormproof.imaging.cpu.mosaic import demosaic, mosaic
from stormproof.imaging.cpu.moves import move, radial_field, sources
from stormproof.imaging.cpu.noise import add_noise, noise_by_table, salt_and_pepper
from stormproof.imaging.cpu.patches import blur_patches, patch_centres, spread_kernels
from stormproof.imaging.cpu.pixels import black_and_white_pixels, noise_within, transform_colours
from stormproof.imaging.cpu.radial import radial
from stormproof.imaging.cpu.scattering import scatter_gaussian
from stormproof.imaging.cpu.warps import (
    crop_for_zoom,
    displace,
    enlarge,
    scatter,
    zoom_mean,
)
from stormproof.imaging.cpu.yuv import dissolve, from_yuv, to_yuv

__all__ = [
    "LUMA",
    "Field",
    "add_layer",
    "add_noise",
    "black_and_white_pixels",
    "blur_patches",
    "by_brightest",
    "channel_means",
    "convolve",
    "cover",
    "crop_for_zoom",
    "demosaic",
    "displace",
    "dissolve",
    "enlarge",
    "enlarged_part",
    "fade",
    "fill_holes",
    "from_yuv",
    "gaussian_blur",
    "gaussian_field",
    "grey_of",
    "in_channels",
    "jpeg",
    "line_blur",
    "line_blur_field",
    "look_up",
    "mix",
    "mosaic",
    "move",
    "noise_by_table",
    "noise_within",
    "patch_centres",
    "pixelate",
    "radial",
    "radial_field",
    "refract",
    "relief",
    "resaturate",
    "salt_and_pepper",
    "scatter",
    "scatter_gaussian",
    "sources",
    "spread_kernels",
    "subdivide",
    "survey",
    "to_yuv",
    "transform_colours",
    "whiten",
    "zoom_mean",
]
