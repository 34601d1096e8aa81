"""How sure a number is: intervals, differences, breaking points, estimates from part of a grid, verdicts.

- `weights`: bootstrap weights by identity
- `matching`, `precision`, `maps`, `rates`: scores of weighted images
- `resample`: a run folder as replicates; `grids`: aggregates by replicate
- `interval`, `intervals`: what replicates say of one run, and of the difference between two
"""
