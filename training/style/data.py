"""The images the style networks are trained on: packed once, then cropped on the training machine.

    python data.py --shared DIR --out data.npz     packs, where the package and the images are
    Atlas("data.npz", "cuda", 256)                 crops, where torch and torchvision are

Contents: built-in streets, and those photographs of COCO train2017 whose licence permits it. Styles:
public-domain paintings, procedural styles (assets/styles.py), and the photographs themselves.
"""

from __future__ import annotations

import argparse
import csv
import json
import sys
from pathlib import Path

import numpy as np

CONTENT_SIZE, STYLE_SIZE = (384, 512), (512, 512)  # height, width
QUALITY = 86
# Licence ids of COCO: BY, BY-SA, no known restrictions, United States government work.
PERMITTED = {4, 5, 7, 8}
# Never trained on, so that what is measured on them says something.
HELD_OUT_PAINTINGS = ("munch_scream_1893.jpg", "van_gogh_wheat_field.jpg", "picabia_udnie_1913.jpg")
HELD_OUT_PHOTOGRAPHS = 8  # the last of the permitted ones
DIED_BEFORE = 1956  # life and seventy years


class Atlas:
    """All images in the device's memory; a batch is random crops of them."""

    def __init__(self, path: Path, device: str, crop: int) -> None:
        import torch

        self.torch, self.device, self.crop = torch, device, crop
        with np.load(path) as packed:
            ends = np.cumsum(packed["sizes"])
            pieces = np.split(packed["bytes"], ends[:-1])
            groups = packed["groups"]
        images = [_decode(piece) for piece in pieces]
        self.groups = {
            int(g): torch.stack([torch.from_numpy(images[k]) for k in np.flatnonzero(groups == g)]).to(device)
            for g in np.unique(groups)
        }
        self.generator = torch.Generator(device="cpu").manual_seed(0)

    def _crops(self, group: int, chosen: object, low: float, high: float) -> object:
        """Square crops of `low` to `high` times the crop size, turned left to right by chance."""
        torch = self.torch
        images = self.groups[group][chosen].float() / 255
        n, _, height, width = images.shape
        draw = torch.rand(4, n, generator=self.generator).to(self.device)
        side = (low + (high - low) * draw[0]) * self.crop
        side = side.clamp(max=min(height, width))
        flip = torch.where(draw[3] < 0.5, -1.0, 1.0)
        matrix = torch.zeros(n, 2, 3, device=self.device)
        matrix[:, 0, 0], matrix[:, 1, 1] = side / width * flip, side / height
        matrix[:, 0, 2] = (1 - side / width) * (2 * draw[1] - 1)
        matrix[:, 1, 2] = (1 - side / height) * (2 * draw[2] - 1)
        grid = torch.nn.functional.affine_grid(matrix, (n, 3, self.crop, self.crop), align_corners=False)
        return torch.nn.functional.grid_sample(images, grid, align_corners=False, padding_mode="reflection")

    def _mixed(self, count: int, shares: dict[int, float], low: float, high: float) -> object:
        torch = self.torch
        groups = list(shares)
        drawn = torch.multinomial(
            torch.tensor([shares[g] for g in groups]), count, replacement=True, generator=self.generator
        )
        parts = []
        for k, group in enumerate(groups):
            n = int((drawn == k).sum())
            if n:
                chosen = torch.randint(len(self.groups[group]), (n,), generator=self.generator)
                parts.append(self._crops(group, chosen.to(self.device), low, high))
        order = torch.randperm(count, generator=self.generator).to(self.device)
        return torch.cat(parts)[order]

    def batch(self, count: int) -> tuple[object, object]:
        """Contents and styles; the styles' colours vary, so that few paintings stand for many."""
        torch = self.torch
        content = self._mixed(count, {PHOTO: 0.7, STREET: 0.3}, 0.8, 1.5)
        style = self._mixed(count, {PAINTING: 0.5, PROCEDURAL: 0.25, PHOTO: 0.25}, 0.8, 1.9)
        draw = torch.rand(count, 8, generator=self.generator).to(self.device)
        order = torch.argsort(torch.rand(count, 3, generator=self.generator), 1).to(self.device)
        order = torch.where(draw[:, :1] < 0.35, order, torch.arange(3, device=self.device))
        style = style.gather(1, order[:, :, None, None].expand_as(style))
        varied = (draw[:, 1:2] < 0.6).float()
        gamma = torch.exp(varied * (draw[:, 2:5] - 0.5) * 0.9)[:, :, None, None]
        gain = (1 + varied * (draw[:, 5:8] - 0.5) * 0.5)[:, :, None, None]
        style = (style.clamp(1e-4, 1) ** gamma * gain).clamp(0, 1)
        return content, style

    def validation(self) -> tuple[object, object]:
        """Whole images that are not trained on."""
        return self.groups[HELD_PHOTO].float() / 255, self.groups[HELD_PAINTING].float() / 255


