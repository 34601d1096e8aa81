"""The camera as a whole: its stages in order, their faults, and several faults at once."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain

from stormproof.core.condition import CLEAN, SEVERITIES, Condition, Value, grid
from stormproof.core.errors import UnknownName
from stormproof.core.sample import Image

# The faults of each stage, in the order in which an image passes through a camera (liu, Fig. 3).
STAGES: dict[str, tuple[str, ...]] = {
    "lens": ("camera_fog", "lens_obstruction", "focus_motor_damage"),
    "sensor": ("ccd_sensor_damage", "cmos_sensor_damage"),
    "black level": ("insufficient_black_level", "excessive_black_level"),
    "lens shading": ("lens_shading_damage",),
    "white balance": ("white_balance_damage",),
    "bad pixels": ("bad_pixel_damage",),
    "colour interpolation": ("cfa_interpolation_damage",),
    "gamma": ("gamma_damage",),
    "colour space": ("colour_space_damage", "colour_space_wraparound"),
    "clock": ("synchronization_exception", "synchronization_tearing"),
    "memory": ("memory_exception", "memory_block_loss"),
    "cable": ("transfer_harness_exception", "transfer_stripe_loss"),
}
ORDER: tuple[str, ...] = tuple(chain.from_iterable(STAGES.values()))

OTHER_READINGS = (
    "colour_space_wraparound",
    "synchronization_tearing",
    "memory_block_loss",
    "transfer_stripe_loss",
)
CAMERA: tuple[Condition, ...] = grid(name for name in ORDER if name not in OTHER_READINGS)


def _reading(name: str, **values: Value | tuple[Value, ...]) -> tuple[Condition, ...]:
    """Five severities with some parameters replaced by one value, or by one per severity."""
    return tuple(
        Condition.of(name, s, {key: v[s - 1] if isinstance(v, tuple) else v for key, v in values.items()})
        for s in SEVERITIES
    )


# Where the paper's text, scripts, numbers and physics disagree: the readings that are not the default.
VARIANTS: tuple[Condition, ...] = (
    *_reading("camera_fog", scale="pixels"),
    *_reading("lens_obstruction", light=0.7),
    *_reading("focus_motor_damage", sigma=(0.40, 0.45, 0.50, 0.55, 0.60)),  # the paper's SSIM
    *_reading("focus_motor_damage", sigma=(1.4, 2.0, 2.6, 3.2, 3.8)),  # the paper's VIF
    *_reading("insufficient_black_level", share=0.3, level=(51, 102, 153, 204, 255)),
    *_reading("insufficient_black_level", law="gain"),
    *_reading("excessive_black_level", share=0.3, level=(51, 102, 153, 204, 255)),
    *_reading("excessive_black_level", law="gain"),
    *_reading("lens_shading_damage", strength=(2, 3, 5, 7, 10)),  # the paper's SSIM
    *_reading("lens_shading_damage", profile="linear", strength=(0.4, 0.6, 0.8, 1.0, 1.2)),
    *_reading("white_balance_damage", law="gains", error=(0.08, 0.15, 0.22, 0.30, 0.40)),
    *_reading("bad_pixel_damage", fault="dead_and_hot", share=(0.001, 0.003, 0.01, 0.03, 0.1)),
    *_reading("cfa_interpolation_damage", law="bilinear"),
    *_reading("gamma_damage", gamma=(0.8, 0.7, 0.6, 0.5, 0.4)),
    *_reading("cmos_sensor_damage", spots=(1, 2, 3, 5, 7)),  # the paper's SSIM
    *_reading(  # the paper's SSIM
        "colour_space_damage", noise=(8.0, 16, 26, 38, 52), blur=(0.5, 0.75, 1.05, 1.35, 1.8)
    ),
    *_reading("transfer_harness_exception", share=(0.03, 0.06, 0.09, 0.11, 0.14)),  # the paper's SSIM
    *_reading("transfer_harness_exception", wire="parallel", share=(0.06, 0.12, 0.17, 0.21, 0.27)),
    *grid(OTHER_READINGS),
)


def develop(image: Image, faults: Iterable[Condition | str], *, seed: int = 0, image_id: str = "") -> Image:
    """The image of a camera with several faults; without faults, the photograph itself.

    Faults act in the order of the camera's stages, whatever their order in the list: drops on the lens are
    mosaicked, a wrong gamma brightens the noise of bad pixels, a black band from the clock stays black. Each
    draws as it would alone, so `develop(image, ["gamma_damage@3"])` equals `gamma_damage@3`. Values are
    rounded to 8 bits between stages.

    >>> import numpy as np
    >>> scene = np.full((4, 4, 3), 128, np.uint8)
    >>> bool((develop(scene, []) == scene).all())
    True
    """
    from stormproof.corruptions import corrupt_image  # it imports this module

    conditions = [Condition.parse(f) if isinstance(f, str) else f for f in faults]
    image = corrupt_image(image, CLEAN)
    for condition in sorted(conditions, key=_place):
        image = corrupt_image(image, condition, seed=seed, image_id=image_id)
    return image


def _place(condition: Condition) -> int:
    """The position of a fault in the camera's stages."""
    name = condition.corruption
    if name is None:
        return -1
    if name not in ORDER:
        hint = "'stormproof list suites' shows the suite camera."
        raise UnknownName("camera fault", name, ORDER, hint)
    return ORDER.index(name)
