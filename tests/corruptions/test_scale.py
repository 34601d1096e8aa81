"""scale=auto: lengths in pixels follow the image's size; at 640×480, and without it, nothing changes."""

from __future__ import annotations

import numpy as np
import pytest

from stormproof import corrupt_image
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition
from stormproof.core.sample import Instances, Sample, Truth
from stormproof.corruptions import apply, find


def photograph(height: int, width: int) -> np.ndarray:
    return np.random.default_rng(3).integers(0, 256, (height, width, 3), np.uint8)


@pytest.mark.parametrize(
    ("condition", "size", "same"),
    [
        ("gaussian_blur@3[scale=auto]", (240, 320), "gaussian_blur[sigma=1.5]"),
        ("gaussian_blur@3[scale=auto]", (480, 640), "gaussian_blur@3"),
        ("gaussian_blur@1[scale=auto]", (960, 1280), "gaussian_blur[sigma=2]"),
        ("defocus_blur@3[scale=auto]", (240, 320), "defocus_blur[radius=3,softness=0.25]"),
        ("contrast@3[scale=auto]", (120, 160), "contrast@3"),
        ("fog@3[scale=auto]", (120, 160), "fog@3"),  # its clouds follow the size in any case
    ],
)
def test_lengths_scale_with_the_image(condition: str, size: tuple[int, int], same: str) -> None:
    image = photograph(*size)
    assert (corrupt_image(image, condition) == corrupt_image(image, same)).all()


def test_streaks_scale_with_the_image_and_draws_do_not_change() -> None:
    values = find("motion_blur").parameters(Condition.parse("motion_blur@5[scale=auto]"), (240, 320))
    assert values == {"radius": 10, "sigma": 7.5}
    image = photograph(240, 320)
    halved = find("motion_blur").recipe
    from stormproof.core.randomness import Draw

    expected = halved(image, Draw.keyed(0, "x", "motion_blur", 5), radius=10, sigma=7.5)
    assert (corrupt_image(image, "motion_blur@5[scale=auto]", image_id="x") == expected).all()


def test_lengths_stay_within_their_bounds() -> None:
    snow = find("snow").parameters(Condition.parse("snow@2[scale=auto]"), (24, 32))
    assert snow["flake"] == 1
    glass = find("glass_blur").parameters(Condition.parse("glass_blur@1[scale=auto]"), (24, 32))
    assert glass["reach"] == 1
    assert glass["iterations"] == 2


def test_other_scales_are_refused_and_a_corruptions_own_scale_is_kept() -> None:
    with pytest.raises(InvalidCondition, match="scale must be auto, not 'big'"):
        corrupt_image(photograph(8, 8), "fog@3[scale=big]")
    with pytest.raises(InvalidCondition, match="scale must be one of"):
        corrupt_image(photograph(8, 8), "camera_fog@3[scale=auto]")


def test_truth_moves_with_the_scaled_pixels() -> None:
    truth = Truth(Instances([[10, 10, 40, 40]], [0]))
    sample = Sample("a", photograph(60, 80), truth)
    moved = apply(sample, "elastic_transform@5[scale=auto,labels=moved]")
    assert moved.image.shape == (60, 80, 3)


def test_a_batch_on_a_device_is_scaled_alike() -> None:
    torch = pytest.importorskip("torch")
    from stormproof.corruptions.on_device import corrupt_batch

    image = photograph(60, 90)
    batch = torch.from_numpy(image.copy()).permute(2, 0, 1)[None]
    made = corrupt_batch(batch, "motion_blur@3[scale=auto]", ids=["x"])[0].permute(1, 2, 0).numpy()
    assert (made == corrupt_image(image, "motion_blur@3[scale=auto]", image_id="x")).all()


def test_a_scaled_condition_differs_from_the_plain_one() -> None:
    from stormproof.results.sets import same_condition

    assert same_condition("motion_blur@3", ["motion_blur@3[scale=auto]"]) is None
    assert same_condition("haze@2", ["haze@2[on=person]"]) is None
    assert same_condition("haze@2", ["clean", "haze[beta=0.012]"]) == "haze[beta=0.012]"
