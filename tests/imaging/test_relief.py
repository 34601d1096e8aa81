"""Relief of drops in torch, step by step, against OpenCV."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import cv2
import numpy as np
import pytest

torch = pytest.importorskip("torch")

from stormproof.imaging.cpu import fields as cpu
from stormproof.imaging.gpu import fields as gpu
from stormproof.imaging.gpu.batch import Batch
from stormproof.imaging.plans import EDGES, EMBOSS, FAR

SIZES = [(1, 1), (1, 7), (9, 1), (2, 2), (3, 3), (5, 64), (41, 58), (97, 131), (120, 33)]


def layers(height: int, width: int) -> np.ndarray:
    """Drops, slopes, noise, dots; nothing at all, all white, one pixel."""
    rng = np.random.default_rng(height * width)
    size = height, width
    smooth = [cv2.GaussianBlur(rng.normal(0.65, 0.3, size), (0, 0), sigma) for sigma in (1, 2, 3, 4)]
    drops = [np.where(field < 0.68, 0, field) for field in smooth]
    slopes = [(field - field.min()) / (np.ptp(field) + 1e-9) for field in smooth]
    dots = [rng.random(size) < share for share in (0.001, 0.01, 0.3)]
    faint = rng.integers(0, 256, size) // 16 / 255  # candidates that hang together by long ways
    single = np.zeros(size)
    single[rng.integers(height), rng.integers(width)] = 1
    fields = [*drops, *slopes, *dots, faint, single, np.zeros(size), np.ones(size)]
    fields += [rng.random(size) for _ in range(3)]
    return np.clip(np.stack(fields) * 255, 0, 255).astype(np.uint8)


def spiral(height: int, width: int) -> np.ndarray:
    """A weak edge as long as can be, strong at its outer end only."""
    field = np.zeros((height, width))
    top, left, bottom, right = 0, 0, height - 1, width - 1
    while bottom - top > 3 and right - left > 3:
        field[top, left : right + 1] = field[top : bottom + 1, right] = 0.06
        field[bottom, left + 4 : right + 1] = field[top + 4 : bottom + 1, left + 4] = 0.06
        top, left, bottom, right = top + 4, left + 4, bottom - 4, right - 4
    field[0, 0] = 1
    return field


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_every_step_equals_opencv(size: tuple[int, int]) -> None:
    images = layers(*size)
    data = torch.from_numpy(images)
    edge = gpu._linked(gpu._peaks(data, *EDGES))
    expected = np.stack([cv2.Canny(image, *EDGES) for image in images])
    assert (edge.numpy() * 255 == expected).all()

    near = gpu._near(edge, gpu._chamfer())
    distance = np.stack([cpu._distance(image) for image in expected])
    blurred = np.stack([cv2.blur(np.minimum(one, FAR), (3, 3)) for one in distance]).astype(np.uint8)
    assert (near.numpy() == blurred).all()

    levels = gpu._equalising(gpu._counts(near, FAR + 1))
    equal = np.stack([cv2.equalizeHist(one) for one in blurred])
    assert (levels.gather(1, near.flatten(1).long()).numpy() == equal.reshape(len(equal), -1)).all()

    embossed = [cv2.filter2D(one, cv2.CV_8U, np.array(EMBOSS)) for one in equal]
    found = gpu.relief(Batch(data)).data.numpy()
    assert found.dtype == np.float32
    assert (found == np.stack([cv2.blur(one, (3, 3)) for one in embossed])).all()
    assert (found == np.stack([cpu.relief(image) for image in images])).all()


def test_edges_follow_weak_candidates_to_their_end() -> None:
    image = (spiral(41, 58) * 255).astype(np.uint8)
    peaks = gpu._peaks(torch.from_numpy(image)[None], *EDGES)
    found, expected = gpu._linked(peaks)[0].numpy(), cv2.Canny(image, *EDGES) > 0
    assert (peaks == 2).sum() < 20 < 200 < expected.sum()  # strong at one end
    assert (found == expected).all()


def test_a_path_of_chamfer_steps_is_as_long_as_the_table_says() -> None:
    """From one edge pixel to everywhere near it, by OpenCV; so no more rows or columns need be searched."""
    image = np.zeros((2 * FAR + 3, 2 * FAR + 3), np.uint8)
    image[FAR + 1, FAR + 1] = 255
    found = np.minimum(cpu._distance(image), FAR)[FAR + 1 :, FAR + 1 :] * 65536
    assert (found[:FAR, : FAR + 1] == gpu._chamfer()).all()
    assert (found[FAR:] == FAR << 16).all()
    assert (found[:, FAR:] == FAR << 16).all()
