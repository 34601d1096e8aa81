"""The clean score of exported networks on `world:test`, by the same engine as any run, kept beside each."""

from __future__ import annotations

import json
from pathlib import Path

from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results.run import Run

# What is told of a network, where it has it.
MEASURES = ("AP", "AP50", "mask AP", "mask AP50", "mIoU")


def score(network: Path, scenes: int, scratch: Path) -> dict[str, float]:
    """Run NAME.onnx on clean scenes and write what it scores into NAME.json; `scratch` holds the run."""
    out = scratch / f"{network.stem}-{scenes}"
    settings = {"model": f"onnx:{network}", "data": "world:test", "limit": scenes, "conditions": "clean"}
    run(make_config({**settings, "out": str(out)}))
    found = Run(out).score().cells
    scores = {name: round(found[name]["clean"], 4) for name in MEASURES if name in found}
    told = network.with_suffix(".json")
    story = json.loads(told.read_text()) | {
        "clean": {"data": "world:test", "images": scenes, "scores": scores}
    }
    told.write_text(json.dumps(story, indent=1) + "\n")
    return scores
