"""After the image processor: the clock, the memory and the cable that carry the image to the computer.

The authors of *liu* size two of these faults by the smallest annotated object; here strength never depends on
labels, so that a condition affects every image equally.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import U16, Draw
from stormproof.core.sample import Image
from stormproof.corruptions.corruption import constant, corruption, ladder

fault = partial(corruption, family="board", cite="liu2024")

_LOST_BYTE = (16, 128, 128)  # what a receiver shows for missing Y, Cr and Cb


def _extent(draw: Draw, stream: str, share: float, side: int) -> slice:
    """A run of share·side pixels at a random position; at least one unless the share is 0."""
    length = min(max(round(share * side), 1 if share > 0 else 0), side)
    start = draw.integer(stream, side - length + 1)
    return slice(start, start + length)


def _hit(draw: Draw, stream: str, shape: tuple[int, ...], share: float) -> npt.NDArray[np.bool_]:
    """Which parts are hit: each with probability `share`, at least one unless the share is 0."""
    bits = draw.bits(stream, shape)
    return bits < max(round(share * U16), int(bits.min()) + 1 if share > 0 else 0)


@fault(
    owner="frame",
    version=2,
    nested=True,
    height=ladder(0.01, 0.02, 0.03, 0.04, 0.05, low=0, high=1, unit="of the height"),
)
def synchronization_exception(image: Image, draw: Draw, *, height: float) -> Image:
    """The clock skips: a horizontal band of rows never arrives and stays black.

    `height` is its share of the image's height; the band of a severity contains that of the one below.
    `synchronization_tearing` is the authors' second reading, in
    which the rows after the gap move up.
    """
    out = image.copy()
    out[_extent(draw, "band", height, image.shape[0])] = 0
    return out


@fault(
    owner="frame",
    version=2,
    nested=True,
    tears=ladder(1, 2, 3, 4, 5, low=0, high=1000, unit="gaps"),
    rows=constant(0.03, low=0, high=1, unit="of the height"),
)
def synchronization_tearing(image: Image, draw: Draw, *, tears: int, rows: float) -> Image:
    """Rows are lost unnoticed: the rows after each gap move up, and the end of the image is black.

    Each of `tears` gaps loses a share `rows` of the height, at least one row. The authors' script loses
    10 to 20 rows of images about 480 high. Labels stay where they were.
    """
    height = image.shape[0]
    kept = np.ones(height, bool)
    for i in range(tears):
        kept[_extent(draw, f"tear{i}", rows, height)] = False
    out = np.zeros_like(image)
    arrived = image[kept]
    out[: len(arrived)] = arrived
    return out


@fault(
    owner="camera",
    version=2,
    nested=True,
    side=ladder(0.04, 0.06, 0.08, 0.10, 0.12, low=0, high=1, unit="of each side"),
)
def memory_exception(image: Image, draw: Draw, *, side: float) -> Image:
    """A block of the frame buffer is lost and reads black; `side` is its share of each side of the image.

    The block of a severity contains that of the one below.
    """
    out = image.copy()
    rows, columns = (_extent(draw, axis, side, n) for axis, n in zip("yx", image.shape, strict=False))
    out[rows, columns] = 0
    return out


@fault(
    owner="camera",
    version=2,
    nested=True,
    share=ladder(0.002, 0.004, 0.007, 0.010, 0.015, low=0, high=1, unit="of all blocks"),
    block=constant(16, low=1, high=4096, unit="px"),
)
def memory_block_loss(image: Image, draw: Draw, *, share: float, block: int) -> Image:
    """Scattered memory pages are lost: a share of the block×block squares reads black.

    A second reading of `memory_exception`, with many small holes instead of one large one. At least one block
    is lost unless the share is 0.
    """
    height, width = image.shape[:2]
    grid = -(-height // block), -(-width // block)
    out = image.copy()
    for row, column in np.argwhere(_hit(draw, "blocks", grid, share)) * block:
        out[row : row + block, column : column + block] = 0
    return out


@lru_cache(maxsize=2)
def _cleared(wire: str) -> npt.NDArray[np.uint8]:
    """table[place, v]: a byte with one of its eight bits cleared, the highest first."""
    values = np.arange(256)
    if wire == "serial":  # the receiver takes the first 1 for the byte's start
        values = np.array([v << (8 - max(v.bit_length(), 1)) for v in range(256)])
    return np.stack([values & ~(128 >> place) for place in range(8)]).astype(np.uint8)


@fault(
    owner="frame",
    version=2,
    share=ladder(0.12, 0.20, 0.27, 0.34, 0.42, low=0, high=1, unit="of rows and of columns"),
    wire=constant("serial", choices=("serial", "parallel")),
)
def transfer_harness_exception(image: Image, draw: Draw, *, share: float, wire: str) -> Image:
    """A failing cable: bytes of Y, Cr and Cb lose one of their eight bits.

    It happens where a random share of the rows crosses a random share of the columns; each byte loses a bit
    of its own. As in the authors' script, bytes travel on a serial wire whose receiver takes the first 1 for
    the start, so that dark values also jump. wire="parallel" loses only the bit, and needs about twice the
    share for the same harm. On a grey image the bytes are those of Y. The severities match the paper's VIF
    and lie around the script's 0.2; shares of 0.03 to 0.14 (suite `camera-variants`) match its SSIM.
    """
    rows, columns = (
        np.flatnonzero(_hit(draw, axis, (n,), share))
        for axis, n in zip(("rows", "columns"), image.shape, strict=False)
    )
    out = image.copy()
    if len(rows) and len(columns):
        area = np.ix_(rows, columns)
        yuv = imaging.to_yuv(np.ascontiguousarray(image[area]))
        places = draw.bits("places", yuv.shape) >> 13  # the upper three of 16 bits: one of eight places
        out[area] = imaging.from_yuv(_cleared(wire)[places, yuv])
    return out


@fault(
    owner="frame",
    chance=ladder(0.05, 0.10, 0.15, 0.25, 0.35, low=0, high=1, unit="of all stripes"),
    rows=constant(8, low=1, high=4096, unit="px"),
)
def transfer_stripe_loss(image: Image, draw: Draw, *, chance: float, rows: int) -> Image:
    """Bursts on the cable: stripes of rows lose their luma or one of their chroma channels.

    A second reading of `transfer_harness_exception`. Stripes of a grey image can lose only luma, so one in
    three of those hit does.
    """
    stripes = -(-image.shape[0] // rows)
    hit = _hit(draw, "stripes", (stripes,), chance)
    channel = draw.bits("channels", (stripes,)).astype(np.int64) * 3 // U16
    out = image.copy()
    for stripe in np.flatnonzero(hit & (channel < image.shape[2])):
        part = slice(stripe * rows, (stripe + 1) * rows)
        yuv = imaging.to_yuv(np.ascontiguousarray(image[part]))
        yuv[..., channel[stripe]] = _LOST_BYTE[channel[stripe]]
        out[part] = imaging.from_yuv(yuv)
    return out


_MACROBLOCK = 16  # px a side, in all codecs of the H.26x family


def _desynchronised(draw: Draw, shape: tuple[int, ...], rate: float) -> tuple[imaging.Field, ...]:
    """(dy, dx) and the offset of colours of every pixel: those of the last hit in its row of macroblocks."""
    height, width, channels = shape
    blocks = -(-height // _MACROBLOCK), -(-width // _MACROBLOCK)
    hit = _hit(draw, "hits", blocks, rate)
    last = np.maximum.accumulate(np.where(hit, np.arange(1, blocks[1] + 1), 0), axis=1)
    motion = np.rint(draw.uniform_field("motion", (*blocks, 2), -40, 40))
    offset = draw.uniform_field("colour", (*blocks, channels), -60, 60)
    made = np.concatenate([motion, offset], axis=2)[np.arange(blocks[0])[:, None], np.maximum(last - 1, 0)]
    made[last == 0] = 0
    pixels = np.repeat(np.repeat(made, _MACROBLOCK, axis=0), _MACROBLOCK, axis=1)[:height, :width]
    return pixels[..., 0].copy(), pixels[..., 1].copy(), pixels[..., 2:].copy()


@fault(
    cite="kar2022",
    owner="frame",
    rate=ladder(0.001, 0.003, 0.006, 0.012, 0.024, low=0, high=1, unit="of all macroblocks"),
)
def bit_error(image: Image, draw: Draw, *, rate: float) -> Image:
    """Bit errors in a compressed video: from a wrong bit to the end of its slice, blocks are out of place.

    A share `rate` of the macroblocks of 16×16 pixels is hit, at least one. The decoder has then lost the
    motion vector and the mean colour, which are coded as differences: the rest of that row of blocks is
    shifted by up to 40 pixels and its colours by up to 60 levels. The authors damage a stream of H.264 and
    publish no rates.
    """
    dy, dx, offset = draw.each(lambda own: _desynchronised(own, image.shape, rate))
    return imaging.add_pattern(imaging.move(image, dy, dx), offset, gain=1, scale=1)
