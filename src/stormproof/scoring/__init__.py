"""Scores of a run: every metric that fits what the model said and what the dataset knows.

- `reading`: a run's rows as flat arrays, a few conditions at a time
- `truths`: what the dataset says, moved where a condition moves it
- `measures`: the numbers of one condition, by what is measured
- `aggregates`: the papers' conclusions from all conditions
- `score`: all of it together, and `tables`: printed, as JSON and as CSV
"""
