"""Clips are corrupted as a camera would: dirt stays, rain moves, noise flickers."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import stormproof.corruptions.recipes as recipes
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition
from stormproof.core.randomness import Draw, Frame
from stormproof.core.sample import Camera, Context, Sample
from stormproof.corruptions import CORRUPTIONS, apply, corrupt_image, truth_under
from stormproof.corruptions.chain import steps
from stormproof.corruptions.corruption import every_severity
from stormproof.corruptions.plugins import is_plugin
from stormproof.corruptions.recipes import physical

RANDOM = [one for one in CORRUPTIONS.values() if one.is_random and one.severities and not is_plugin(one)]
MOVING = ("snow", "fog", "rain", "caustic_refraction", "perlin_noise", "plasma_noise")
SIZE = (48, 64)


def scene(name: str, sequence: str = "", time: float = 0.0) -> Sample:
    rng = np.random.default_rng(3)
    image = (np.linspace(30, 200, SIZE[1])[None, :, None] + rng.integers(0, 30, (*SIZE, 3))).astype(np.uint8)
    depth = np.tile(np.geomspace(60, 3, SIZE[0])[:, None], (1, SIZE[1])).astype(np.float32)
    return Sample(name, image, context=Context(depth=depth), sequence=sequence, time=time)


def pixels(condition: Condition | str, name: str, sequence: str = "", time: float = 0.0) -> np.ndarray:
    return apply(scene(name, sequence, time), condition).image


def test_every_random_recipe_declares_the_owner_of_its_numbers() -> None:
    for path in Path(recipes.__file__).parent.glob("*.py"):
        for function in ast.parse(path.read_text(encoding="utf-8")).body:
            if not isinstance(function, ast.FunctionDef) or not function.decorator_list:
                continue
            call = function.decorator_list[0]
            if isinstance(call, ast.Call) and function.name in CORRUPTIONS:
                draws = "draw" in [argument.arg for argument in function.args.args]
                assert draws == ("owner" in {word.arg for word in call.keywords}), function.name


@pytest.mark.parametrize("one", RANDOM, ids=lambda one: one.name)
def test_owners_decide_what_changes_from_frame_to_frame(one: object) -> None:
    condition = every_severity(one.name)[2]
    first = pixels(condition, "f1", "clip", 0.7)
    other_name = pixels(condition, "f2", "clip", 0.7)
    if one.owner == "frame":
        assert (first == pixels(condition, "f1")).all()  # as if there were no clip
        others = (other_name, pixels(condition, "f3", "clip", 0.7))  # a band may lie in one place twice
        assert any((first != other).any() for other in others)
    else:
        seen_by_frame = "frame" in one.streams.values()
        assert seen_by_frame or (first == other_name).all()
        assert (first != pixels(condition, "f1", "other clip", 0.7)).any()
    later = pixels(condition, "f1", "clip", 1.4)
    assert (first != later).any() == (one.name in MOVING)


def draw_of(condition: str, frame: Frame) -> Draw:
    (step,) = steps(Condition.parse(condition))
    return step.draw(frame, 0)


def test_a_stream_may_have_another_owner_than_its_recipe() -> None:
    draw = draw_of("rain@3", Frame("a", "clip", 0.5))
    other = draw_of("rain@3", Frame("b", "clip", 0.9))
    for stream in ("rows", "sizes", "glass", "places", "drops", "wind"):
        assert draw.uniform(stream) == other.uniform(stream)
    assert draw.uniform("noise") != other.uniform("noise")
    assert draw.uniform("noise") == Draw.keyed(0, "a", "rain", 3).uniform("noise")
    assert (draw.time, other.time) == (0.5, 0.9)


@pytest.mark.parametrize(
    "condition", ["fog@3", "frost@2", "gaussian_noise@1", "rain@4", "caustic_refraction@3"]
)
def test_time_is_ignored_without_a_sequence(condition: str) -> None:
    assert (pixels(condition, "a", "", 5.0) == pixels(condition, "a")).all()


def test_fog_drifts_with_the_wind() -> None:
    flat = np.full((64, 64, 3), 120, np.uint8)
    still, later = (corrupt_image(flat, "fog@3", image_id=Frame("a", "clip", t)) for t in (0.0, 5.0))
    wind = draw_of("fog@3", Frame("a", "clip")).uniform("wind", -2, 2)
    shift = round(0.04 * 64 * wind * 5)
    assert shift
    assert (later == np.roll(still, shift, axis=1)).all()


@pytest.mark.parametrize("size", [(48, 96), (96, 48)])
def test_fog_drifts_by_the_width_of_the_image(size: tuple[int, int]) -> None:
    """By 0.04 widths a second for each m/s; the cloud's square begins at the corner of the image."""
    flat = np.full((*size, 3), 120, np.uint8)
    still, later = (corrupt_image(flat, "fog@3", image_id=Frame("a", "clip", t)) for t in (0.001, 5.0))
    wind = draw_of("fog@3", Frame("a", "clip")).uniform("wind", -2, 2)
    shift = round(0.04 * size[1] * wind * 5)
    assert 1 < abs(shift) < size[1] - 1
    assert abs(shift) != abs(round(0.04 * size[0] * wind * 5))
    kept = size[1] - abs(shift)
    ours = still[:, :kept] if shift > 0 else still[:, -shift:]
    theirs = later[:, shift:] if shift > 0 else later[:, :kept]
    assert (ours == theirs).all()


