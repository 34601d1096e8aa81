"""Depth, disparity, calibration and stereo partners from files."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import PIL.Image
import pytest

from stormproof.core.errors import DatasetError, InvalidOption
from stormproof.core.sample import Camera
from stormproof.datasets import read_dataset
from stormproof.datasets.depthmaps import (
    Calibration,
    depth_from_disparity,
    fill_unknown,
    read_calibration,
    read_depth,
    read_disparity,
)

Build = Callable[..., str]
DEPTH = np.linspace(1, 50, 24 * 32, dtype=np.float32).reshape(24, 32)


def write_pfm(path: Path, values: np.ndarray, order: str) -> None:
    """A PFM as its definition has it: rows from the bottom up, the sign of the scale for the byte order."""
    scale = -1.0 if order == "<" else 1.0
    header = f"Pf\n{values.shape[1]} {values.shape[0]}\n{scale}\n".encode()
    path.write_bytes(header + np.flipud(values).astype(f"{order}f4").tobytes())


@pytest.mark.parametrize("order", ["<", ">"])
def test_pfm_rows_run_from_the_bottom(tmp_path: Path, order: str) -> None:
    write_pfm(tmp_path / "d.pfm", DEPTH, order)
    np.testing.assert_array_equal(read_depth(tmp_path / "d.pfm"), DEPTH)


def test_npy_keeps_sky_and_unknown(tmp_path: Path) -> None:
    stored = np.array([[1.5, np.inf], [np.nan, 0.0]])
    np.save(tmp_path / "d.npy", stored)
    np.testing.assert_array_equal(read_depth(tmp_path / "d.npy"), np.array([[1.5, np.inf], [np.nan, np.nan]]))
    assert read_depth(tmp_path / "d.npy", 10)[0, 0] == np.float32(0.15)


def test_npy_never_runs_code(tmp_path: Path) -> None:
    np.save(tmp_path / "d.npy", np.array([{"a": 1}]), allow_pickle=True)
    with pytest.raises(DatasetError, match=r"d\.npy"):
        read_depth(tmp_path / "d.npy")


def test_16_bit_files_have_256_units_and_zero_is_unknown(tmp_path: Path) -> None:
    PIL.Image.fromarray(np.array([[0, 256], [384, 65535]], np.uint16)).save(tmp_path / "d.png")
    np.testing.assert_array_equal(
        read_depth(tmp_path / "d.png"), np.array([[np.nan, 1], [1.5, 65535 / 256]], np.float32)
    )
    np.testing.assert_array_equal(read_disparity(tmp_path / "d.png"), read_depth(tmp_path / "d.png"))
    assert read_depth(tmp_path / "d.png", 1000)[0, 1] == np.float32(0.256)


def test_reads_disparity_in_8_bits_and_floats(tmp_path: Path) -> None:
    PIL.Image.fromarray(np.array([[0, 43]], np.uint8)).save(tmp_path / "d.png")
    np.testing.assert_array_equal(read_disparity(tmp_path / "d.png"), np.array([[np.nan, 43]], np.float32))
    np.save(tmp_path / "d.npy", np.array([[np.inf, 0.0, -1.0, 2.5]], np.float32))
    np.testing.assert_array_equal(read_disparity(tmp_path / "d.npy"), [[np.nan, 0, np.nan, 2.5]])


def test_depth_in_8_bits_is_in_whole_units(tmp_path: Path, trees: ModuleType) -> None:
    """Only 16-bit files have 256 units per metre; a scale says otherwise for any file."""
    trees.save(tmp_path / "d.png", np.array([[0, 1, 200]], np.uint8))
    np.testing.assert_array_equal(read_depth(tmp_path / "d.png"), [[np.nan, 1, 200]])
    np.testing.assert_array_equal(read_depth(tmp_path / "d.png", scale=10), np.float32([[np.nan, 0.1, 20]]))


def test_converts_disparity_to_depth_and_back() -> None:
    calibration = Calibration(Camera(700, 700, 0, 0, baseline=0.5), offset=3.0)
    disparity = 700 * 0.5 / DEPTH - 3
    np.testing.assert_allclose(depth_from_disparity(disparity, calibration), DEPTH, rtol=1e-4)


def test_fill_takes_the_nearest_known_depth() -> None:
    depth = np.full((3, 5), np.nan, np.float32)
    depth[0, 0], depth[2, 4] = 5, np.inf
    filled = fill_unknown(depth)
    assert (filled[1, 0], filled[1, 4]) == (5, np.inf)
    assert not np.isnan(filled).any()
    assert np.isnan(fill_unknown(np.full((2, 2), np.nan, np.float32))).all()


def test_reads_calibrations_of_every_format(tmp_path: Path) -> None:
    (tmp_path / "kitti.txt").write_text(
        "P2: 700 0 600 45 0 701 170 0.2 0 0 1 0\nP3: 700 0 600 -340 0 701 170 2 0 0 1 0\n"
    )
    assert read_calibration(tmp_path / "kitti.txt").camera == Camera(700, 701, 600, 170, 385 / 700)
    (tmp_path / "mb.txt").write_text("cam0=[999.4 0 294.1; 0 998.4 252.9; 0 0 1]\ndoffs=32.8\nbaseline=193\n")
    assert read_calibration(tmp_path / "mb.txt") == Calibration(
        Camera(999.4, 998.4, 294.1, 252.9, 0.193, 32.8), 32.8
    )
    city = {"extrinsic": {"baseline": 0.22}, "intrinsic": {"fx": 2262, "fy": 2265, "u0": 1096, "v0": 513}}
    (tmp_path / "c.json").write_text(json.dumps(city))
    assert read_calibration(tmp_path / "c.json") == Calibration(Camera(2262, 2265, 1096, 513, 0.22), -1 / 256)
    (tmp_path / "plain.json").write_text('{"fx": 1, "fy": 2, "cx": 3, "cy": 4}')
    assert read_calibration(tmp_path / "plain.json").camera == Camera(1, 2, 3, 4)
    (tmp_path / "bad.txt").write_text("hello")
    with pytest.raises(DatasetError, match=r"bad\.txt: is not a calibration"):
        read_calibration(tmp_path / "bad.txt")


def attach(root: Path, trees: ModuleType) -> None:
    """Depth, disparity and right images for the tiny Cityscapes, under that format's names."""
    for i, name in enumerate(trees.NAMES):
        (root / "depth/aa").mkdir(parents=True, exist_ok=True)
        np.save(root / f"depth/aa/{name}_depth.npy", DEPTH + i)
        trees.save(root / f"disparity/val/aa/{name}_disparity.png", np.full((24, 32), 2560 + 1, np.uint16))
        trees.save(root / f"rightImg8bit/val/aa/{name}_rightImg8bit.png", trees.make_image(10 + i))
        camera = {"extrinsic": {"baseline": 0.2}, "intrinsic": {"fx": 2000, "fy": 2000, "u0": 16, "v0": 12}}
        trees.save_text(root / f"camera/val/aa/{name}_camera.json", json.dumps(camera))


