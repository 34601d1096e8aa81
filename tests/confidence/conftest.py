"""Runs to resample."""

from scoring.conftest import make as make
