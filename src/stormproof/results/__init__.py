"""A run folder and everything derived from it: predictions, scores, intervals, verdicts."""
