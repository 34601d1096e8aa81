"""How the papers group corruptions, as data."""

from __future__ import annotations

from collections.abc import Mapping

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
