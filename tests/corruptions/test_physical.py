"""Rain, night and low sun against what others measured, and against their own formulas on flat walls."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof import imaging
from stormproof.core.condition import Condition
from stormproof.core.randomness import Draw
from stormproof.core.sample import Camera, Context, Sample
from stormproof.corruptions import apply
from stormproof.corruptions.recipes import physical
from stormproof.corruptions.units import physical as quantities

SIZE = (121, 161)
CAMERA = Camera(fx=160.0, fy=160.0, cx=80.0, cy=60.0)
LINEAR = physical._tables()[0].astype(float)


def seen(condition: str, *, grey: int = 128, depth: float | np.ndarray = 20.0, name: str = "a") -> np.ndarray:
    """A flat wall under a condition."""
    image = np.full((*SIZE, 3), grey, np.uint8)
    metres = np.broadcast_to(np.float32(depth), SIZE).copy()
    return apply(Sample(name, image, context=Context(depth=metres, camera=CAMERA)), condition).image


def test_drops_fall_as_measured() -> None:
    """Gunn and Kinzer (1949), metres per second of drops of 1, 2, 3 and 5 mm."""
    assert physical.fall_speed(np.array([1.0, 2, 3, 5])) == pytest.approx([4.03, 6.49, 8.06, 9.09], rel=0.02)


@pytest.mark.parametrize("rate", [5, 10, 25, 50, 100])
def test_drops_carry_the_water_of_their_rate_and_dim_as_published(rate: float) -> None:
    d = np.linspace(0.05, 8, 800)
    number = 8000 * np.exp(-physical._slope(rate) * d)
    water = 6e-4 * np.pi * np.trapezoid(d**3 * physical.fall_speed(d) * number, d)  # mm/h
    assert water == pytest.approx(rate, rel=0.25)
    # The fit 0.312·R^0.67 per km of Weber et al., which other renderers of rain use.
    assert 1000 * physical.rain_extinction(rate) == pytest.approx(0.312 * rate**0.67, rel=0.1)


def test_a_streak_is_as_long_as_its_drop_falls() -> None:
    draw = Draw.keyed(0, "a", "rain", 3)
    short, long = (physical._paths(draw, SIZE, CAMERA, 25, exposure, 0) for exposure in (2.0, 4.0))
    lengths = [np.hypot(*(paths[:, 2:4] - paths[:, :2]).T) for paths in (short, long)]
    assert lengths[1] == pytest.approx(2 * lengths[0])
    diameter = short[:, 4] * short[:, 6] / CAMERA.fx * 1000  # mm, from the width in pixels
    fallen = (short[:, 2] - short[:, 0]) * short[:, 6] / CAMERA.fy  # metres
    assert fallen == pytest.approx(0.002 * physical.fall_speed(diameter), rel=1e-6)
    assert short[:, 5] == pytest.approx(short[:, 4] / (short[:, 4] + lengths[0]))
    assert len(physical._paths(draw, SIZE, CAMERA, 100, 4, 0)) > 2 * len(short)


def test_driving_turns_streaks_away_from_the_middle() -> None:
    paths = physical._paths(Draw.keyed(0, "a", "rain", 3), SIZE, CAMERA, 25, 4.0, 30.0)
    low_left = (paths[:, 0] > 90) & (paths[:, 1] < 40)
    assert (paths[low_left, 3] < paths[low_left, 1]).mean() > 0.8


def test_what_is_near_hides_the_rain_behind_it() -> None:
    paths = np.array([[5.0, 10, 25, 10, 1, 0.5, 3.0]])
    depth = np.full((30, 20), 10, np.float32)
    depth[:, 10] = np.where(np.arange(30) < 15, 2, 10)
    made = imaging.falling(paths, depth)
    assert not made[:15].any()
    assert made[16:25, 10] == pytest.approx(0.5)
    assert made.sum() == pytest.approx(0.5 * (25 - 15 + 0.5), abs=0.3)


def test_heavy_rain_veils_the_distance() -> None:
    image = np.full((*SIZE, 3), 30, np.uint8)
    image[:40] = 220
    depth = np.full(SIZE, 200, np.float32)
    depth[:40] = np.inf
    sample = Sample("a", image, context=Context(depth=depth, camera=CAMERA))
    made = apply(sample, "rain[rate=50,wiped=0,exposure=100]").image
    t = np.exp(-physical.rain_extinction(50) * 200)
    assert np.median(made[60]) == pytest.approx(220 + t * (30 - 220), abs=6)


def test_a_wall_at_night_has_the_brightness_and_noise_of_its_light() -> None:
    """Beyond the headlights only the street's light is left; the lamp's tint is 1 in red."""
    made = seen("night[lux=10,headlights=0]", depth=50.0)[..., 0]
    lit = np.interp(made, np.arange(256), LINEAR)
    expected = LINEAR[128] * 10 / 40
    assert lit.mean() == pytest.approx(expected, rel=0.02)
    electrons = 2500 * expected
    assert lit.std() / lit.mean() == pytest.approx(np.sqrt(electrons + 4) / electrons, rel=0.1)


def test_headlights_fade_with_the_square_of_the_distance() -> None:
    near, far = (LINEAR[seen("night[lux=0,electrons=1000000]", depth=d)[65, 80, 0]] for d in (20.0, 40.0))
    assert near / far == pytest.approx(4, rel=0.1)
    candela = physical._beam(SIZE, CAMERA)
    assert candela[65, 80] == pytest.approx(12000, rel=0.03)  # 1.8 degrees below level
    assert candela[40, 80] < 0.03 * candela[65, 80]  # above the cut-off
    assert near == pytest.approx(LINEAR[128] * 12000 / 20**2 / 40, rel=0.05)


def test_the_sky_is_dark_and_night_gets_darker() -> None:
    assert seen("night@1", grey=200, depth=np.inf).mean() < 40
    means = [seen(f"night@{s}", depth=80.0).mean() for s in range(1, 6)]
    assert means == sorted(means, reverse=True)


def test_the_veil_of_the_sun_falls_with_the_square_of_the_angle() -> None:
    depth = np.full(SIZE, 30, np.float32)
    depth[:20] = np.inf
    near = physical._glare(Draw.keyed(0, "a", "sun_glare", 0), SIZE, CAMERA, depth, 15.0)
    row, column = np.unravel_index(near.argmax(), SIZE)
    assert row <= 19  # in the sky
    v, u = (np.arange(SIZE[0]) - 60) / 160, (column - 80) / 160
    angle = np.degrees(np.arctan((v - v[row]) / np.sqrt(1 + u * u) / (1 + v * v[row] / (1 + u * u))))
    far = np.abs(angle) > 5
    assert near[far, column] == pytest.approx(1 / angle[far] ** 2, rel=0.1)
    glare = seen("sun_glare[lux=10000,elevation=15]", grey=0, depth=depth)[..., 0]
    expected = np.minimum(10 * 10000 * np.pi / 20000 * near, 1)
    assert np.interp(glare, np.arange(256), LINEAR) == pytest.approx(expected, abs=0.01)


def test_breaking_points_have_units() -> None:
    assert next(str(q) for q in quantities(Condition.parse("rain@3"))) == "rain 25 mm/h"
    assert [str(q) for q in quantities(Condition.parse("night@4"))] == ["light in the street 1 lux"]
