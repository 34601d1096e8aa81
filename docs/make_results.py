"""Write docs/results/: real networks on photographs and scenes, under the papers' conditions.

make results

Needs the networks and photographs under ../shared. Runs go to runs/results and continue where they were;
those that older recipes made begin again. Every page names the versions that its numbers rest on, and
tests/test_results_pages.py fails when one of them is not the package's.
"""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from results_pages import imagenet_c, kamann, leaderboard, liu, pezzementi, runs

PAGES = {"README": imagenet_c, "kamann": kamann, "liu": liu, "pezzementi": pezzementi}


def main() -> None:
    runs.RESULTS.mkdir(exist_ok=True)
    runs.shell(pezzementi.DEPTH)  # which keeps the maps that are there
    for name, made in PAGES.items():
        for run in made.RUNS:
            run.make()
        (runs.RESULTS / f"{name}.md").write_text(made.page(), encoding="utf-8")
    imagenet_c.keep_cells()
    leaderboard.keep_entries()


if __name__ == "__main__":
    main()
