"""Datasets made from other datasets: corrupted and stylized copies, and training sets."""
