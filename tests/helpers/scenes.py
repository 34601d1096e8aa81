"""Small datasets of generated images on disk."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import PIL.Image

MARKED = 5  # the image that broken models stumble over while it is clean


def write_scene(folder: Path, images: int = 12, size: tuple[int, int] = (48, 64)) -> str:
    """Images with two boxes each and a COCO file; returns the spec that opens them."""
    (folder / "images").mkdir(parents=True)
    rng = np.random.default_rng(7)
    height, width = size
    records, annotations = [], []
    for i in range(images):
        pixels = rng.integers(0, 255, (height // 8, width // 8, 3), np.uint8)
        pixels = np.asarray(PIL.Image.fromarray(pixels).resize((width, height)))
        pixels = pixels.copy()
        pixels[0, 0] = (255, 0, 0) if i == MARKED else (10, 20, 30)
        PIL.Image.fromarray(pixels).save(folder / "images" / f"{i:03d}.png")
        records.append({"id": i + 1, "file_name": f"{i:03d}.png", "height": height, "width": width})
        for k in range(2):
            x, y = (int(v) for v in rng.integers(0, 20, 2))
            annotations.append(
                {
                    "id": 2 * i + k + 1,
                    "image_id": i + 1,
                    "category_id": k + 1,
                    "iscrowd": 0,
                    "bbox": [x, y, 20, 20],
                    "area": 400,
                    "segmentation": [[x, y, x + 20, y, x + 20, y + 20, x, y + 20]],
                }
            )
    content = {
        "images": records,
        "annotations": annotations,
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }
    (folder / "instances.json").write_text(json.dumps(content))
    return f"coco:{folder / 'instances.json'},images={folder / 'images'}"


def write_street(folder: Path, images: int = 6) -> str:
    """Images with label maps of three classes in CamVid's layout."""
    (folder / "images").mkdir(parents=True)
    (folder / "labels").mkdir()
    rng = np.random.default_rng(3)
    for i in range(images):
        grey = np.asarray(PIL.Image.fromarray(rng.integers(0, 255, (6, 8), np.uint8)).resize((64, 48)))
        PIL.Image.fromarray(np.repeat(grey[..., None], 3, axis=2)).save(folder / "images" / f"{i:03d}.png")
        PIL.Image.fromarray((grey // 86).astype(np.uint8)).save(folder / "labels" / f"{i:03d}.png")
    names = {"classes": {"0": "dark", "1": "grey", "2": "bright"}, "ignore_index": 11}
    (folder / "classes.json").write_text(json.dumps(names))
    return f"camvid:{folder}"
