"""Input made to do harm: refused by name, in bounded time and memory. What fuzzing found is kept here."""

from __future__ import annotations

import json
import re
import socket
import threading
from collections.abc import Callable, Iterator
from io import StringIO
from itertools import product
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

from stormproof.cli.console import SafeConsole, printable
from stormproof.core.condition import Condition
from stormproof.core.errors import (
    DatasetError,
    InvalidCondition,
    InvalidImage,
    InvalidOption,
    InvalidPrediction,
    InvalidTruth,
    ModelError,
    StormproofError,
)
from stormproof.core.files import locate, parse_json, read_yaml
from stormproof.core.imagefile import PixelRules, image_size, read_image
from stormproof.core.masks import polygon_mask, segmentation_mask
from stormproof.core.progress import progress_on
from stormproof.core.sample import RLE, Prediction
from stormproof.datasets import read_dataset
from stormproof.datasets.dataset import fingerprint_of
from stormproof.datasets.depthmaps import read_calibration
from stormproof.models import load_model
from stormproof.models.predictions import read_predictions

BOMB = "a: &a [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{chr(98 + i)}: &{chr(98 + i)} [{','.join([f'*{chr(97 + i)}'] * 9)}]\n" for i in range(9)
)


@pytest.mark.parametrize("ring", [[1e9, 0, 0, 1e9, 1e9, 1e9], [0, 0, 4e8, 0, 0, 4e8]])
def test_polygons_far_outside_the_image_do_not_reach_the_library(ring: list[float]) -> None:
    with pytest.raises(InvalidTruth, match="beyond"):
        polygon_mask([ring], 10, 10)


def test_refuses_a_polygon_whose_outline_is_too_long() -> None:
    with pytest.raises(InvalidTruth, match="long"):
        polygon_mask([[0, 0, 99_000, 99_000] * 50], 10, 10)


@pytest.mark.parametrize(
    "text", [BOMB, "a: &a [*a]", "{" * 3000, f"a: {'9' * 6000}", "d: 2024-99-99", "x" * (1 << 21)]
)
def test_refuses_yaml_that_expands_without_end(tmp_path: Path, text: str) -> None:
    (tmp_path / "data.yaml").write_text(text)
    with pytest.raises(DatasetError, match=r"data\.yaml"):
        read_yaml(tmp_path / "data.yaml")


def test_aliases_that_stand_for_little_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("a: &a [1, 2]\nb: *a\n")
    assert read_yaml(tmp_path / "a.yaml") == {"a": [1, 2], "b": [1, 2]}


def test_refuses_numbers_of_thousands_of_digits() -> None:
    with pytest.raises(DatasetError, match="not JSON"):
        parse_json("9" * 6000, "a.json")
    for text in (f"fog@{'9' * 5000}", f"fog[a={'9' * 5000}]", f"fog[a={'9' * 29}]"):
        with pytest.raises(InvalidCondition):
            Condition.parse(text)


def test_refuses_a_parameter_given_twice_with_two_types() -> None:
    with pytest.raises(InvalidCondition, match="twice"):
        Condition.parse("fog[a=1,a=x]")


@pytest.mark.parametrize("path", ["~nobody-of-this-name/x", "a\0b", "x" * 5000])
def test_refuses_texts_that_are_no_paths(path: str) -> None:
    with pytest.raises(DatasetError, match="not a path"):
        locate(path)


def test_refuses_overflowing_run_lengths_and_fractional_labels() -> None:
    with pytest.raises(InvalidTruth):
        segmentation_mask({"size": [1, 5], "counts": [2**32 + 5]}, 1, 5)
    with pytest.raises(InvalidTruth):
        RLE((1, 5), np.array([2**32 + 5]))
    with pytest.raises(InvalidPrediction, match="whole numbers"):
        Prediction([[0, 0, 1, 1]], [0.5], [1.5])
    with pytest.raises(InvalidPrediction):
        read_predictions([{"boxes": [[0, 0, 1, 1]], "scores": [0.5], "labels": [0.5]}], [(4, 4)], "m")
    with pytest.raises(InvalidPrediction, match="NaN"):
        read_predictions([{"masks": [np.full((4, 4), np.nan)], "scores": [1], "labels": [0]}], [(4, 4)], "m")


@pytest.mark.parametrize("form", ["AVIF", "BLP", "EPS", "ICO"])
def test_refuses_image_formats_that_are_not_supported(tmp_path: Path, form: str) -> None:
    image = PIL.Image.new("RGB" if form != "BLP" else "P", (16, 16))
    try:
        image.save(tmp_path / "a.png", form)
    except (KeyError, OSError):
        pytest.skip(f"this Pillow does not write {form}")
    with pytest.raises(InvalidImage, match="known format"):
        read_image(tmp_path / "a.png")


