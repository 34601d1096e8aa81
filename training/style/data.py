"""The images the style networks are trained on: packed once, then cropped on the training machine.

    python data.py --shared DIR --out data.npz     packs, where the package and the images are
    Atlas("data.npz", "cuda")                      crops, where torch and Pillow are

Contents: built-in streets and photographs of COCO train2017. Styles: public-domain paintings, procedural
styles (assets/styles.py), and the contents themselves.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import PIL.Image

PHOTO, SCENE, PAINTING, PROCEDURAL, HELD_PHOTO, HELD_SCENE, HELD_PAINTING = range(7)
PHOTO_SIDE, STYLE_SIDE = 416, 512
FIRST_SCENE = 40_000  # far from the scenes that the detectors are trained on
# Never trained on, so that measurements on them are fair; the same holds for COCO val2017 and world:test.
HELD_OUT_PAINTINGS = ("munch_scream_1893.jpg", "van_gogh_wheat_field.jpg", "picabia_udnie_1913.jpg")
HELD_OUT = 8  # photographs of train2017, and scenes of world:val: for the log
DIED_BEFORE = 1956  # copyright lasts for life and seventy years
# How images are packed: photographs have already lost their fine colours to JPEG, scenes must keep them.
FORMATS = {
    "photo": {"format": "webp", "quality": 80, "method": 6},
    "scene": {"format": "avif", "quality": 80, "subsampling": "4:4:4", "speed": 6},
    "plain": {"format": "jpeg", "quality": 90, "subsampling": 0},
}


class Atlas:
    """All images in the device's memory; a batch is random crops of them."""

    def __init__(self, path: Path, device: str, seed: int = 0) -> None:
        import torch

        self.torch, self.device = torch, device
        with np.load(path) as packed:
            pieces = np.split(packed["bytes"], np.cumsum(packed["sizes"])[:-1])
            groups = packed["groups"]
        found: dict[int, list[np.ndarray]] = {}
        with ThreadPoolExecutor() as threads:
            for image, group in zip(threads.map(_decode, pieces), groups, strict=True):
                found.setdefault(int(group), []).append(image)
        self.groups = {g: torch.from_numpy(np.stack(images)).to(device) for g, images in found.items()}
        self.generator = torch.Generator(device="cpu").manual_seed(seed)

    def _rand(self, *shape: int) -> object:
        return self.torch.rand(*shape, generator=self.generator)

    def _crops(
        self, group: int, count: int, size: tuple[int, int], zoom: tuple[float, float], native: float
    ) -> object:
        """Crops of random images, mirrored at random.

        A share `native` is cropped at its own size; the others are enlarged by a factor in the range `zoom`.
        """
        torch = self.torch
        images = self.groups[group]
        images = images[torch.randint(len(images), (count,), generator=self.generator)].float() / 255
        height, width = images.shape[2:]
        draw = self._rand(5, count)
        low, high = np.log(zoom[0]), np.log(zoom[1])
        scale = torch.exp(low + (high - low) * draw[0])
        # Where the image is too small for the crop it is enlarged.
        scale = scale.clamp(min=max(size[0] / height, size[1] / width, 0.0))
        fits = size[0] <= height and size[1] <= width
        scale = torch.where((draw[4] < native) & fits, 1.0, scale)
        left, top = (draw[1] * (width - size[1] / scale), draw[2] * (height - size[0] / scale))
        whole = scale == 1
        left, top = torch.where(whole, left.round(), left), torch.where(whole, top.round(), top)
        share_x, share_y = size[1] / scale / width, size[0] / scale / height
        matrix = torch.zeros(count, 2, 3)
        matrix[:, 0, 0] = share_x * torch.where(draw[3] < 0.5, -1.0, 1.0)
        matrix[:, 1, 1] = share_y
        matrix[:, 0, 2] = 2 * left / width + share_x - 1
        matrix[:, 1, 2] = 2 * top / height + share_y - 1
        grid = torch.nn.functional.affine_grid(matrix.to(self.device), [count, 3, *size], align_corners=False)
        return torch.nn.functional.grid_sample(images, grid, align_corners=False, padding_mode="border")

    def _mixed(
        self,
        count: int,
        shares: dict[int, float],
        size: tuple[int, int],
        zoom: tuple[float, float],
        native: float,
    ) -> object:
        torch = self.torch
        groups = [group for group in shares if group in self.groups]
        weights = torch.tensor([shares[group] for group in groups])
        drawn = torch.multinomial(weights, count, replacement=True, generator=self.generator)
        counts = [(group, int((drawn == k).sum())) for k, group in enumerate(groups)]
        parts = [self._crops(group, n, size, zoom, native) for group, n in counts if n]
        order = torch.randperm(count, generator=self.generator).to(self.device)
        return torch.cat(parts)[order]

    def contents(self, count: int, size: tuple[int, int]) -> object:
        """Photographs and scenes, two to one; most at their size, the others up to twice as large."""
        return self._mixed(count, {PHOTO: 0.67, SCENE: 0.33}, size, (0.8, 2.1), 0.75)

    def styles(self, count: int, size: tuple[int, int]) -> object:
        """Styles with random colours, so that few paintings give many styles."""
        torch = self.torch
        shares = {PAINTING: 0.6, PROCEDURAL: 0.25, PHOTO: 0.15}
        style = self._mixed(count, shares, size, (0.55, 1.4), 0.25)
        draw = self._rand(count, 9).to(self.device)
        order = torch.argsort(self._rand(count, 3), 1).to(self.device)
        order = torch.where(draw[:, :1] < 0.5, order, torch.arange(3, device=self.device))
        style = style.gather(1, order[:, :, None, None].expand_as(style))
        style = torch.where((draw[:, 8] < 0.1)[:, None, None, None], 1 - style, style)
        varied = (draw[:, 1:2] < 0.6).float()
        gamma = torch.exp(varied * (draw[:, 2:5] - 0.5) * 0.9)[:, :, None, None]
        gain = (1 + varied * (draw[:, 5:8] - 0.5) * 0.5)[:, :, None, None]
        return (style.clamp(1e-4, 1) ** gamma * gain).clamp(0, 1)

    def held(self, group: int) -> object:
        """Whole images of a held-out group."""
        return self.groups[group].float() / 255


