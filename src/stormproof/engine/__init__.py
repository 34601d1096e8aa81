"""The engine: from settings to part files.

- `config`: the settings of a run, declared once; `many`: a plan of several runs
- `plan`: the conditions and images of a run, and the chunks that are left to do
- `pair`: the model and the dataset, opened and tried out
- `work`, `chunk`, `cells`: what a worker gets, does and writes; `stages`: decode, corrupt, predict, encode
- `checks`, `failures`, `liveness`: refusals before a run, cells without a prediction, deaths of workers
- `executors`: in this process, a process pool, Ray, Slurm; each runs chunks and yields their results
- `feeding`: processes that read and corrupt images for the one that holds the model
- `run`: a run from plan to parts, or to a precision; `api`: the same from Python
- `progress`, `trackers`: displays and services that follow a run
"""

import os

# Arrow's own allocator keeps tens of megabytes that a worker, which writes little at a time, never needs.
# The choice is made when Arrow is imported, so it is set here, before anything imports Arrow.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