PHOTO, STREET, PAINTING, PROCEDURAL, HELD_PHOTO, HELD_PAINTING = range(6)


def _decode(jpeg: np.ndarray) -> np.ndarray:
    """C×H×W uint8, with whichever decoder is there."""
    try:
        import torch
        from torchvision.io import ImageReadMode, decode_jpeg

        return decode_jpeg(torch.from_numpy(jpeg.copy()), mode=ImageReadMode.RGB).numpy()
    except Exception:  # not there, or not made for this torch
        from io import BytesIO

        import PIL.Image

        return np.ascontiguousarray(
            np.asarray(PIL.Image.open(BytesIO(jpeg.tobytes())).convert("RGB")).transpose(2, 0, 1)
        )


def _fitted(image: np.ndarray, size: tuple[int, int], at: float = 0.5) -> np.ndarray:
    """Scaled to cover `size`, then cut: `at` 0 keeps the upper left, 1 the lower right."""
    import cv2

    if image.ndim == 2:
        image = np.repeat(image[..., None], 3, 2)
    if size[0] != size[1] and image.shape[0] > image.shape[1]:
        image = np.rot90(image)
    scale = max(size[0] / image.shape[0], size[1] / image.shape[1])
    width, height = round(image.shape[1] * scale), round(image.shape[0] * scale)
    image = cv2.resize(
        np.ascontiguousarray(image),
        (width, height),
        interpolation=cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC,
    )
    top, left = round((height - size[0]) * at), round((width - size[1]) * at)
    return image[top : top + size[0], left : left + size[1]]


def pack(shared: Path, streets: int) -> dict[str, np.ndarray]:
    """Every image as JPEG bytes, with its group."""
    import cv2

    from stormproof.core.imagefile import read_image
    from stormproof.world import render

    sys.path.insert(0, str(Path(__file__).parents[2] / "assets"))
    import styles

    files: list[np.ndarray] = []
    groups: list[int] = []

    def add(image: np.ndarray, group: int) -> None:
        _, encoded = cv2.imencode(".jpg", image[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, QUALITY])
        files.append(encoded.reshape(-1))
        groups.append(group)

    coco = json.loads((shared / "data/coco_train/instances_train2017.json").read_text())
    permitted = [row["file_name"] for row in coco["images"] if row["license"] in PERMITTED]
    for k, name in enumerate(permitted):
        image = read_image(shared / "data/coco_train/train2017" / name)
        held = k >= len(permitted) - HELD_OUT_PHOTOGRAPHS
        add(_fitted(image, CONTENT_SIZE), HELD_PHOTO if held else PHOTO)
    for k in range(streets):
        add(render(0, "train", 1000 + k, width=CONTENT_SIZE[1], height=CONTENT_SIZE[0]).sample.image, STREET)
    with (shared / "data/paintings/SOURCES.csv").open() as file:
        painted = [row["file"] for row in csv.DictReader(file) if int(row["died"]) < DIED_BEFORE]
    for name in painted:
        path = shared / "data/paintings" / name
        if not path.exists():
            continue
        if name in HELD_OUT_PAINTINGS:
            add(_fitted(read_image(path), STYLE_SIZE), HELD_PAINTING)
        else:
            for at in (0.0, 1.0):
                add(_fitted(read_image(path), STYLE_SIZE, at), PAINTING)
    names = list(styles.PALETTES)
    for k, (style, colours) in enumerate(styles.STYLES):
        for variant, shown in enumerate((colours, names[(5 * k + 3) % len(names)])):
            add(styles.drawn(style, shown, seed=variant, size=STYLE_SIZE[0]), PROCEDURAL)
    return {
        "bytes": np.concatenate(files),
        "sizes": np.array([len(f) for f in files]),
        "groups": np.array(groups),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--shared", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--streets", type=int, default=76)
    options = parser.parse_args()
    packed = pack(options.shared, options.streets)
    np.savez(options.out, **packed)
    for group in range(6):
        print(
            group,
            int((packed["groups"] == group).sum()),
            int(packed["sizes"][packed["groups"] == group].sum()),
        )


if __name__ == "__main__":
    main()
