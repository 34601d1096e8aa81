"""Torture of the store: bits flipped in run folders, and processes killed at random moments.

    python tests/torture.py flips --count 10000 --seed 1
    python tests/torture.py kills --engine pool --count 400 --seed 1

Everything follows from the seed but the moment a kill lands. A flip survives if the score is what it was, or
the run is refused in our own words; a kill survives if the folder, continued, ends in the bytes of an
undisturbed one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from engine.scenes import write_scene, write_street
from kills import ENGINES, MODELS, kills
from stormproof.engine.config import make_config
from stormproof.engine.run import run
from stormproof.errors import StormproofError


def make_runs(folder: Path) -> list[Path]:
    """Small runs of boxes, masks and label maps, with a failed cell in one of them."""
    scene, street = write_scene(folder / "scene", images=6), write_street(folder / "street", images=4)
    for name, model, data in (("boxes", "brightness_boxes", scene), ("masks", "brightness_masks", scene),
                              ("maps", "thresholds", street)):  # fmt: skip
        settings = {"model": f"{MODELS}:{model}", "data": data, "conditions": ["fog@2"], "engine": "local",
                    "chunk": 2, "out": str(folder / name)}  # fmt: skip
        run(make_config(settings))
    return [folder / name for name in ("boxes", "masks", "maps")]


def scored(folder: Path) -> str:
    """Every number that follows from a run, as one string."""
    from stormproof.scoring.score import score_run
    from stormproof.scoring.tables import as_json

    return as_json(score_run(folder))


def flips(count: int, seed: int, folder: Path) -> Iterator[tuple[str, str]]:
    """Flip single bits over all files of runs; yields what came of each, and where it was."""
    rng = random.Random(seed)
    runs = make_runs(folder)
    right = {place: scored(place) for place in runs}
    files = [(place, path) for place in runs for path in sorted(place.rglob("*"))
             if path.is_file() and not path.name.startswith(".")]  # fmt: skip
    sizes = [path.stat().st_size for _, path in files]
    for _ in range(count):
        ((place, path),) = rng.choices(files, sizes)
        content = path.read_bytes()
        at, bit = rng.randrange(len(content)), rng.randrange(8)
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        where = f"{path.relative_to(folder)} byte {at} bit {bit}"
        try:
            yield ("same score" if scored(place) == right[place] else "WRONG SCORE"), where
        except StormproofError as error:
            yield ("refused" if path.name in str(error) else "refused without the file's name"), where
        except Exception as error:
            yield f"RAW ERROR {type(error).__name__}", where
        finally:
            path.write_bytes(content)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("flips", "kills"))
    parser.add_argument("--engine", default="pool", choices=ENGINES)
    parser.add_argument("--fresh", action="store_true", help="start killed processes as new interpreters")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        results = (
            flips(asked.count, asked.seed, folder)
            if asked.what == "flips"
            else kills(asked.engine, asked.count, asked.seed, folder, fresh=asked.fresh)
        )
        for outcome, where in results:
            told[outcome] += 1
            if outcome.isupper() or outcome.split()[0].isupper():
                print(f"{outcome}: {where}", flush=True)
            if told.total() % 100 == 0:
                print(json.dumps(told), flush=True)
    print(f"{told.total()} {asked.what}, seed {asked.seed}: {dict(told)}")
    sys.exit(any(outcome.split()[0].isupper() for outcome in told))


if __name__ == "__main__":
    main()