def test_a_folder_is_not_an_archive(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="is a folder; give a file"):
        read_dataset(f"tar:{tmp_path}")


FOUND_BY_FUZZING = {
    "labels that are no list": [{"name": "a.jpg", "labels": 5}],
    "a label that is no object": [{"name": "a.jpg", "labels": [0.5]}],
    "attributes that are no object": [{"name": "a.jpg", "labels": [{"box2d": {}, "attributes": 0.5}]}],
    "a coordinate of 400 digits": [
        {
            "name": "a.jpg",
            "labels": [{"category": "car", "box2d": {"x1": 10**400, "y1": 0, "x2": 1, "y2": 1}}],
        }
    ],
}


@pytest.mark.parametrize("frames", FOUND_BY_FUZZING.values(), ids=FOUND_BY_FUZZING)
def test_refuses_malformed_bdd_frames(tmp_path: Path, frames: object) -> None:
    (tmp_path / "det.json").write_text(json.dumps(frames))
    with pytest.raises(DatasetError, match=r"det\.json"):
        read_dataset(f"bdd:{tmp_path}/det.json")


def test_names_cannot_send_control_codes_to_the_terminal() -> None:
    assert printable("a\x1b[2J\x9b\u202eb\n") == "a\\x1b[2J\\x9b\\u202eb\n"
    out = StringIO()
    console = SafeConsole(file=out, force_terminal=True, markup=False, highlight=False)
    console.print("[/] \x1b]0;title\x07[bold]")
    assert "\x1b]0" not in out.getvalue()
    assert "[/] \\x1b]0;title[bold]" in out.getvalue()  # rich itself leaves the bell out


def test_a_model_called_like_markup_has_a_progress_bar() -> None:
    console = SafeConsole(file=StringIO(), force_terminal=True, markup=False, highlight=False)
    with progress_on(console, "[/]", 1) as progress:
        progress.advance()
    assert "[/]" in console.file.getvalue()  # type: ignore[attr-defined]


@pytest.fixture
def dripping() -> Iterator[int]:
    """A server that sends a byte at a time, for as long as anyone listens."""
    server = socket.create_server(("127.0.0.1", 0))
    done = threading.Event()

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            while not done.wait(0.02):
                try:
                    connection.sendall(b"X")
                except OSError:
                    return

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    done.set()
    thread.join()
    server.close()


def test_gives_up_on_a_server_that_sends_a_byte_at_a_time(dripping: int) -> None:
    with pytest.raises(ModelError, match="cannot be reached: no complete response in time"):
        load_model(f"http://127.0.0.1:{dripping}/,timeout=0.5,retries=0")


@pytest.mark.parametrize("url", ["http://[::1", "http://:80/", "http://a b/", "http://host:99999/"])
def test_refuses_invalid_addresses(url: str) -> None:
    with pytest.raises(InvalidOption, match="no host"):
        load_model(url)


def test_declared_rules_decide_how_alpha_is_read(tmp_path: Path) -> None:
    layers = np.zeros((2, 3, 4), np.uint8)
    layers[..., 0], layers[..., 3] = 200, [[255, 255, 255], [0, 51, 255]]
    PIL.Image.fromarray(layers).save(tmp_path / "a.png")
    with pytest.raises(InvalidImage, match="alpha=drop"):
        read_image(tmp_path / "a.png")
    image = read_dataset(f"images:{tmp_path},alpha=white")[0].image
    assert image[1].tolist() == [[255, 255, 255], [244, 204, 204], [200, 0, 0]]
    assert read_dataset(f"images:{tmp_path},alpha=drop")[0].image[1, 0].tolist() == [200, 0, 0]
    plain, ruled = read_dataset(f"images:{tmp_path}"), read_dataset(f"images:{tmp_path},alpha=drop")
    assert plain.fingerprint != ruled.fingerprint
    with pytest.raises(InvalidOption, match="white"):
        read_dataset(f"images:{tmp_path},alpha=blue")


def test_an_opaque_image_needs_no_rule(tmp_path: Path) -> None:
    PIL.Image.new("RGBA", (3, 2), (1, 2, 3, 255)).save(tmp_path / "a.png")
    assert read_image(tmp_path / "a.png")[0, 0].tolist() == [1, 2, 3]


def test_a_declared_rule_decides_how_16_bits_are_read(tmp_path: Path) -> None:
    PIL.Image.fromarray(np.array([[0, 4095, 2048]], np.uint16)).save(tmp_path / "a.png")
    with pytest.raises(InvalidImage, match="bits=16"):
        read_image(tmp_path / "a.png")
    assert read_dataset(f"images:{tmp_path},bits=12")[0].image.tolist() == [[0, 255, 128]]
    with pytest.raises(InvalidImage, match="bits=10"):
        read_image(tmp_path / "a.png", rules=PixelRules(bits=10))


