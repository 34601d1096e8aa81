"""The engine: plan, chunks, part files.

- `config`: what a run is asked to do, from flags or `run.yaml`; `presets`: the papers' benchmarks as data
- `conditions`: which conditions that is
- `plan`: which chunks of images are still to do
- `work`, `pair`, `cells`, `chunk`: what a worker gets, opens, asks and writes
- `in_hand`, `retry`: what a worker was at when it died, and what is tried next
- `executors`: in-process, process pool, Ray, Slurm; each runs chunks and yields their results
- `run`: all of it together
"""

import os

# Arrow's own allocator keeps tens of megabytes that a worker, which writes a little at a time, never
# needs. It is chosen once, when Arrow is imported, so this stands before anything that imports it.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
