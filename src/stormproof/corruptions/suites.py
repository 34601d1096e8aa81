"""How the papers group corruptions, and suites: the lists of conditions that the papers ran."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations, product
from typing import NamedTuple

from stormproof.core.condition import SEVERITIES, Condition, Suite, Value, grid
from stormproof.core.errors import UnknownName
from stormproof.corruptions.chain import in_order
from stormproof.corruptions.corruption import every_severity

Groups = Mapping[str, tuple[str, ...]]

# michaelis, section 2.1: the 15 corruptions of the benchmark
MICHAELIS: Groups = {
    "noise": ("gaussian_noise", "shot_noise", "impulse_noise"),
    "blur": ("defocus_blur", "glass_blur", "motion_blur", "zoom_blur"),
    "weather": ("snow", "frost", "fog", "brightness"),
    "digital": ("contrast", "elastic_transform", "pixelate", "jpeg_compression"),
}
BENCHMARK_15 = tuple(name for group in MICHAELIS.values() for name in group)

# kamann, section 3: brightness counts as digital, and three corruptions are the paper's own
KAMANN: Groups = {
    "blur": ("motion_blur", "defocus_blur", "glass_blur", "gaussian_blur", "psf_blur"),
    "noise": ("gaussian_noise", "impulse_noise", "shot_noise", "speckle_noise", "intensity_noise"),
    "digital": ("brightness", "contrast", "saturate", "jpeg_compression"),
    "weather": ("snow", "spatter", "fog", "frost"),
    "geometric": ("geometric_distortion",),
}
# psf_blur models the lens of Cityscapes' camera, so the paper's other datasets do not have it
ONE_DATASET_ONLY = frozenset({"psf_blur"})
KAMANN_19 = tuple(name for group in KAMANN.values() for name in group)
KAMANN_NOISE_SEVERITIES = (1, 2, 3)  # section 5.1: stronger noise leaves too little to compare

# theodoridis, section 2.1: the spaces in which a style is blended with the image
FEATURE, PIXEL = "feature", "pixel"

# liu, Table 2: the three parts of the image pipeline, with the camera's lens and sensor apart
LIU: Groups = {
    "optics": ("camera_fog", "lens_obstruction", "focus_motor_damage"),
    "sensor": ("ccd_sensor_damage", "cmos_sensor_damage"),
    "processor": (
        "insufficient_black_level",
        "excessive_black_level",
        "lens_shading_damage",
        "white_balance_damage",
        "bad_pixel_damage",
        "cfa_interpolation_damage",
        "gamma_damage",
        "colour_space_damage",
    ),
    "board": ("synchronization_exception", "memory_exception", "transfer_harness_exception"),
}
LIU_16 = tuple(name for group in LIU.values() for name in group)

# kar: what depth decides, and the camera behind it; their h265 is left out (see the suite's page)
KAR: Groups = {
    "scene": ("fog_3d", "near_focus", "far_focus", "xy_motion_blur", "z_motion_blur", "flash"),
    "camera": ("iso_noise", "low_light", "color_quant", "bit_error"),
}

# mintun: ten corruptions far from those of hendrycks, in the order of the authors' list
MINTUN: Groups = {
    "c-bar": (
        "caustic_refraction",
        "inverse_sparkles",
        "sparkles",
        "perlin_noise",
        "blue_noise_sample",
        "plasma_noise",
        "checkerboard_cutout",
        "cocentric_sine_waves",
        "single_frequency_greyscale",
        "brownish_noise",
    ),
}

HOLDOUT = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

# The faults of each stage, in the order in which an image passes through a camera (liu, Fig. 3).
STAGES: dict[str, tuple[str, ...]] = {
    "lens": ("camera_fog", "lens_obstruction", "focus_motor_damage", "focus_motor_jitter"),
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
ORDER = tuple(name for faults in STAGES.values() for name in faults)
OTHER_READINGS = tuple(name for name in ORDER if name not in LIU_16)
ONE_READING = ("ccd_sensor_damage", "synchronization_exception", "memory_exception")


def _reading(name: str, **values: Value | tuple[Value, ...]) -> tuple[Condition, ...]:
    """Five severities with some parameters replaced by one value, or by one per severity."""
    return tuple(
        Condition.of(name, s, {key: v[s - 1] if isinstance(v, tuple) else v for key, v in values.items()})
        for s in SEVERITIES
    )


def _variants() -> tuple[Condition, ...]:
    """What is not the default where the paper's text, scripts, numbers and physics disagree."""
    return (
        *_reading("camera_fog", scale="pixels"),
        *_reading("lens_obstruction", light=0.7),
        *_reading("focus_motor_damage", sigma=(0.40, 0.45, 0.50, 0.55, 0.60)),  # the paper's SSIM
        *_reading("focus_motor_damage", sigma=(1.4, 2.0, 2.6, 3.2, 3.8)),  # the authors' levels
        *_reading("insufficient_black_level", share=0.3, level=(51, 102, 153, 204, 255)),
        *_reading("insufficient_black_level", law="gain"),
        *_reading("excessive_black_level", share=0.3, level=(51, 102, 153, 204, 255)),
        *_reading("excessive_black_level", law="gain"),
        *_reading("lens_shading_damage", strength=(5, 10, 20, 30, 50)),  # the paper's SSIM
        *_reading("lens_shading_damage", profile="linear", strength=(0.4, 0.6, 0.8, 1.0, 1.2)),
        *_reading("white_balance_damage", law="grey_world"),  # the authors' script
        *_reading("white_balance_damage", law="gains", error=(0.08, 0.15, 0.22, 0.30, 0.40)),
        *_reading(
            "bad_pixel_damage", law="mosaic", share=(0.05, 0.10, 0.15, 0.20, 0.30)
        ),  # the authors' script
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


def _mutators() -> tuple[Condition, ...]:
    """Every parameter in the paper's prose and tables (Pezzementi et al. 2018, Sections III-A and IV)."""
    values: dict[str, tuple[str, tuple[Value, ...]]] = {
        "gaussian_blur": ("sigma", (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)),
        "brightness_shift": ("factor", (0.5, 0.75, 0.875, 1.143, 1.333, 2.0)),
        "alpha_blend": ("alpha", (0.1, 0.25, 0.5, 0.75)),
        "jpeg_compression": ("quality", (60, 40, 20, 10)),
        "salt_and_pepper": ("amount", (0.01, 0.02, 0.05, 0.10)),
        "channel_drop": ("channel", ("R", "G", "B", "Cb", "Cr")),
    }
    noise = ((5, 0.5, 0.5), (5, 0.5, 0.7), (5, 1.5, 0.5), (15, 0.5, 0.5), (5, 2.5, 0.5))
    return (
        *(Condition.of(name, params={key: v}) for name, (key, each) in values.items() for v in each),
        *(Condition.of("additive_noise", params={"zeta_w": w, "zeta_u": u, "psi": p}) for w, u, p in noise),
    )


def _contextual() -> tuple[Condition, ...]:
    return (
        *(Condition.of("haze", params={"beta": beta}) for beta in (0.004, 0.012, 0.04)),
        *(
            Condition.of("defocus", params={"kappa": kappa, "focus": focus})
            for kappa in (2.0, 2.8, 3.6)
            for focus in (10, 5, 2, 1)
        ),
    )


TENTHS = tuple(k / 10 for k in range(11))


def _object_centric() -> tuple[Condition, ...]:
    """Whole image, objects and background; in pixel space α = 0 is clean and α = 1 equals feature space."""
    return tuple(
        Condition.of("style", params={"alpha": alpha, "space": space, **part})
        for part in ({}, {"on": "objects"}, {"on": "background"})
        for space, alphas in ((FEATURE, TENTHS), (PIXEL, TENTHS[1:-1]))
        for alpha in alphas
    )


def _with_parts(pairs: Iterable[Condition]) -> tuple[Condition, ...]:
    """The parts of composed conditions, each once, then the conditions: an interaction needs both."""
    composed = tuple(pairs)
    return (*dict.fromkeys(part for condition in composed for part in condition.parts), *composed)


def _weather_at_night() -> tuple[Condition, ...]:
    """Weather is lit by day, and night darkens it with everything else. After night, rain and fog would take
    their light from the road before the headlights, and the whole sky would glow."""
    return _with_parts(map(Condition.parse, ("rain@3+night@3", "ray_fog@3+night@3", "snow@3+night@3")))


def _common_pairs() -> tuple[Condition, ...]:
    return _with_parts(
        in_order(Condition.composed((Condition.of(one, 3), Condition.of(other, 3))))
        for first, second in combinations(("weather", "blur", "noise", "digital"), 2)
        for one, other in product(MICHAELIS[first], MICHAELIS[second])
    )


class _Declared(NamedTuple):
    """A suite: every severity of some corruptions, unless a function makes its conditions."""

    doc: str
    cite: str
    corruptions: tuple[str, ...]
    conditions: Callable[[], tuple[Condition, ...]] | None = None

    def make(self, name: str) -> Suite:
        listed = (condition for each in self.corruptions for condition in every_severity(each))
        noise = KAMANN_NOISE_SEVERITIES if name == "kamann" else SEVERITIES
        conditions = tuple(listed) if self.conditions is None else self.conditions()
        return Suite(name, self.doc, conditions, self.cite, noise)


_DECLARED = {
    "imagenet-c": _Declared(
        "The 15 common corruptions that mPC averages over", "michaelis2019", BENCHMARK_15,
    ),
    "holdout": _Declared("The 4 corruptions kept for validation", "hendrycks2019", HOLDOUT),
    **{
        name: _Declared(f"The {name} group of imagenet-c", "hendrycks2019", names)
        for name, names in MICHAELIS.items()
    },
    "optics": _Declared(
        "Sensor noise, lens blur and lens distortion of a real camera", "kamann2020",
        ("intensity_noise", "psf_blur", "geometric_distortion"),
    ),
    "kamann": _Declared(
        "The 19 corruptions of semantic segmentation; means cover noise of severities 1 to 3", "kamann2020",
        KAMANN_19,
    ),
    "mutators": _Declared(
        "34 simple mutations that need no context", "pezzementi2018",
        ("gaussian_blur", "brightness_shift", "alpha_blend", "jpeg_compression", "salt_and_pepper",
         "channel_drop", "additive_noise"), _mutators,
    ),
    "camera": _Declared("16 faults of lens, sensor, image processor and board", "liu2024", LIU_16),
    "camera-variants": _Declared("Other readings of the camera faults", "liu2024",
                                 tuple(name for name in ORDER if name not in ONE_READING), _variants),
    "object-centric": _Declared(
        "60 stylized versions: image, objects, background; feature and pixel space; α 0 to 1",
        "theodoridis2022", ("style",), _object_centric,
    ),
    "foggy-cityscapes": _Declared(
        "Fog along the ray at β 0.005, 0.01 and 0.02, which needs depth", "sakaridis2018", ("ray_fog",),
    ),
    "imagenet-c-bar": _Declared(
        "10 patterns unlike the common corruptions: a second holdout", "mintun2021", MINTUN["c-bar"],
    ),
    "3dcc": _Declared(
        "10 of the 3D Common Corruptions, 6 of which need depth; not H.265, whose free encoder is GPL",
        "kar2022", (*KAR["scene"], *KAR["camera"]),
    ),
    "street-physics": _Declared(
        "Rain in mm/h, night and low sun in lux, which need depth", "marshall1948",
        ("rain", "night", "sun_glare"),
    ),
    "contextual": _Declared(
        "Haze and defocus, which need depth", "pezzementi2018", ("haze", "defocus"), _contextual,
    ),
    "weather-at-night": _Declared(
        "Night with rain, fog or snow, and each alone; needs depth", "marshall1948",
        ("rain", "ray_fog", "snow", "night"), _weather_at_night,
    ),
    "common-pairs": _Declared(
        "84 pairs of imagenet-c at severity 3, from two of its groups each, and its 15 alone",
        "michaelis2019", BENCHMARK_15, _common_pairs,
    ),
}  # fmt: skip


class _Suites(Mapping[str, Suite]):
    """Suites by name, each made when it is asked for: together they are a thousand conditions."""

    def __init__(self) -> None:
        self._made: dict[str, Suite] = {}

    def __getitem__(self, name: str) -> Suite:
        if name not in self._made:
            self._made[name] = _DECLARED[name].make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in _DECLARED

    def __iter__(self) -> Iterator[str]:
        return iter(_DECLARED)

    def __len__(self) -> int:
        return len(_DECLARED)

    def of_corruptions(self, names: Iterable[str]) -> dict[str, Suite]:
        """The suites that need no corruption beside these."""
        known = {*names}
        return {name: self[name] for name, one in _DECLARED.items() if known.issuperset(one.corruptions)}


SUITES = _Suites()


def find_suite(name: str) -> Suite:
    """The suite of that name."""
    try:
        return SUITES[name]
    except KeyError:
        raise UnknownName("suite", name, SUITES, "List them with 'stormproof list suites'.") from None
