"""Reading and writing image files."""

from __future__ import annotations

import sys
from io import BytesIO
from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageFile
import pytest

from stormproof.core import imagefile
from stormproof.core.errors import InvalidImage, InvalidOption, MissingExtra, OutputError
from stormproof.core.imagefile import AS_STORED, PixelRules, image_size, read_image, write_image
from stormproof.datasets import read_dataset

RGB = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)


@pytest.mark.parametrize("suffix", [".png", ".bmp"])
@pytest.mark.parametrize("image", [RGB, RGB[..., 0], RGB[..., :1]], ids=["rgb", "grey", "one channel"])
def test_lossless_formats_return_every_pixel(tmp_path: Path, suffix: str, image: np.ndarray) -> None:
    path = tmp_path / f"a{suffix}"
    write_image(path, image)
    np.testing.assert_array_equal(read_image(path), image.squeeze(-1) if image.shape[-1] == 1 else image)
    assert image_size(path) == (5, 7)
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_jpeg_is_written_with_quality_95(tmp_path: Path) -> None:
    smooth = np.tile(np.arange(64, dtype=np.uint8)[None, :, None] * 4, (64, 1, 3))
    write_image(tmp_path / "a.jpg", smooth)
    assert np.abs(read_image(tmp_path / "a.jpg").astype(int) - smooth).max() <= 4


@pytest.mark.parametrize("mode", ["P", "1", "CMYK"])
def test_other_8_bit_modes_are_converted(tmp_path: Path, mode: str) -> None:
    suffix = "tif" if mode == "CMYK" else "png"
    PIL.Image.fromarray(RGB).convert(mode).save(tmp_path / f"a.{suffix}")
    image = read_image(tmp_path / f"a.{suffix}")
    assert (image.dtype, image.shape) == (np.uint8, (5, 7) if mode == "1" else (5, 7, 3))


def test_orientation_tags_do_not_turn_stored_pixels(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6  # "turn by 90 degrees"
    PIL.Image.fromarray(RGB).save(tmp_path / "a.jpg", exif=exif)
    assert read_image(tmp_path / "a.jpg").shape == (5, 7, 3)
    assert image_size(tmp_path / "a.jpg") == (5, 7)


@pytest.mark.parametrize(
    ("array", "part"),
    [
        (np.zeros((4, 4, 4), np.uint8), "transparent"),
        (np.zeros((4, 4), np.uint16), "not 8-bit"),
        (np.zeros((4, 4), np.float32), "not 8-bit"),
    ],
)
def test_refuses_modes_without_an_obvious_conversion(tmp_path: Path, array: np.ndarray, part: str) -> None:
    path = tmp_path / "a.tif"
    PIL.Image.fromarray(array).save(path)
    with pytest.raises(InvalidImage, match=rf"a\.tif.*{part}"):
        read_image(path)


@pytest.mark.parametrize("keep", [0.98, 0.5, 0.1])
@pytest.mark.parametrize("suffix", ["png", "jpg"])
def test_truncated_files_are_named(tmp_path: Path, suffix: str, keep: float) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (80, 80, 3), np.uint8)
    path = tmp_path / f"a.{suffix}"
    write_image(path, noise)
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * keep)])
    with pytest.raises(InvalidImage, match=rf"a\.{suffix}"):
        read_image(path)


def test_refuses_missing_files_and_files_that_are_no_images(tmp_path: Path) -> None:
    with pytest.raises(InvalidImage, match="no such file"):
        read_image(tmp_path / "absent.png")
    (tmp_path / "a.png").write_text("hello")
    with pytest.raises(InvalidImage, match="not an image"):
        image_size(tmp_path / "a.png")
    with pytest.raises(InvalidImage, match="frame 3"):
        read_image(b"hello", "frame 3")


