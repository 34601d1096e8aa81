"""How long intervals take: 200 replicates of a COCO-sized grid, all twelve numbers and every class.

    python benchmarks/confidence.py            76 conditions × 5,000 images, 500,000 detections each
    python benchmarks/confidence.py --quick    a tenth of the images and 4 conditions, to see that it runs

Every condition is matched once and weighted 200 times. The matching is in the figure; reading a run folder
is not. Bars: 150 s on two cores and 2 GB; the time on two idle cores follows from CPU seconds, so that a busy
machine tells the same.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time

import numpy as np

from metrics import CONDITIONS, made_up_set
from stormproof.metrics.coco import coco_scored
from stormproof.metrics.cocomatching import match_boxes
from stormproof.results.weights import poisson_weights

REPLICATES = 200
SECONDS, GIGABYTES = 150, 2.0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    quick = parser.parse_args().quick
    small, said = made_up_set(100)
    coco_scored(match_boxes(small, said), poisson_weights(small.ids, replicates=2))  # compiles
    truth, found = made_up_set(10 if quick else 1)
    conditions = 4 if quick else CONDITIONS
    wall, cpu = time.perf_counter(), time.process_time()
    weights = poisson_weights(truth.ids, replicates=REPLICATES)
    matching, ap = 0.0, np.zeros(0)
    for _ in range(conditions):
        start = time.process_time()
        matched = match_boxes(truth, found)
        matching += time.process_time() - start
        ap = coco_scored(matched, weights).numbers["AP"]
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    two_cores = matching + (cpu - matching) / 2  # matching is one thread's work, replicates are shared out
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"{conditions} conditions × {len(truth.ids)} images, {len(found)} detections, {REPLICATES} replicates"
    )
    print(f"CPU {cpu:.1f} s ({matching:.1f} s of it matching), wall {wall:.1f} s, peak {gigabytes:.2f} GB")
    print(f"Two idle cores would take {two_cores:.0f} s.")
    print(f"AP {100 * ap.mean():.2f} with a standard error of {100 * ap.std(ddof=1):.2f} points")
    missed = two_cores > SECONDS or gigabytes > GIGABYTES
    print(f"Bars: {SECONDS} s on two cores and {GIGABYTES} GB: {'missed' if missed else 'met'}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
