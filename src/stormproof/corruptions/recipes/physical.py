"""Rain, night and low sun in physical units: millimetres per hour and lux, from depth and focal length.

Measured and cited values are constants here; what depends on the user's camera or weather is a parameter.
None of these corruptions models lamps, wet roads or shadows, which an image taken by day does not show.
"""

from __future__ import annotations

from functools import lru_cache
from math import exp, pi, radians, sqrt

import numpy as np
import numpy.typing as npt

from stormproof import imaging
from stormproof.core.randomness import Draw, normal_quantiles
from stormproof.core.sample import Camera, Image
from stormproof.corruptions.corruption import constant, corruption, ladder
from stormproof.corruptions.recipes.mutators import STEPS_PER_DEPTH, transmission
from stormproof.corruptions.recipes.scene import VIEW, facing, ray_lengths

Doubles = npt.NDArray[np.float64]

# --- rain

_N0 = 8000.0  # drops per m³ and mm of diameter (Marshall & Palmer 1948)
_SMALLEST, _LARGEST = 1.0, 6.0  # mm; smaller drops are part of the veil, larger ones break up
_NEAREST = 0.5  # m; nearer drops are out of focus
_FINEST = 0.00055  # of the width; where a drop of 2 mm looks thinner, rain is a veil
_WINDOW = 0.04  # m; what the camera sees of the glass in front of it, across
_MOST = 300_000  # drops; only images of extreme shape and very narrow views would show more


def _slope(rate: float) -> float:
    """Λ in 1/mm of the sizes of drops, N(D) = N0·exp(−ΛD) (Marshall & Palmer 1948)."""
    return float(4.1 * rate**-0.21)


def fall_speed(diameter: Doubles | float) -> Doubles:
    """Metres per second of a drop of that diameter in mm (Atlas et al. 1973).

    >>> round(float(fall_speed(2.0)), 2)
    6.55
    """
    return np.asarray(9.65 - 10.3 * np.exp(-0.6 * np.asarray(diameter)))


def rain_extinction(rate: float) -> float:
    """Extinction in 1/m at a rate in mm/h: twice the drops' cross-section, summed over their sizes.

    >>> round(1000 * rain_extinction(25), 2)
    2.77
    """
    return pi * _N0 / _slope(rate) ** 3 * 1e-6


def _diameters(draw: Draw, stream: str, count: int, rate: float) -> Doubles:
    """Diameters in mm of drops that can be seen."""
    share = draw.uniforms(stream, count) * (1 - exp(-_slope(rate) * (_LARGEST - _SMALLEST)))
    return np.asarray(_SMALLEST - np.log(1 - share) / _slope(rate))


def _paths(
    draw: Draw, size: tuple[int, int], camera: Camera, rate: float, exposure: float, speed: float
) -> Doubles:
    """The drops in front of the camera during an exposure, as `imaging.falling` takes them."""
    height, width = size
    farthest = max(camera.fx / width * 0.002 / _FINEST, 2 * _NEAREST)
    # m³, twice the frame
    room = (width / camera.fx) * (2 * height / camera.fy) * (farthest**3 - _NEAREST**3) / 3
    count = min(int(room * _N0 / _slope(rate) * exp(-_slope(rate) * _SMALLEST)), _MOST)
    size_mm = _diameters(draw, "sizes", count, rate)
    near = draw.uniforms("depths", count)
    z = np.cbrt(_NEAREST**3 + near * (farthest**3 - _NEAREST**3))
    # Drops that enter from above begin up to one frame higher, so the room is twice the frame's.
    y = (2 * draw.uniforms("rows", count) - 1) * height
    x = draw.uniforms("columns", count) * width
    wind = draw.uniform("wind", -2, 2)
    if draw.time:  # metres since the clip began, as pixels at each drop's depth; what leaves the room returns
        y = (y + height + camera.fy * fall_speed(size_mm) * draw.time / z) % (2 * height) - height
        x = (x + camera.fx * wind * draw.time / z) % width
    time = exposure / 1000
    later = np.maximum(z - speed * time, 0.1)
    drop, sideways = fall_speed(size_mm) * time, wind * time
    y1 = camera.cy + ((y - camera.cy) * z + camera.fy * drop) / later
    x1 = camera.cx + ((x - camera.cx) * z + camera.fx * sideways) / later
    wide = camera.fx * size_mm / 1000 / z
    length = np.hypot(y1 - y, x1 - x)
    return np.stack((y, x, y1, x1, wide, wide / (wide + length), z), axis=1)


