"""Scores exported networks on clean `world:test` with an ordinary run, and saves the scores beside each."""

from __future__ import annotations

import json
from pathlib import Path

from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.results.run import Run

# The measures that are saved, for networks that have them.
MEASURES = ("AP", "AP50", "mask AP", "mask AP50", "mIoU")


def score(network: Path, scenes: int, scratch: Path) -> dict[str, float]:
    """Run NAME.onnx on clean scenes and add its scores to NAME.json; the run goes to `scratch`."""
    out = scratch / f"{network.stem}-{scenes}"
    settings = {"model": f"onnx:{network}", "data": "world:test", "limit": scenes, "conditions": "clean"}
    run(make_config({**settings, "out": str(out)}))
    found = Run(out).score().per_condition
    scores = {name: round(found[name]["clean"], 4) for name in MEASURES if name in found}
    log = network.with_suffix(".json")
    clean = {"data": "world:test", "images": scenes, "scores": scores}
    log.write_text(json.dumps(json.loads(log.read_text()) | {"clean": clean}, indent=1) + "\n")
    return scores
