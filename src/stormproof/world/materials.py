"""What surfaces are made of. Numbers, because the shading loop switches on them."""

from __future__ import annotations

MATTE = 0  # one colour, faintly mottled
PAINT = 1  # glossy: mirrors a little of the sky
GLASS = 2  # mirrors much of the sky over a dark inside
ROAD = 3  # asphalt with marks, in street coordinates
PAVING = 4  # slabs, in street coordinates
GRASS = 5
FACADE = 6  # walls with storeys of windows, perhaps a shop below
LEAF = 7
BARK = 8
TILES = 9  # roofs
LAMP = 10  # shines by itself
SIGN = 11  # a painted plate: what it says is in the placement's parameters
CLOTH = 12  # clothing: plain, striped or checked
BOARD = 13  # advertising, lorry sides: bands and blocks of colour
GRAVEL = 14  # yards, squares and bare earth
HEDGE = 15

TWO_SIDED = (LEAF,)