def test_context_is_found_by_name(build: Build, tmp_path: Path, trees: ModuleType) -> None:
    spec = build("cityscapes")
    attach(tmp_path / "tree", trees)
    with_depth = read_dataset(f"{spec},depth=depth")
    np.testing.assert_array_equal(with_depth[1].context.depth, DEPTH + 1)
    np.testing.assert_array_equal(with_depth[-1].context.depth, DEPTH + 1)
    stereo = read_dataset(f"{spec},disparity=disparity,calib=camera,right=rightImg8bit")
    sample = stereo[0]
    np.testing.assert_array_equal(sample.context.right, trees.make_image(10))
    # (2561 − 1) / 256 = 10 pixels; 2000 × 0.2 / 10 = 40 metres
    np.testing.assert_allclose(sample.context.depth, 40, rtol=1e-6)
    assert sample.context.camera.baseline == 0.2
    plain = read_dataset(spec)
    assert len({plain.fingerprint, with_depth.fingerprint, stereo.fingerprint}) == 3
    assert with_depth.category_ids == plain.category_ids  # type: ignore[attr-defined]
    assert with_depth.truth(0).semantic is not None
    np.save(tmp_path / f"tree/depth/aa/{trees.NAMES[1]}_depth.npy", DEPTH.astype(np.float64))
    assert read_dataset(f"{spec},depth=depth").fingerprint != with_depth.fingerprint


def test_coco_finds_depth_by_image_name(build: Build, tmp_path: Path) -> None:
    spec = build("coco")
    (tmp_path / "tree/depth").mkdir()
    for name in "ab":
        np.save(tmp_path / f"tree/depth/{name}.npy", DEPTH)
    assert read_dataset(f"{spec},depth=depth")[0].context.depth.shape == (24, 32)


