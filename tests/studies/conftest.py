"""Runs to study."""

from scoring.conftest import make as make
