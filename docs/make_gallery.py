"""Write docs/gallery.jpg: the corruptions of imagenet-c on a street of the built-in world.

python docs/make_gallery.py
"""

from __future__ import annotations

from pathlib import Path

import PIL.Image

from stormproof import open_dataset
from stormproof.corruptions import find_suite
from stormproof.gallery import Sheet, tiles

WIDTH = 220


def main() -> None:
    scene = open_dataset("world:val,size=768x480")[7].image
    names = find_suite("imagenet-c").corruptions
    sheet = Sheet(names, (round(WIDTH * scene.shape[0] / scene.shape[1]), WIDTH))
    for row, column, tile in tiles(scene, names, seed=0, width=WIDTH):
        sheet.paste(row, column, tile)
    PIL.Image.fromarray(sheet.image()).save(Path(__file__).with_name("gallery.jpg"), quality=85)


if __name__ == "__main__":
    main()
