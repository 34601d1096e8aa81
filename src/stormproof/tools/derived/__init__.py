"""Datasets made of other datasets: stylized copies and training sets, as folders that any trainer reads."""
