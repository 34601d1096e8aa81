"""Leaf: a model in the storm, live: a page served on this machine that is asked instead of read."""
