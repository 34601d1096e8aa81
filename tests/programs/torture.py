"""Torture of the store: bits flipped in run folders, and processes killed at random moments.

    python tests/programs/torture.py flips --count 10000 --seed 1
    python tests/programs/torture.py flips --kept --count 2000 --seed 1
    python tests/programs/torture.py kills --engine pool --count 400 --seed 1

Everything follows from the seed but the moment a kill lands. A flip survives if the score is what it was, or
the run is refused in our own words; `--kept` flips what scores, intervals, estimates and failures are kept
in, and reads them as a report does. A kill survives if the folder, after the same command again, ends in the
bytes of an undisturbed one and holds nothing else. `--engine` says where a run is killed, or which other
command is: corrupt, a plan of runs, score, report, figures, export, stylize.
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

sys.path.insert(0, str(Path(__file__).parents[1]))

from helpers import scored_models
from helpers.fake_models import MODELS
from helpers.kills import ENGINES, kills
from helpers.scenes import write_scene, write_street
from stormproof.core.errors import StormproofError
from stormproof.engine.config import make_config
from stormproof.engine.run import run

SCORED = scored_models.MODELS
_REPLICATES = 50


def make_runs(folder: Path) -> list[Path]:
    """Small runs of boxes, masks and label maps."""
    scene, street = write_scene(folder / "scene", images=6), write_street(folder / "street", images=4)
    for name, model, data in (("boxes", "brightness_boxes", scene), ("masks", "brightness_masks", scene),
                              ("maps", "thresholds", street)):  # fmt: skip
        settings = {"model": f"{MODELS}:{model}", "data": data, "conditions": ["fog@2"], "engine": "local",
                    "chunk": 2, "out": str(folder / name)}  # fmt: skip
        run(make_config(settings))
    return [folder / name for name in ("boxes", "masks", "maps")]


def make_kept(folder: Path) -> list[Path]:
    """Small runs with all that is kept for a report: scores, intervals, an estimate, an unreadable image."""
    from stormproof.engine.executors import executor_for
    from stormproof.engine.plan import make_plan
    from stormproof.engine.run import execute
    from stormproof.results.estimate import estimate_run
    from stormproof.results.run import Run

    scene, street = write_scene(folder / "scene", images=6), write_street(folder / "street", images=4)
    (folder / "scene" / "images" / "003.png").write_bytes(b"no image")
    for name, model, data, quota in (("boxes", f"{SCORED}:contrast_boxes", scene, None),
                                     ("maps", f"{MODELS}:thresholds", street, None),
                                     ("part", f"{SCORED}:contrast_boxes", scene, 3)):  # fmt: skip
        settings = {"model": model, "data": data, "conditions": ["fog@2", "contrast@2"],
                    "engine": "local", "chunk": 2, "out": str(folder / name)}  # fmt: skip
        plan = make_plan(make_config(settings), quota=quota)
        execute(plan, executor_for(plan.config, len(plan.chunks)))
        if quota is not None:
            estimate_run(Run(folder / name), replicates=_REPLICATES)
        reported(folder / name)  # which keeps the scores
    return [folder / name for name in ("boxes", "maps", "part")]


def reported(folder: Path) -> str:
    """Every number that a report reads of a run, as one string."""
    from stormproof.results.documents import as_dict, document
    from stormproof.results.estimate import read_estimate
    from stormproof.results.run import Run

    run = Run(folder)
    scores = run.score(partial=True, replicates=_REPLICATES)
    errors = scores.image_errors
    assert errors is not None
    by_image = {text: values.tolist() for text, values in errors.by_condition.items()}
    return repr((document(as_dict(scores)), errors.ids, by_image, run.failures, read_estimate(run)))


def scored(folder: Path) -> str:
    """Every number that follows from a run, as one string."""
    from stormproof.results.documents import as_dict, document
    from stormproof.results.run import Run

    return document(as_dict(Run(folder).score()))


def flips(count: int, seed: int, folder: Path, *, kept: bool = False) -> Iterator[tuple[str, str]]:
    """Flip single bits over all files of runs; yields what came of each, and where it was.

    `kept`: over those files alone that a report reads, each as often as the others.
    """
    rng = random.Random(seed)
    runs, told = (make_kept(folder), reported) if kept else (make_runs(folder), scored)
    right = {place: told(place) for place in runs}
    files = [(place, path) for place in runs for path in sorted(place.rglob("*"))
             if path.is_file() and not path.name.startswith(".") and _is_kept(path) >= kept]  # fmt: skip
    weights = [1 if kept else path.stat().st_size for _, path in files]
    for _ in range(count):
        ((place, path),) = rng.choices(files, weights)
        content = path.read_bytes()
        at, bit = rng.randrange(len(content)), rng.randrange(8)
        path.write_bytes(content[:at] + bytes([content[at] ^ 1 << bit]) + content[at + 1 :])
        where = f"{path.relative_to(folder)} byte {at} bit {bit}"
        try:
            yield ("same score" if told(place) == right[place] else "WRONG SCORE"), where
        except StormproofError as error:
            yield ("refused" if path.name in str(error) else "refused without the file's name"), where
        except Exception as error:
            yield f"RAW ERROR {type(error).__name__}", where
        finally:
            path.write_bytes(content)


def _is_kept(path: Path) -> bool:
    return path.name == "estimate.json" or path.parent.name in ("scores", "failures")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("flips", "kills"))
    parser.add_argument("--engine", default="pool", choices=ENGINES)
    parser.add_argument("--fresh", action="store_true", help="start killed processes as new interpreters")
    parser.add_argument("--kept", action="store_true", help="flip what is kept for reports")
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    told: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        results = (
            flips(asked.count, asked.seed, folder, kept=asked.kept)
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
