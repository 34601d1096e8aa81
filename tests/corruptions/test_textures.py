"""Frost images: drawn to the stated statistics, the same bytes everywhere, and read back unchanged."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from importlib.util import find_spec
from itertools import combinations
from pathlib import Path

import cv2
import numpy as np
import pytest

from frost import LOOKS, drawn
from stormproof import imaging
from stormproof.core.errors import InvalidImage, InvalidOption
from stormproof.core.imagefile import write_image
from stormproof.core.sample import Image
from stormproof.corruptions import textures

# A change of these is a change of every frost result: raise the corruption's version with them.
DIGESTS = (
    "0dc23a78a09359f5",
    "f6c2d6b2b6d54fff",
    "d529780e4f3ad171",
    "40d139a6d91466bf",
    "338be2330afcd946",
)

# Radial power-spectrum slopes, 3 to 100 cycles in 256 pixels, of the images the published scores used.
SLOPES = (-1.36, -1.76, -1.76, -1.34, -1.85)


def spectrum_slope(image: Image) -> float:
    """Slope of log power over log frequency, averaged over windows of 256 pixels."""
    side = 256
    grey = image.mean(axis=2)
    window = np.hanning(side)[:, None] * np.hanning(side)
    power = np.zeros((side, side))
    for y in range(0, grey.shape[0] - side + 1, 48):
        for x in range(0, grey.shape[1] - side + 1, 48):
            tile = grey[y : y + side, x : x + side]
            power += np.abs(np.fft.fft2((tile - tile.mean()) * window)) ** 2
    frequency = np.fft.fftfreq(side) * side
    radius = np.rint(np.hypot(frequency[:, None], frequency)).astype(int)
    rings = np.bincount(radius.ravel(), power.ravel()) / np.bincount(radius.ravel())
    k = np.arange(3, 100)
    return float(np.polyfit(np.log(k), np.log(rings[k]), 1)[0])


@pytest.mark.parametrize("index", range(5))
def test_built_in_images_have_the_stated_statistics(index: int) -> None:
    image, look = textures.load("built-in")[index], LOOKS[index]
    assert image.dtype == np.uint8
    assert image.shape == (*look.size, 3)
    assert np.abs(image.mean(axis=(0, 1)) - look.mean).max() < 1
    assert np.abs(image.std(axis=(0, 1)) - look.sd).max() < 1.5
    assert spectrum_slope(image) == pytest.approx(SLOPES[index], abs=0.5)


@pytest.mark.parametrize("index", range(5))
def test_stated_statistics_equal_those_of_the_photographs(index: int) -> None:
    photograph, look = textures.from_imagecorruptions()[index], LOOKS[index]
    assert photograph.shape == (*look.size, 3)
    assert np.abs(photograph.mean(axis=(0, 1)) - look.mean).max() < 0.06
    assert np.abs(photograph.std(axis=(0, 1)) - look.sd).max() < 0.06


def highest_octave(image: Image) -> float:
    """The mean power in the highest octave, 1/4 to 1/2 cycle a pixel, of an image of variance 1, in dB."""
    grey = image.mean(axis=2)
    window = np.hanning(grey.shape[0])[:, None] * np.hanning(grey.shape[1])
    power = np.abs(np.fft.fft2((grey - grey.mean()) / grey.std() * window)) ** 2 / (window**2).sum()
    radius = np.hypot(np.fft.fftfreq(grey.shape[0])[:, None], np.fft.fftfreq(grey.shape[1]))
    return float(10 * np.log10(power[(radius >= 1 / 4) & (radius < 1 / 2)].mean()))


@pytest.mark.parametrize("index", range(5))
def test_built_in_images_are_as_fine_as_the_photographs(index: int) -> None:
    own, photograph = textures.load("built-in")[index], textures.from_imagecorruptions()[index]
    assert highest_octave(own) == pytest.approx(highest_octave(photograph), abs=0.5)


def test_built_in_images_have_the_same_bytes_everywhere() -> None:
    assert tuple(hashlib.sha256(p.tobytes()).hexdigest()[:16] for p in textures.load("built-in")) == DIGESTS


@pytest.mark.parametrize("index", range(5))
def test_drawing_again_gives_the_stored_image(index: int) -> None:
    assert np.array_equal(drawn(index), textures.load("built-in")[index])


def test_built_in_images_differ() -> None:
    corners = [image[:300, :500, 1].astype(float).ravel() for image in textures.load("built-in")]
    assert all(abs(np.corrcoef(a, b)[0, 1]) < 0.2 for a, b in combinations(corners, 2))


def test_no_part_of_a_built_in_image_copies_a_photograph() -> None:
    for own, photograph in zip(textures.load("built-in"), textures.from_imagecorruptions(), strict=True):
        assert abs(np.corrcoef(own[..., 1].ravel(), photograph[..., 1].ravel())[0, 1]) < 0.3


def test_crops_are_as_bright_and_as_busy_as_those_of_the_photographs() -> None:
    """What `frost` uses is a crop of a random image: mean and deviation averaged over draws."""

    def crops(images: tuple[Image, ...]) -> np.ndarray:
        places = [p[y : y + 224, x : x + 224] for p in images for y in (0, 45, 90) for x in (0, 150, 300)]
        return np.mean([(c.mean(), c.std(axis=(0, 1)).mean()) for c in places], axis=0)

    assert np.abs(crops(textures.load("built-in")) - crops(textures.from_imagecorruptions())).max() < 3


def test_photographs_are_read_as_opencv_reads_them() -> None:
    spec = find_spec("imagecorruptions")
    assert spec is not None
    assert spec.origin is not None
    for name, image in zip(textures.PHOTOGRAPHS, textures.from_imagecorruptions(), strict=True):
        assert np.array_equal(image, cv2.imread(str(Path(spec.origin).parent / "frost" / name))[..., ::-1])


def test_folder_is_read_in_order_of_names_and_grey_becomes_rgb(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    colour, grey = rng.integers(0, 256, (5, 7, 3), np.uint8), rng.integers(0, 256, (4, 6), np.uint8)
    write_image(tmp_path / "b.png", colour)
    write_image(tmp_path / "a.PNG", grey)
    (tmp_path / "notes.txt").write_text("not an image")
    first, second = textures.load(str(tmp_path))
    assert np.array_equal(first, np.stack([grey] * 3, axis=2))
    assert np.array_equal(second, colour)
    assert textures.load(str(tmp_path))[0] is first


def test_a_changed_folder_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for place, value in (("one", 10), ("two", 20)):
        (tmp_path / place).mkdir()
        write_image(tmp_path / place / "a.png", np.full((4, 4, 3), value, np.uint8))
    monkeypatch.chdir(tmp_path / "one")
    assert textures.load(".")[0].max() == 10
    monkeypatch.chdir(tmp_path / "two")
    assert textures.load(".")[0].max() == 20
    write_image(tmp_path / "two" / "a.png", np.full((5, 5, 3), 30, np.uint8))
    assert textures.load(".")[0].max() == 30


@pytest.mark.parametrize("size", [(66, 100), (120, 90), (61, 81)])
def test_an_enlarged_part_is_a_part_of_the_enlarged_image(size: tuple[int, int]) -> None:
    """OpenCV's bicubic, whose last bit depends on the processor."""
    image = np.random.default_rng(0).integers(0, 256, (60, 80, 3), np.uint8)
    whole = cv2.resize(image, size[::-1], interpolation=cv2.INTER_CUBIC)
    ours = imaging.enlarged_part([image], [size], 0, (0, 0), size)
    assert np.abs(ours.astype(int) - whole).max() <= 1
    assert (ours == whole).mean() > 0.9
    part = imaging.enlarged_part([image], [size], 0, (20, 11), (30, 50))
    assert np.array_equal(part, ours[20:50, 11:61])