def _on_the_glass(draw: Draw, size: tuple[int, int], rate: float, wiped: float) -> Doubles:
    """Drops on the glass since it was wiped, as `imaging.refract` takes them."""
    height, width = size
    across = np.linspace(_SMALLEST, _LARGEST, 51)
    flux = np.trapezoid(_N0 * np.exp(-_slope(rate) * across) * fall_speed(across), across)  # per m² and s
    mean = flux * _WINDOW**2 * height / width * wiped
    count = min(int(mean + draw.uniform("drops", -1, 1) * sqrt(3 * mean) + 0.5), 2000)  # as spread as Poisson
    sizes = _diameters(draw, "glass", max(count, 0), rate)
    places = draw.uniforms("places", 3 * len(sizes)).reshape(-1, 3)
    tall = 0.65 * sizes / 1000 / _WINDOW * width  # a drop spreads to 1.3 diameters
    wide = tall * (0.75 + 0.25 * places[:, 2])
    return np.stack((places[:, 0] * height, places[:, 1] * width, tall, wide), axis=1)


@corruption(
    family="weather",
    cite="marshall1948",
    owner="scene",
    streams={"noise": "frame", "drops": "camera", "glass": "camera", "places": "camera"},
    needs=("depth", "camera"),
    rate=ladder(5.0, 10.0, 25.0, 50.0, 100.0, low=0.1, high=300, between="log", unit="mm/h"),
    exposure=constant(4.0, low=0.01, high=100, unit="ms"),
    speed=constant(0.0, low=0, high=50, unit="m/s forward"),
    wiped=constant(1.0, low=0, high=60, unit="s since the glass was wiped"),
    view=VIEW,
)
def rain(
    image: Image,
    draw: Draw,
    *,
    depth: imaging.Field,
    camera: Camera,
    rate: float,
    exposure: float,
    speed: float,
    wiped: float,
) -> Image:
    """Rain of `rate` mm/h: a veil that thickens with distance, streaks of falling drops, drops on the glass.

    Drops have the sizes of Marshall and Palmer (1948) and fall as Atlas et al. (1973) measured, by 2.2 cm
    for 2 mm in 4 ms. The veil is fog of their extinction, 2.8 per km at 25 mm/h, in the light of the image's
    dark channel. A drop of 1 to 6 mm within about 4 m is a streak as long as it falls during `exposure`, as
    opaque as the share of that time it covers a point, hidden behind what is nearer, and as bright as half
    the sky and half the scene, since a drop shows nearly all of both (Garg & Nayar 2007). The camera moves
    forward at `speed`, the wind blows across at up to 2 m/s. What fell on 4 cm of glass since it was `wiped`
    refracts the scene upside down. In a clip, drops in the air fall and drift on from frame to frame, those
    on the glass stay.
    """
    size = (image.shape[0], image.shape[1])
    sky = np.asarray(imaging.airlight(image, window=15, share=0.001))
    distance = depth * ray_lengths(size, camera)
    veiled = imaging.fade(
        image, distance, transmission(), STEPS_PER_DEPTH * rain_extinction(rate), tuple(sky)
    )
    streaks = imaging.falling(_paths(draw, size, camera, rate, exposure, speed), np.asarray(depth))
    shown = (sky + np.asarray(imaging.channel_means(image))) / 2
    light = np.interp(shown, np.arange(256), _tables()[0]).astype(np.float32)
    hidden = streaks[..., None]
    wet = _exposed(veiled, draw, np.broadcast_to(1 - hidden, image.shape), hidden * light, _PLENTY)
    drops = _on_the_glass(draw, size, rate, wiped)
    return imaging.refract(wet, drops, factor=6, rim=0.35, passed=0.9)


