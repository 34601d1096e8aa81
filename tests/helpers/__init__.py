"""What several tests share: small datasets, models, runs, processes, oracles. No test stands here.

`pyproject.toml` puts the folder `tests` on the path, so tests write `from helpers.scenes import write_scene`.
Fixtures stay in the `conftest.py` of the folder that uses them; `programs/` holds what `make` runs by itself.
"""