def _decode(data: np.ndarray) -> np.ndarray:
    """3×H×W uint8."""
    with PIL.Image.open(io.BytesIO(data.tobytes())) as image:
        return np.ascontiguousarray(np.asarray(image.convert("RGB")).transpose(2, 0, 1))


def _square(image: np.ndarray, side: int, at: float, scaled: bool) -> np.ndarray:
    """A square crop of the image at its own size or, if `scaled` or too small, resized to just cover it.

    `at` 0 keeps the upper left, 1 the lower right.
    """
    import cv2

    scale = side / min(image.shape[:2])
    if scaled or scale > 1:
        width, height = (max(round(length * scale), side) for length in (image.shape[1], image.shape[0]))
        method = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
        image = cv2.resize(np.ascontiguousarray(image), (width, height), interpolation=method)
    top, left = (round((length - side) * at) for length in image.shape[:2])
    return image[top : top + side, left : left + side]


def _encoded(image: np.ndarray, kind: str) -> np.ndarray:
    packed = io.BytesIO()
    PIL.Image.fromarray(np.ascontiguousarray(image)).save(packed, **FORMATS[kind])
    return np.frombuffer(packed.getvalue(), np.uint8)


def photographs(shared: Path, turn: int) -> list[np.ndarray]:
    """Every colour photograph of the training images, cut to a square of its own pixels."""
    coco = json.loads((shared / "data/coco_train/instances_train2017.json").read_text())
    files = [shared / "data" / place / name for place, name in _other_photographs(shared)]
    files += sorted(shared / "data/coco_train/train2017" / row["file_name"] for row in coco["images"])
    squares = []
    for k, file in enumerate(files):
        with PIL.Image.open(file) as image:
            if image.mode == "RGB":
                squares.append(
                    _square(np.asarray(image), PHOTO_SIDE, (k * 0.618 + turn * 0.5) % 1, scaled=False)
                )
    return squares


def _other_photographs(shared: Path) -> list[tuple[str, str]]:
    """Photographs of VOC and CamVid: folder and file name."""
    places = (("voc2012/JPEGImages", "*.jpg"), ("camvid/images", "*.png"))
    return [
        (place, file.name) for place, kind in places for file in sorted((shared / "data" / place).glob(kind))
    ]


def paintings(shared: Path, held: bool) -> list[np.ndarray]:
    """Three crops of every training painting, or one of each held-out painting."""
    with (shared / "data/paintings/SOURCES.csv").open() as file:
        names = [row["file"] for row in csv.DictReader(file) if int(row["died"]) < DIED_BEFORE]
    found = []
    for name in sorted(names):
        path = shared / "data/paintings" / name
        if path.exists() and (name in HELD_OUT_PAINTINGS) is held:
            with PIL.Image.open(path) as image:
                pixels = np.asarray(image.convert("RGB"))
            found += [_square(pixels, STYLE_SIDE, at, True) for at in ((0.5,) if held else (0.0, 0.5, 1.0))]
    return found


def procedural(count: int, turn: int) -> list[np.ndarray]:
    """Procedural styles, each way of drawing in one palette after another."""
    sys.path.insert(0, str(Path(__file__).parents[2] / "assets"))
    import styles

    names = list(styles.PALETTES)
    ways = [style for style, _ in styles.STYLES]
    return [
        styles.drawn(ways[k % len(ways)], names[(k * 5 + k // len(ways)) % len(names)], seed=k)
        for k in range(turn * count, (turn + 1) * count)
    ]


def pack(shared: Path, scenes: int, drawn: int, turn: int) -> dict[str, np.ndarray]:
    """Every image, encoded, with its group. Another `turn` has other scenes, crops and drawings."""
    from stormproof.world.samples import render

    photos, first = photographs(shared, turn), FIRST_SCENE + turn * scenes
    groups = {
        (PHOTO, "photo"): photos[:-HELD_OUT],
        (HELD_PHOTO, "plain"): photos[-HELD_OUT:],
        (SCENE, "scene"): [render(0, "train", first + k).sample.image for k in range(scenes)],
        (HELD_SCENE, "plain"): [render(0, "val", k).sample.image for k in range(HELD_OUT)],
        (PAINTING, "photo"): paintings(shared, held=False),
        (HELD_PAINTING, "plain"): paintings(shared, held=True),
        (PROCEDURAL, "photo"): procedural(drawn, turn),
    }
    files = [(group, _encoded(image, kind)) for (group, kind), images in groups.items() for image in images]
    return {
        "bytes": np.concatenate([data for _, data in files]),
        "sizes": np.array([len(data) for _, data in files]),
        "groups": np.array([group for group, _ in files]),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scenes", type=int, default=235)
    parser.add_argument("--drawn", type=int, default=48)
    parser.add_argument("--turn", type=int, default=0, help="a different turn has different images")
    options = parser.parse_args()
    packed = pack(options.shared, options.scenes, options.drawn, options.turn)
    np.savez(options.out, **packed)
    for group in range(7):
        of = packed["groups"] == group
        print(group, int(of.sum()), f"{packed['sizes'][of].sum() / 2**20:.1f} MiB")


if __name__ == "__main__":
    main()