# --- night and low sun

_PLENTY = 1e6  # electrons at white by day: no noise that 8 bits show
_LEVELS = 4096  # steps of linear light from black to white


@lru_cache(maxsize=1)
def _tables() -> tuple[imaging.Field, npt.NDArray[np.uint8], imaging.Field]:
    """Linear light of each grey level (sRGB), the grey level of each step of light, normal quantiles."""
    v = np.arange(256) / 255
    linear = np.where(v <= 0.04045, v / 12.92, ((v + 0.055) / 1.055) ** 2.4)
    steps = np.linspace(0, 1, _LEVELS)
    shown = np.where(steps <= 0.0031308, 12.92 * steps, 1.055 * steps ** (1 / 2.4) - 0.055)
    return (
        linear.astype(np.float32),
        np.rint(255 * shown).astype(np.uint8),
        normal_quantiles().astype(np.float32),
    )


def _tinted(colour: tuple[float, float, float], channels: int) -> imaging.Field:
    return np.array(imaging.in_channels(colour, channels), np.float32)


_STREET_LIGHT = (1.0, 0.86, 0.66)  # 4000 K, as the camera's daylight balance sees it
_HEADLIGHT = (1.0, 0.95, 0.88)
_CANDELA = 12000.0  # of a pair of dipped beams, in its brightest direction (UNECE R112: up to 44,100 a lamp)
_DARK_SKY = 0.02  # of the light in the street, what a sky over a town shows of it


@lru_cache(maxsize=4)
def _beam(size: tuple[int, int], camera: Camera) -> imaging.Field:
    """Candela of dipped headlights towards each pixel: a wide cone, cut off half a degree below level."""
    y, x = (np.arange(side, dtype=np.float64) for side in size)
    up = np.degrees(np.arctan((camera.cy - y) / camera.fy))[:, None]
    side = np.degrees(np.arctan((x - camera.cx) / camera.fx))
    below = np.exp(-0.5 * (np.minimum(up + 1.5, 0) / 7) ** 2)
    cut = 0.02 + 0.98 / (1 + np.exp(np.clip((up + 0.5) / 0.25, -60, 60)))
    return np.asarray(_CANDELA * below * cut * np.exp(-0.5 * (side / 14) ** 2), np.float32)


@corruption(
    family="light",
    cite="unece112",
    owner="frame",
    needs=("depth", "camera"),
    lux=ladder(20.0, 10.0, 3.0, 1.0, 0.3, low=0, high=1000, between="log", unit="lux in the street"),
    white=constant(40.0, low=0.1, high=100000, unit="exposure: lux of a just saturated white"),
    electrons=constant(2500.0, low=10, high=1e6, unit="electrons at white"),
    headlights=constant(1.0, low=0, high=10, unit="pairs"),
    view=VIEW,
)
def night(
    image: Image,
    draw: Draw,
    *,
    depth: imaging.Field,
    camera: Camera,
    lux: float,
    white: float,
    electrons: float,
    headlights: float,
) -> Image:
    """Night in a street of `lux`: the scene lit by street lamps and the car's own dipped headlights.

    The image taken by day gives what surfaces reflect. They receive `lux` from above and, from the
    headlights, candela / distance² · cos, with the cosine from differences of depth: a cone of ± 14°, cut off
    half a degree below level, of 12,000 candela. The sky keeps 2 %. The camera shows white at `white` lux;
    there a pixel collects `electrons`, 16 ms at f/1.6 on pixels of 3 µm. Their number varies by its square
    root, to which reading adds 2. A road at night has 3 to 30 lux (EN 13201), a full moon gives 0.3.
    """
    size, channels = (image.shape[0], image.shape[1]), image.shape[2]
    distance = depth * ray_lengths(size, camera)
    cone = np.minimum(_beam(size, camera) / (distance * distance), np.float32(2000))
    near = cone * facing(depth, camera) * np.float32(headlights / white)
    lit = np.where(
        distance < np.float32(np.inf), np.float32(lux / white), np.float32(_DARK_SKY * lux / white)
    )
    street, lamps = _tinted(_STREET_LIGHT, channels), _tinted(_HEADLIGHT, channels)
    gain = lit[..., None] * street
    gain += near[..., None] * lamps
    return _exposed(image, draw, gain, np.zeros((1, 1, 1), np.float32), electrons)


