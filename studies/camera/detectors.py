"""The detectors of this study, and their runs under the camera faults at severity 3, plain and with remedies.

    python studies/camera/detectors.py --models DIR --coco instances.json --images DIR --runs DIR

A stopped run continues. The scores are kept beside this script; study.py makes the tables.
"""

from __future__ import annotations

import argparse
import json
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import stormproof as sp
from stormproof.core.sample import Image
from stormproof.models.enhance import ENHANCEMENTS

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path += [str(HERE.parent), str(ROOT)]
import storms

if TYPE_CHECKING:
    from training.stylizing import Restyled

FAULTS = "camera@3"
MEASURES = ("E", "AP")
SHARED = ("person", "bicycle", "car", "bus", "truck", "traffic light", "stop sign")  # the street's classes
PLAIN, ABROAD = "street-grid", "yolox-nano"  # each is tested on both sets
OF_STREET = (PLAIN, "street-masks", "street-centre", "street-grid-combined", "street-grid-stylized")
OF_PHOTOGRAPHS = {  # and their files
    ABROAD: "yolox_nano_416_coco",
    "ssdlite": "ssdlite_mobilenetv2_300_coco_w16",
    "nanodet-m": "nanodet_m_416_coco",
    "yolo-fastest": "yolo_fastest_1.1_xl_320_coco",
    "fastestdet": "fastestdet_352_coco",
}


class Tested(NamedTuple):
    """So many images of a dataset, and the detectors that see them: NAME, or NAME+REMEDY."""

    data: str
    images: int
    detectors: tuple[str, ...]


SETS = {
    "photographs": Tested("coco:{shown},images={images}", 48, (*OF_PHOTOGRAPHS, PLAIN)),
    "street": Tested(
        "world:test", 60,
        (*OF_STREET, ABROAD, f"{PLAIN}+clahe", f"{PLAIN}+nlm", f"{PLAIN}+nlm[h=20]"),
    ),
    "painted": Tested("world:test", 24, (PLAIN, f"{PLAIN}+restyled")),  # it takes a second an image
}  # fmt: skip


def restyled(image: Image) -> Image:
    """Painted in the look of clean scenes, as `training.storm` does it."""
    import torch

    painted: Image = _painter()(torch.from_numpy(image)[None])[0].numpy()
    return painted


@cache
def _painter() -> Restyled:
    import torch

    from training.stylizing import Restyled

    return Restyled(torch.device("cpu"))


def with_shared_classes(annotations: Path, out: Path) -> Path:
    """Annotations of the photographs that show an object of the shared classes: others have no E."""
    held = json.loads(annotations.read_text(encoding="utf-8"))
    chosen = {category["id"] for category in held["categories"] if category["name"] in SHARED}
    shown = {one["image_id"] for one in held["annotations"] if one["category_id"] in chosen}
    held["images"] = [image for image in held["images"] if image["id"] in shown]
    held["annotations"] = [one for one in held["annotations"] if one["image_id"] in shown]
    out.write_text(json.dumps(held), encoding="utf-8")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--models", type=Path, required=True, help="the folder of the photographs' detectors")
    parser.add_argument("--coco", type=Path, required=True, help="annotations of photographs")
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    ENHANCEMENTS.add("restyled", restyled, module=__name__)
    places = {
        "shown": with_shared_classes(options.coco, options.runs / "shown.json"),
        "images": options.images,
    }
    models = {name: f"builtin:{name}" for name in OF_STREET}
    for name, file in OF_PHOTOGRAPHS.items():
        card = ROOT / "tests" / "models" / "cards" / f"{file}.yaml"
        models[name] = f"onnx:{options.models / file}.onnx,card={card}"
    for tested, (data, images, detectors) in SETS.items():
        scores = {}
        for label in detectors:
            name, _, remedy = label.partition("+")
            run = sp.run(
                models[name], data.format(**places), conditions=FAULTS, limit=images,
                out=options.runs / tested / label, enhance=[remedy] if remedy else [],
                engine="local" if remedy == "restyled" else "pool",  # which other processes do not know
            )  # fmt: skip
            scores[label] = run.score(classes=SHARED, interval=True)
        storms.write(HERE / f"{tested}.npz", scores, MEASURES)


if __name__ == "__main__":
    main()