def test_images_cannot_be_written_to(tmp_path: Path) -> None:
    write_image(tmp_path / "a.png", np.zeros((2, 2, 3), np.uint8))
    for source in ("built-in", "imagecorruptions", str(tmp_path)):
        assert not any(image.flags.writeable for image in textures.load(source))


def test_missing_folder_says_what_is_possible(tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"no folder '.*nowhere'; give 'built-in', 'imagecorruptions'"):
        textures.load(str(tmp_path / "nowhere"))


def test_folder_without_images_is_refused(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("not an image")
    with pytest.raises(InvalidOption, match=r"contains no images .*\.png"):
        textures.load(str(tmp_path))


def test_broken_image_is_named(tmp_path: Path) -> None:
    (tmp_path / "ice.png").write_bytes(b"no png")
    with pytest.raises(InvalidImage, match=r"ice\.png"):
        textures.load(str(tmp_path))


def test_missing_package_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(textures, "find_spec", lambda name: None)
    with pytest.raises(InvalidOption, match="pip install imagecorruptions"):
        textures.from_imagecorruptions.__wrapped__()


def test_loading_textures_does_not_import_imagecorruptions() -> None:
    script = (
        "import sys; from stormproof.corruptions import textures; textures.load('imagecorruptions');"
        "sys.exit('imagecorruptions' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
