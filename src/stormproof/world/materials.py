"""Materials, and the colours of things in a street.

Materials are numbers, because the shading loop switches on them. Colours are muted, and different kinds of
things share them, so that colours alone do not identify objects.
"""

from __future__ import annotations

from stormproof.world.dice import Dice

MATTE = 0  # one colour, faintly mottled
PAINT = 1  # glossy: mirrors a little of the sky
GLASS = 2  # mirrors much of the sky, with a dark inside
ROAD = 3  # asphalt with marks, in street coordinates
PAVING = 4  # slabs, in street coordinates
GRASS = 5
FACADE = 6  # walls with storeys of windows, and perhaps a shop
LEAF = 7
BARK = 8
TILES = 9  # roofs
LAMP = 10  # emits light
SIGN = 11  # a traffic sign: its kind is in the placement's parameters
CLOTH = 12  # clothing: plain, striped or checked
BOARD = 13  # advertising, lorry sides: bands and blocks of colour
GRAVEL = 14  # yards, squares and bare earth
HEDGE = 15

TWO_SIDED = (LEAF,)


Colour = tuple[float, float, float]


def tone(code: str) -> Colour:
    """Linear light of a colour written as six hexadecimal digits."""
    red, green, blue = (int(code[k : k + 2], 16) / 255 for k in (0, 2, 4))
    return red * red, green * green, blue * blue


def tones(codes: str) -> tuple[Colour, ...]:
    return tuple(tone(code) for code in codes.split())


WALLS = tones(
    "b8a78c c9b99a d8cdb6 e4ddcf a35f4a 8e4f3f b5725a 9a8f86 7f8a93 c8c4bc b08d62 d4b483 a9b0a4 "
    "8b6b58 c2a6a0 6f6a66"
)
GLASSY = tones("5b7388 6d8294 4c5c6b 7d8d97 66747c")
BOARDS = tones("dfd8c8 b9c4c9 c9b58e 8f9c8a e8e4da a9bcc8 d9c0a0")
TRIMS = tones("e8e4da d6d0c4 5a544c 3c3a38 8a8278 f0eee8")
ROOFS = tones("8a4a36 6b3f32 5a5450 4a4a4e 76706a 9a5a40 3e4044")
SHOPS = tones("7a2424 1f4a6b 2a5a3a c08a2a 3a3a3a 8a3a6a d8d0c0 b0522a")
GREENS = tones("56743a 4a6a34 66803e 3e5c30 728a48 5c7040 7f8a4a 4f6b45")
METALS = tones("6a6e70 4a4e50 8a8e8e 3a4a40 7a7468 2c2e30")
PAINTS = tones("6a4a30 3a5a44 2e4a6a 8a2e28 55585a 9a9488 c8a23a 3a3a3c")
BARKS = tones("5a4a3c 6e6256 4a3c30 7a7064")


def varied(dice: Dice, colour: Colour, low: float, high: float) -> Colour:
    """The colour with each channel scaled by a random factor."""
    return (
        colour[0] * dice.between(low, high),
        colour[1] * dice.between(low, high),
        colour[2] * dice.between(low, high),
    )
