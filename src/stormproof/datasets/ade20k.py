"""ADE20K scene parsing: 150 classes, grey PNGs in which 0 means unlabelled."""

from __future__ import annotations

from stormproof.core.files import first_folder, list_files, locate
from stormproof.datasets.annotations import IGNORE, by_stem, map_dataset, split_folder
from stormproof.datasets.dataset import READERS, FileDataset

CLASSES = (
    "wall", "building", "sky", "floor", "tree", "ceiling", "road", "bed", "windowpane", "grass", "cabinet",
    "sidewalk", "person", "earth", "door", "table", "mountain", "plant", "curtain", "chair", "car", "water",
    "painting", "sofa", "shelf", "house", "sea", "mirror", "rug", "field", "armchair", "seat", "fence",
    "desk", "rock", "wardrobe", "lamp", "bathtub", "railing", "cushion", "base", "box", "column", "signboard",
    "chest of drawers", "counter", "sand", "sink", "skyscraper", "fireplace", "refrigerator", "grandstand",
    "path", "stairs", "runway", "case", "pool table", "pillow", "screen door", "stairway", "river", "bridge",
    "bookcase", "blind", "coffee table", "toilet", "flower", "book", "hill", "bench", "countertop", "stove",
    "palm", "kitchen island", "computer", "swivel chair", "boat", "bar", "arcade machine", "hovel", "bus",
    "towel", "light", "truck", "tower", "chandelier", "awning", "streetlight", "booth", "television receiver",
    "airplane", "dirt track", "apparel", "pole", "land", "bannister", "escalator", "ottoman", "bottle",
    "buffet", "poster", "stage", "van", "ship", "fountain", "conveyer belt", "canopy", "washer", "plaything",
    "swimming pool", "stool", "barrel", "basket", "waterfall", "tent", "bag", "minibike", "cradle", "oven",
    "ball", "food", "step", "tank", "trade name", "microwave", "pot", "animal", "bicycle", "lake",
    "dishwasher", "screen", "blanket", "sculpture", "hood", "sconce", "vase", "traffic light", "tray",
    "ashcan", "fan", "pier", "crt screen", "plate", "monitor", "bulletin board", "shower", "radiator",
    "glass", "clock", "flag",
)  # fmt: skip


@READERS.declare("ade20k")
def open_ade20k(main: str, *, split: str = "validation") -> FileDataset:
    """Open `ADEChallengeData2016`, the 150-class release with `images/` and `annotations/`."""
    root = locate(main)
    images = first_folder([root / "images", root / "ADEChallengeData2016" / "images"], "images")
    annotations = first_folder([images.parent / "annotations"], "label maps")
    where = split_folder(images, split)
    maps = by_stem(list_files(first_folder([annotations / split], "label maps"), {".png"}))
    table = {0: IGNORE, **{i + 1: i for i in range(len(CLASSES))}}
    return map_dataset(f"ade20k-{split}", root, where, maps, table, CLASSES)
