"""The engine: from settings to part files.

- `config`: the settings of a run, declared once; `many`: a plan of several runs
- `plan`: which conditions and images that is, and which chunks are left to do
- `pair`: the model and the dataset, opened and tried out
- `work`, `chunk`, `cells`, `guard`, `on_device`: what a worker gets, does, predicts and writes
- `crash_notes`: how a worker's death or silence is explained
- `executors`: in this process, a process pool, Ray, Slurm; each runs chunks and yields their results
- `run`, `precision`: a run from plan to parts; `api`: the same from Python
- `progress`, `trackers`: who is told
"""

import os

# Arrow's own allocator keeps tens of megabytes that a worker, which writes little at a time, never needs.
# It is chosen once, when Arrow is imported, so this comes before anything that imports it.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
