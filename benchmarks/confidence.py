"""How long intervals take: 200 replicates of a COCO-sized grid, all six AP and every class.

    python benchmarks/confidence.py            76 conditions × 5,000 images, 500,000 detections each
    python benchmarks/confidence.py --quick    a tenth of the images and 4 conditions, to see that it runs

Every condition is matched once and weighted 200 times. The matching is in the figure; reading a run folder
is not. Bars: 150 s on two cores, so 300 CPU seconds, and 2 GB.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

from metrics import CONDITIONS, made_up_set
from stormproof.confidence.matching import match_boxes
from stormproof.confidence.precision import coco_numbers, curves
from stormproof.confidence.weights import poisson_weights

REPLICATES = 200
CPU_SECONDS, GIGABYTES = 300, 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    small, said = made_up_set(100)
    coco_numbers(curves(match_boxes(small, said)), poisson_weights(small.ids, replicates=2))  # compiles
    truth, found = made_up_set(10 if quick else 1)
    conditions = 4 if quick else CONDITIONS
    wall, cpu = time.perf_counter(), time.process_time()
    weights = poisson_weights(truth.ids, replicates=REPLICATES)
    kept = [coco_numbers(curves(match_boxes(truth, found)), weights) for _ in range(conditions)]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    ap = kept[0][0]["AP"]
    print(
        f"{conditions} conditions × {len(truth.ids)} images, {len(found)} detections, {REPLICATES} replicates"
    )
    print(f"CPU {cpu:.1f} s, wall {wall:.1f} s, peak memory {gigabytes:.2f} GB")
    print(f"AP {100 * ap.mean():.2f} with a standard error of {100 * ap.std(ddof=1):.2f} points")
    missed = not quick and (cpu > CPU_SECONDS or gigabytes > GIGABYTES)
    print(f"Bars: {CPU_SECONDS} CPU s and {GIGABYTES} GB: {'missed' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