def test_orientation_is_applied_where_asked(tmp_path: Path) -> None:
    exif = PIL.Image.Exif()
    exif[0x0112] = 6
    pixels = np.arange(5 * 7 * 3, dtype=np.uint8).reshape(5, 7, 3)
    PIL.Image.fromarray(pixels).save(tmp_path / "a.png", exif=exif)
    dataset = read_dataset(f"images:{tmp_path},exif=apply")
    assert dataset[0].image.shape == (7, 5, 3)
    assert dataset.size(0) == image_size(tmp_path / "a.png")[::-1] == (7, 5)
    assert np.array_equal(dataset[0].image, np.rot90(pixels, -1))


@pytest.mark.parametrize("split", ["x" * 5000, "x" * 250, "../..", "tr/ain", "a\0b", "\x1b[2J"])
@pytest.mark.parametrize("kind", ["voc", "voc-seg", "cityscapes", "ade20k", "bdd-seg", "kitti", "nrec"])
def test_refuses_invalid_names_of_splits(kind: str, split: str, build: Callable[..., str]) -> None:
    spec = re.sub(",split=[^,]*", "", build(kind))
    with pytest.raises(StormproofError):
        read_dataset(f"{spec},split={split}")


@pytest.mark.parametrize("far", [1e9, -1e9, 4e8, 1e15, 1e308, 10**30])
def test_refuses_cityscapes_polygons_far_outside_the_image(far: float, build: Callable[..., str]) -> None:
    spec = build("cityscapes")
    root = Path(spec.partition(":")[2])
    for label in root.rglob("*_instanceIds.png"):
        content = {"imgHeight": 24, "imgWidth": 32, "objects": [
            {"label": "car", "polygon": [[1, 1], [far, 1], [far, far]]}]}  # fmt: skip
        label.with_name(label.name.replace("instanceIds.png", "polygons.json")).write_text(
            json.dumps(content)
        )
        label.unlink()
    with pytest.raises(StormproofError, match="polygons"):
        read_dataset(spec).truth(0)


def test_very_long_names_of_images_and_classes_raise_only_our_errors(build: Callable[..., str]) -> None:
    spec = build("coco")
    path = Path(spec.partition(":")[2].partition(",")[0])
    content = json.loads(path.read_text())
    content["images"][0]["file_name"] = "x" * 5000 + ".png"
    content["categories"][0]["name"] = "y" * 100_000
    path.write_text(json.dumps(content))
    dataset = read_dataset(spec)
    with pytest.raises(StormproofError, match="no such image file"):
        dataset[0]


@pytest.mark.parametrize("side", ["9" * 5000, "²", "٣", "-1", "1e3", "0", ""])
def test_replaces_an_invalid_size_by_that_of_the_image(side: str, build: Callable[..., str]) -> None:
    spec = build("voc")
    for file in Path(spec.partition(":")[2].partition(",")[0]).rglob("*.xml"):
        file.write_text(re.sub("<height>.*?</height>", f"<height>{side}</height>", file.read_text()))
    dataset = read_dataset(spec)
    assert dataset.labels.size(0) is None
    assert dataset[0].image.shape[:2] == dataset.size(0)


@pytest.mark.parametrize(
    ("key", "value"),
    [*product(("fx", "baseline"), (10**400, [], "x", {}, float("nan"))), ("fx", 0), ("fx", -700), ("fy", 0)],
)
def test_refuses_calibrations_with_invalid_numbers(key: str, value: object, tmp_path: Path) -> None:
    good = {"fx": 700, "fy": 700, "cx": 3, "cy": 2, "baseline": 0.5}
    (tmp_path / "plain.json").write_text(json.dumps(good | {key: value}))
    inner = {"fx": 700, "fy": 700, "u0": 3, "v0": 2} | ({key: value} if key != "baseline" else {})
    outer = {"baseline": value if key == "baseline" else 0.5}
    (tmp_path / "city.json").write_text(json.dumps({"intrinsic": inner, "extrinsic": outer}))
    (tmp_path / "deep.json").write_text("[" * 100_000)
    for name in ("plain.json", "city.json", "deep.json"):
        with pytest.raises(StormproofError, match=f"{name}.*is not a calibration"):
            read_calibration(tmp_path / name)


def test_fingerprints_take_undecodable_file_names_and_refuse_impossible_ones(tmp_path: Path) -> None:
    with pytest.raises(StormproofError, match="cannot be read"):
        fingerprint_of(b"", [tmp_path / "a\ud800.png"])
    raw = tmp_path / "b\udcff.png"  # bytes that are no UTF-8, as Python spells them
    raw.write_bytes(b"x")
    assert fingerprint_of(b"", [raw]) != fingerprint_of(b"", [])