def _exposed(image: Image, draw: Draw, gain: imaging.Field, veil: imaging.Field, electrons: float) -> Image:
    light, back, normal = _tables()
    bits = draw.bits("noise", image.shape)
    return imaging.expose(
        image, gain, veil, light=light, electrons=electrons, read=2.0, normal=normal, bits=bits, back=back
    )


_SUNLIGHT = (1.0, 0.9, 0.72)  # of a low sun, through much air


def _glare(
    draw: Draw, size: tuple[int, int], camera: Camera, depth: imaging.Field, elevation: float
) -> imaging.Field:
    """1/θ² in 1/degrees², θ the angle to the sun, which stands in the sky of a random column."""
    height, width = size
    column = draw.uniform("column") * (width - 1)
    row = camera.cy - camera.fy * np.tan(radians(elevation))
    sky = np.flatnonzero(np.isinf(depth[:, round(column)]))
    row = min(row, float(sky.max())) if len(sky) else min(row, -0.05 * height)  # nothing hides it
    y, x = (np.arange(side, dtype=np.float64) for side in size)
    v, u = ((y - camera.cy) / camera.fy)[:, None], (x - camera.cx) / camera.fx
    sv, su = (row - camera.cy) / camera.fy, (column - camera.cx) / camera.fx
    aligned = (1 + v * sv + u * su) / np.sqrt((1 + v * v + u * u) * (1 + sv * sv + su * su))
    angle = np.degrees(np.arccos(np.clip(aligned, -1, 1)))
    return np.asarray(1 / np.maximum(angle, 0.27) ** 2, np.float32)


@corruption(
    family="light",
    cite="cie146",
    owner="scene",
    streams={"noise": "frame"},
    needs=("depth", "camera"),
    lux=ladder(
        2500.0, 5000.0, 10000.0, 20000.0, 40000.0, low=0, high=150000, between="log", unit="lux of the sun"
    ),
    white=constant(20000.0, low=1, high=200000, unit="exposure: lux of a just saturated white"),
    elevation=constant(6.0, low=-20, high=60, unit="degrees above level"),
    view=VIEW,
)
def sun_glare(
    image: Image,
    draw: Draw,
    *,
    depth: imaging.Field,
    camera: Camera,
    lux: float,
    white: float,
    elevation: float,
) -> Image:
    """A low sun ahead: light scattered in lens and windscreen veils the scene around it.

    The veil is that of the eye, 10·E/θ² candela per m² (Stiles and Holladay; CIE 146): E is the sun's `lux`
    on the lens, θ the angle to the sun in degrees. It stands `elevation` degrees above level in a random
    column, and higher where it would not be in the sky; where a column has no sky, above the frame. White
    paper in `white` lux is just white, which is `white`/π candela per m².
    """
    size, channels = (image.shape[0], image.shape[1]), image.shape[2]
    near = _glare(draw, size, camera, np.asarray(depth), elevation)
    near = np.minimum(near * np.float32(10 * lux * pi / white), np.float32(4))
    veil = near[..., None] * _tinted(_SUNLIGHT, channels)
    return _exposed(image, draw, np.ones((1, 1, 1), np.float32), veil, _PLENTY)