def test_names_context_that_is_missing_or_does_not_fit(
    build: Build, tmp_path: Path, trees: ModuleType
) -> None:
    spec = build("cityscapes")
    root = tmp_path / "tree"
    attach(root, trees)
    np.save(root / f"depth/aa/{trees.NAMES[0]}_depth.npy", DEPTH[:5])
    with pytest.raises(DatasetError, match=rf"{trees.NAMES[0]}_depth\.npy.*\(5, 32\).*\(24, 32\)"):
        read_dataset(f"{spec},depth=depth")[0]
    (root / f"depth/aa/{trees.NAMES[0]}_depth.npy").unlink()
    with pytest.raises(DatasetError, match=f"sample '{trees.NAMES[0]}': no depth map"):
        read_dataset(f"{spec},depth=depth")
    with pytest.raises(DatasetError, match="did you mean"):
        read_dataset(f"{spec},depth=deepth")
    trees.save_text(root / "one.json", '{"fx": 7, "fy": 7, "cx": 3, "cy": 2}')
    with pytest.raises(DatasetError, match=r"one\.json: has no baseline"):
        read_dataset(f"{spec},disparity=disparity,calib=one.json")[0]


@pytest.mark.parametrize(
    "options",
    [
        "depth_scale=256",
        "disparity_scale=2",
        "fill_depth=true",
        "depth=depth,disparity=disparity,calib=camera",
    ],
)
def test_refuses_options_that_contradict_each_other(
    build: Build, tmp_path: Path, trees: ModuleType, options: str
) -> None:
    spec = build("cityscapes")
    attach(tmp_path / "tree", trees)
    with pytest.raises(InvalidOption):
        read_dataset(f"{spec},{options}")


def test_reads_real_kitti_depth_and_calibration(shared: Path) -> None:
    dataset = read_dataset(f"kitti:{shared}/kitti_object,depth=depth_velo,calib=calib")
    sample = dataset[0]
    with PIL.Image.open(shared / "kitti_object/depth_velo/000000.png") as file:
        stored = np.array(file)
    np.testing.assert_array_equal(np.isnan(sample.context.depth), stored == 0)
    known = stored > 0
    np.testing.assert_allclose(sample.context.depth[known], stored[known] / 256)
    assert 0.5 < sample.context.camera.baseline < 0.6
    filled = read_dataset(f"kitti:{shared}/kitti_object,depth=depth_velo,fill_depth=true")[0].context.depth
    assert not np.isnan(filled).any()
    np.testing.assert_array_equal(filled[known], sample.context.depth[known])


def test_reads_real_stereo_scenes(shared: Path) -> None:
    root = shared / "stereo_depth"
    scene = root / "middlebury2014_motorcycle_Q"
    options = f"disparity={scene}/disp0GT.pfm,calib={scene}/calib.txt,right={scene}/im1.png"
    sample = read_dataset(f"images:{scene}/im0.png,{options}")[0]
    # The calibration says disparities lie between vmin = 7 and vmax = 65.
    assert 7 <= np.nanmin(sample.context.disparity) <= np.nanmax(sample.context.disparity) <= 65
    assert 1 < np.nanmin(sample.context.depth) < np.nanmax(sample.context.depth) < 6
    # Where the truth is right, the left pixel looks like the right one it came from.
    rows, columns = np.nonzero(~np.isnan(sample.context.disparity))
    partner = np.round(columns - sample.context.disparity[rows, columns]).astype(int)
    inside = partner >= 0
    left = sample.image[rows[inside], columns[inside]].astype(float)
    right = sample.context.right[rows[inside], partner[inside]].astype(float)
    unshifted = sample.context.right[rows[inside], columns[inside]].astype(float)
    assert np.abs(left - right).mean() < 0.5 * np.abs(left - unshifted).mean()
    kitti = root / "kitti2015_000046"
    found = read_dataset(f"images:{kitti}/left.png,disparity={kitti}/disp_occ_0.png")[0].context
    assert found.depth is None
    assert 1 < np.nanmin(found.disparity) < np.nanmax(found.disparity) < 100
    kinect = root / "kinect_rgbd_slambook2"
    depth = read_dataset(f"images:{kinect}/color_1.png,depth={kinect}/depth_1.pgm,depth_scale=1000")[
        0
    ].context.depth
    assert 0.9 < np.nanmin(depth) < np.nanmax(depth) < 10
