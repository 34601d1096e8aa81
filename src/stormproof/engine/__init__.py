"""The engine: from settings to part files.

- `config`: the settings of a run, declared once; `many`: a plan of several runs
- `plan`: the conditions and images of a run, and the chunks that are left to do
- `pair`: the model and the dataset, opened and tried out
- `work`, `chunk`, `cells`: what a worker gets, does and writes; `stages`: decode, corrupt, predict, encode
- `checks`, `failures`, `liveness`: what is refused before a run, a cell without a prediction, a worker's death
- `executors`: in this process, a process pool, Ray, Slurm; each runs chunks and yields their results
- `run`: a run from plan to parts, or to a precision; `api`: the same from Python
- `progress`, `trackers`: displays and services that follow a run
"""

import os

# Arrow's own allocator keeps tens of megabytes that a worker, which writes little at a time, never needs.
# The choice is made when Arrow is imported, so it is set here, before anything imports Arrow.
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