def test_snow_falls_along_its_streaks() -> None:
    flat = np.full((60, 80, 3), 40, np.uint8)
    still, later = (corrupt_image(flat, "snow@3", image_id=Frame("a", "clip", t)) for t in (0.0, 0.5))
    angle = draw_of("snow@3", Frame("a", "clip")).uniform("angle", -135, -45)
    way = 0.27 * 80 * 0.5
    down, across = round(-way * np.sin(np.radians(angle))), round(-way * np.cos(np.radians(angle)))
    assert down > 0
    assert (later == np.roll(still, (down, across), (0, 1))).all()


def test_drops_fall_as_fast_as_their_size_says() -> None:
    camera, size, rest = Camera(160.0, 160.0, 80.0, 60.0), (121, 161), (25.0, 4.0, 0.0)
    draw = Draw.keyed(0, "sequence", "clip", "rain", 3)
    before = physical._paths(draw, size, camera, *rest)
    after = physical._paths(replace(draw, time=0.01), size, camera, *rest)
    speed = physical.fall_speed(1000 * before[:, 4] * before[:, 6] / camera.fx)  # of the diameter in mm
    fallen = (after[:, 0] - before[:, 0]) % (2 * size[0])
    assert fallen == pytest.approx((camera.fy * speed * 0.01 / before[:, 6]) % (2 * size[0]), abs=1e-6)
    assert ((-size[0] <= after[:, 0]) & (after[:, 0] < size[0])).all()


def test_near_drops_drift_farther_across_the_image_than_far_ones() -> None:
    """The wind is the same for all; as pixels, it is divided by each drop's distance."""
    camera, size, rest = Camera(160.0, 170.0, 80.0, 60.0), (121, 161), (25.0, 4.0, 0.0)
    draw = Draw.keyed(0, "sequence", "clip", "rain", 3)
    before = physical._paths(draw, size, camera, *rest)
    after = physical._paths(replace(draw, time=0.02), size, camera, *rest)
    wind, z = draw.uniform("wind", -2, 2), before[:, 6]
    assert abs(wind) > 0.1
    drifted = (after[:, 1] - before[:, 1] + size[1] / 2) % size[1] - size[1] / 2
    assert drifted == pytest.approx(camera.fx * wind * 0.02 / z, abs=1e-6)
    assert np.abs(drifted[z < np.median(z)]).min() > np.abs(drifted[z > np.median(z)]).max()


def test_a_condition_may_choose_another_owner() -> None:
    assert (pixels("frost@3[owner=frame]", "a", "clip") == pixels("frost@3", "a")).all()
    frozen = [pixels("rain@5[owner=camera]", name, "clip", t) for name, t in (("a", 0.0), ("b", 2.0))]
    assert (frozen[0] == frozen[1]).all()
    fixed = [pixels("gaussian_noise@3[owner=camera]", name, "clip") for name in "ab"]
    assert (fixed[0] == fixed[1]).all()  # fixed-pattern noise


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ("fog@3[owner=sky]", "owner must be frame, camera, scene, not 'sky'"),
        ("contrast@3[owner=frame]", "contrast draws nothing, so it takes no owner"),
    ],
)
def test_refuses_unknown_owners(condition: str, words: str) -> None:
    with pytest.raises(InvalidCondition, match=words):
        pixels(condition, "a")


def test_truth_moves_with_the_clip() -> None:
    """An elastic field that belongs to the camera moves truth alike in all frames of a clip."""
    from stormproof.core.sample import Instances, Truth

    truth, condition = (
        Truth(Instances([[10, 10, 30, 30]], [0])),
        Condition.parse("elastic_transform@5[labels=moved]"),
    )
    moved = [
        truth_under(truth, SIZE, condition, image_id=identity).instances.boxes.tolist()
        for identity in (Frame("a", "clip"), Frame("b", "clip", 1.0), "a")
    ]
    assert moved[0] == moved[1] != moved[2]
