"""The papers' groups, word for word from the papers."""

from __future__ import annotations

import pytest

from stormproof.corruptions.suites import KAMANN, LIU, MICHAELIS, ONE_DATASET_ONLY, SUITES


def words(text: str) -> list[str]:
    return sorted(f"{word}" for word in text.split())


def test_michaelis_has_the_four_groups_of_hendrycks() -> None:
    """Section 2.1 and Fig. 3."""
    assert {name: words(" ".join(members)) for name, members in MICHAELIS.items()} == {
        "noise": words("gaussian_noise shot_noise impulse_noise"),
        "blur": words("defocus_blur glass_blur motion_blur zoom_blur"),
        "weather": words("snow frost fog brightness"),
        "digital": words("contrast elastic_transform pixelate jpeg_compression"),
    }


def test_kamann_counts_brightness_as_digital() -> None:
    """Sections 3.1 and 3.2: spatter is weather, saturate digital; geometric distortion stands alone."""
    assert {name: words(" ".join(members)) for name, members in KAMANN.items()} == {
        "blur": words("motion_blur defocus_blur glass_blur gaussian_blur psf_blur"),
        "noise": words("gaussian_noise impulse_noise shot_noise speckle_noise intensity_noise"),
        "digital": words("brightness contrast saturate jpeg_compression"),
        "weather": words("snow spatter fog frost"),
        "geometric": ["geometric_distortion"],
    }
    assert {"psf_blur"} == ONE_DATASET_ONLY  # of the columns of Tables 1 and 3, the one that VOC lacks


def test_liu_has_five_faults_of_the_camera_eight_of_the_processor_three_of_the_board() -> None:
    """Table 2."""
    assert {name: len(members) for name, members in LIU.items()} == {
        "optics": 3, "sensor": 2, "processor": 8, "board": 3,
    }  # fmt: skip
    assert LIU["sensor"] == ("ccd_sensor_damage", "cmos_sensor_damage")
    assert words(" ".join(LIU["board"])) == words(
        "memory_exception synchronization_exception transfer_harness_exception"
    )


@pytest.mark.parametrize("name", SUITES)
def test_a_suite_is_offered_for_its_own_corruptions_and_for_no_fewer(name: str) -> None:
    own = {*SUITES[name].corruptions}
    assert name in SUITES.of_corruptions(own | {"sparkles"})
    assert all(name not in SUITES.of_corruptions(own - {each}) for each in own)
