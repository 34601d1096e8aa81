"""Write docs/style-sheet.jpg: six streets in four of our own styles, α 0, 0.3, 0.6 and 1, in three modes.

python docs/make_style.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import PIL.Image
import PIL.ImageDraw

from stormproof.corruptions.needs import BACKGROUND, OBJECTS, part_mask
from stormproof.datasets import read_dataset
from stormproof.style.painting import stylize
from stormproof.style.sources import list_styles

SCENES = (3, 7, 12, 21, 34, 55)
CHOSEN = ("swirl.jpg", "mosaic.jpg", "dabs.jpg", "woodcut.jpg")
ALPHAS = (0.0, 0.3, 0.6, 1.0)
MODES = ("image", OBJECTS, BACKGROUND)
TILE = (96, 60)  # width, height
HEAD = 44
QUALITY = 52


def main() -> None:
    dataset, styles = read_dataset("world:val,size=384x240"), list_styles()
    width, height = len(CHOSEN) * len(ALPHAS) * TILE[0], HEAD + len(SCENES) * len(MODES) * TILE[1]
    sheet = PIL.Image.new("RGB", (width, height), "white")
    pen = PIL.ImageDraw.Draw(sheet)
    for s, name in enumerate(CHOSEN):
        left = s * len(ALPHAS) * TILE[0]
        look = PIL.Image.open(styles[name]).crop((0, 0, 320, 192)).resize((48, 28))
        sheet.paste(look, (left + 2, 1))
        pen.text((left + 56, 8), name.removesuffix(".jpg"), "black")
        for a, alpha in enumerate(ALPHAS):
            pen.text((left + a * TILE[0] + 26, HEAD - 13), f"alpha {alpha:g}", "black")
    for i, index in enumerate(SCENES):
        sample = dataset[index]
        for s, name in enumerate(CHOSEN):
            for a, alpha in enumerate(ALPHAS):
                painted = stylize(sample.image, styles[name], alpha=alpha)
                for m, mode in enumerate(MODES):
                    shown = painted
                    if mode != "image":
                        mask = part_mask(sample, mode, classes=dataset.classes)
                        shown = np.where(mask[..., None], painted, sample.image)
                    tile = PIL.Image.fromarray(shown).resize(TILE, PIL.Image.Resampling.LANCZOS)
                    at = (s * len(ALPHAS) + a) * TILE[0], HEAD + (i * len(MODES) + m) * TILE[1]
                    sheet.paste(tile, at)
    sheet.save(Path(__file__).with_name("style-sheet.jpg"), quality=QUALITY, optimize=True)


if __name__ == "__main__":
    main()
