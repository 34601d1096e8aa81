"""Suites: the lists of conditions that the papers ran."""

from __future__ import annotations

from stormproof.core.condition import Condition, Suite, grid
from stormproof.core.errors import UnknownName
from stormproof.corruptions.groups import (
    BENCHMARK_15,
    FEATURE,
    KAMANN_19,
    KAMANN_NOISE_SEVERITIES,
    KAR,
    MICHAELIS,
    MINTUN,
    PIXEL,
)
from stormproof.corruptions.pipeline import CAMERA, VARIANTS
from stormproof.corruptions.registry import every_severity

HOLDOUT = ("speckle_noise", "gaussian_blur", "spatter", "saturate")

# Every parameter in the paper's prose and tables (Pezzementi et al. 2018, Sections III-A and IV).
MUTATORS: tuple[Condition, ...] = (
    *(Condition.of("gaussian_blur", params={"sigma": s}) for s in (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)),
    *(Condition.of("brightness_shift", params={"factor": b}) for b in (0.5, 0.75, 0.875, 1.143, 1.333, 2.0)),
    *(Condition.of("alpha_blend", params={"alpha": a}) for a in (0.1, 0.25, 0.5, 0.75)),
    *(Condition.of("jpeg_compression", params={"quality": q}) for q in (60, 40, 20, 10)),
    *(Condition.of("salt_and_pepper", params={"amount": s}) for s in (0.01, 0.02, 0.05, 0.10)),
    *(Condition.of("channel_drop", params={"channel": c}) for c in ("R", "G", "B", "Cb", "Cr")),
    *(
        Condition.of("additive_noise", params={"zeta_w": w, "zeta_u": u, "psi": p})
        for w, u, p in ((5, 0.5, 0.5), (5, 0.5, 0.7), (5, 1.5, 0.5), (15, 0.5, 0.5), (5, 2.5, 0.5))
    ),
)
CONTEXTUAL: tuple[Condition, ...] = (
    *(Condition.of("haze", params={"beta": beta}) for beta in (0.004, 0.012, 0.04)),
    *(
        Condition.of("defocus", params={"kappa": kappa, "focus": focus})
        for kappa in (2.0, 2.8, 3.6)
        for focus in (10, 5, 2, 1)
    ),
)

TENTHS = tuple(k / 10 for k in range(11))
# Whole image, objects and background; in pixel space α = 0 is clean and α = 1 equals feature space.
OBJECT_CENTRIC: tuple[Condition, ...] = tuple(
    Condition.of("style", params={"alpha": alpha, "space": space, **part})
    for part in ({}, {"on": "objects"}, {"on": "background"})
    for space, alphas in ((FEATURE, TENTHS), (PIXEL, TENTHS[1:-1]))
    for alpha in alphas
)


def _suite(name: str, doc: str, corruptions: tuple[str, ...], cite: str = "hendrycks2019") -> Suite:
    return Suite(name, doc, grid(corruptions), cite)


SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        _suite(
            "imagenet-c", "The 15 common corruptions that mPC averages over", BENCHMARK_15, "michaelis2019"
        ),
        _suite("holdout", "The 4 corruptions kept for validation", HOLDOUT),
        *(_suite(name, f"The {name} group of imagenet-c", names) for name, names in MICHAELIS.items()),
        Suite(
            "optics",
            "Sensor noise, lens blur and lens distortion of a real camera",
            (*grid(("intensity_noise",)), *grid(("psf_blur",), (1, 2, 3)), *grid(("geometric_distortion",))),
            "kamann2020",
        ),
        Suite(
            "kamann",
            "The 19 corruptions of semantic segmentation; means cover noise of severities 1 to 3",
            tuple(condition for name in KAMANN_19 for condition in every_severity(name)),
            "kamann2020",
            noise_severities=KAMANN_NOISE_SEVERITIES,
        ),
        Suite("mutators", "34 simple mutations that need no context", MUTATORS, "pezzementi2018"),
        Suite("camera", "16 faults of lens, sensor, image processor and board", CAMERA, "liu2024"),
        Suite("camera-variants", "Other readings of the camera faults", VARIANTS, "liu2024"),
        Suite(
            "object-centric",
            "60 stylized versions: image, objects, background; feature and pixel space; α 0 to 1",
            OBJECT_CENTRIC,
            "theodoridis2022",
        ),
        Suite(
            "foggy-cityscapes",
            "Fog along the ray at β 0.005, 0.01 and 0.02, which needs depth",
            grid(("ray_fog",), (1, 2, 3)),
            "sakaridis2018",
        ),
        _suite(
            "imagenet-c-bar",
            "10 patterns unlike the common corruptions: a second holdout",
            MINTUN["c-bar"],
            "mintun2021",
        ),
        _suite(
            "3dcc",
            "10 of the 3D Common Corruptions, 6 of which need depth; not H.265, whose free encoder is GPL",
            tuple(name for names in KAR.values() for name in names),
            "kar2022",
        ),
        _suite(
            "street-physics",
            "Rain in mm/h, night and low sun in lux, which need depth",
            ("rain", "night", "sun_glare"),
            "marshall1948",
        ),
        Suite("contextual", "Haze and defocus, which need depth", CONTEXTUAL, "pezzementi2018"),
    )
}


def find_suite(name: str) -> Suite:
    """The suite of that name."""
    try:
        return SUITES[name]
    except KeyError:
        raise UnknownName("suite", name, SUITES, "List them with 'stormproof list suites'.") from None