def test_a_failed_write_is_explained_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="unknown extension"):
        write_image(tmp_path / "a.gif", RGB)
    with pytest.raises(OutputError, match="folder exists"):
        write_image(tmp_path / "absent/a.png", RGB)
    with pytest.raises(InvalidImage):
        write_image(tmp_path / "a.png", RGB.astype(np.float64))
    (tmp_path / "taken.png").mkdir()
    with pytest.raises(OutputError):
        write_image(tmp_path / "taken.png", RGB)
    assert [entry.name for entry in tmp_path.iterdir()] == ["taken.png"]


class _OnGpu:
    """Stands for torchvision.io on a machine with a GPU: the file's own pixels, one level up."""

    @staticmethod
    def decode_jpeg(data: object, device: str) -> object:
        import torch

        assert device == "cuda"
        with PIL.Image.open(BytesIO(bytes(data.numpy()))) as image:
            pixels = np.atleast_3d(np.array(image))
        return torch.from_numpy(pixels + np.uint8(1)).permute(2, 0, 1)


def test_nvjpeg_is_opt_in_and_part_of_what_a_dataset_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch = pytest.importorskip("torch", reason="needs torch")
    monkeypatch.setattr(imagefile, "_torch_libraries", lambda: (torch, _OnGpu))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    grey = np.full((16, 24), 90, np.uint8)
    for name, image in (("a.jpg", np.stack([grey] * 3, 2)), ("b.jpg", grey), ("c.png", grey)):
        write_image(tmp_path / name, image)
    plain, other = read_dataset(f"images:{tmp_path}"), read_dataset(f"images:{tmp_path},decode=nvjpeg")
    assert [other[i].image.shape for i in range(3)] == [plain[i].image.shape for i in range(3)]
    assert [int(other[i].image.mean() - plain[i].image.mean()) for i in range(3)] == [1, 1, 0]
    assert plain.fingerprint != other.fingerprint
    with pytest.raises(InvalidOption, match="nvJPEG cannot rotate images"):
        read_dataset(f"images:{tmp_path},decode=nvjpeg,exif=apply")


def test_a_missing_nvjpeg_is_reported_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_image(tmp_path / "a.jpg", RGB)
    monkeypatch.setitem(sys.modules, "torchvision", None)
    with pytest.raises(MissingExtra, match="torchvision"):
        read_dataset(f"images:{tmp_path},decode=nvjpeg")
    torch = pytest.importorskip("torch", reason="needs torch")
    monkeypatch.setattr(imagefile, "_torch_libraries", lambda: (torch, _OnGpu))
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InvalidOption, match="finds no NVIDIA GPU; leave decode=nvjpeg out"):
        read_dataset(f"images:{tmp_path},decode=nvjpeg")


def test_a_newer_pixel_rule_enters_the_identity_only_if_set() -> None:
    assert AS_STORED.identity() == {"exif": "ignore", "alpha": "refuse", "bits": 0}
    assert PixelRules(decode="nvjpeg").identity()["decode"] == "nvjpeg"


def test_model_code_cannot_make_truncated_files_readable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noise = np.random.default_rng(1).integers(0, 256, (64, 64, 3), np.uint8)
    for suffix in (".jpg", ".png"):
        write_image(tmp_path / f"a{suffix}", noise)
        whole = (tmp_path / f"a{suffix}").read_bytes()
        (tmp_path / f"a{suffix}").write_bytes(whole[: len(whole) // 2])
    monkeypatch.setattr(PIL.ImageFile, "LOAD_TRUNCATED_IMAGES", True)
    for suffix in (".jpg", ".png"):
        with pytest.raises(InvalidImage, match="cannot be decoded"):
            read_image(tmp_path / f"a{suffix}")
    assert PIL.ImageFile.LOAD_TRUNCATED_IMAGES  # as the model left it


def test_model_code_cannot_change_the_largest_image_allowed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_image(tmp_path / "a.png", RGB)
    monkeypatch.setattr(PIL.Image, "MAX_IMAGE_PIXELS", 10)
    assert read_image(tmp_path / "a.png").shape == RGB.shape
    assert PIL.Image.MAX_IMAGE_PIXELS == 10
