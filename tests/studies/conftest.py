"""Runs to study."""

from results.conftest import make as make
