"""A detector of photographs and one of the street, both tested on both, under camera faults (*liu*, Table 4).

    python studies/camera/photographs.py --models DIR --coco instances.json --images DIR --runs DIR

Runs a detector of COCO and one of the street on the photographs that show a class of both, and on scenes of
`world:test`, and keeps the scores beside this script; study.py makes the table. A stopped run continues.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import stormproof as sp

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent))
import storms

TRAINED = {"yolox-nano": "photographs", "street-grid": "the street"}
TESTED = {"photographs": "photographs", "street": "the street"}
FAULTS = "camera@3"
SCENES = 48  # of each set
SHARED = ("person", "bicycle", "car", "bus", "truck", "traffic light", "stop sign")  # the street's classes
MEASURES = ("E", "AP")


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
    parser.add_argument("--models", type=Path, required=True, help="the folder of yolox_nano_416_coco.onnx")
    parser.add_argument("--coco", type=Path, required=True, help="annotations of photographs")
    parser.add_argument("--images", type=Path, required=True)
    parser.add_argument("--runs", type=Path, required=True, help="where the runs go")
    parser.add_argument(
        "--scenes", type=int, default=SCENES, help="of the street, and at most of photographs"
    )
    parser.add_argument("--out", type=Path, default=HERE, help="where the scores go")
    options = parser.parse_args()
    options.runs.mkdir(parents=True, exist_ok=True)
    shown = with_shared_classes(options.coco, options.runs / "shown.json")
    models = {
        "yolox-nano": f"onnx:{options.models / 'yolox_nano_416_coco'}.onnx",
        "street-grid": "builtin:street-grid",
    }
    sets = {"photographs": f"coco:{shown},images={options.images}", "street": "world:test"}
    for tested, data in sets.items():
        runs = {
            name: sp.run(
                model, data, conditions=FAULTS, limit=options.scenes, out=options.runs / tested / name
            )
            for name, model in models.items()
        }
        scores = {name: run.score(classes=SHARED, interval=True) for name, run in runs.items()}
        storms.write(options.out / f"{tested}.npz", scores, MEASURES)


if __name__ == "__main__":
    main()
