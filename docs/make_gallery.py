"""Write docs/gallery.jpg: the corruptions of imagenet-c on a street of the built-in world.

python docs/make_gallery.py
"""

from __future__ import annotations

from pathlib import Path

import PIL.Image

from stormproof import open_dataset
from stormproof.corruptions import find_suite
from stormproof.tools.gallery import Sheet, rows_of, tiles

WIDTH = 220


def main() -> None:
    scene = open_dataset("world:val,size=768x480")[7].image
    rows = rows_of(find_suite("imagenet-c").conditions)
    sheet = Sheet(rows, (round(WIDTH * scene.shape[0] / scene.shape[1]), WIDTH))
    for tile in tiles(scene, rows, seed=0, width=WIDTH):
        sheet.paste(*tile)
    PIL.Image.fromarray(sheet.image()).save(Path(__file__).with_name("gallery.jpg"), quality=85)


if __name__ == "__main__":
    main()
