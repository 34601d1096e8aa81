"""The examples in the docstrings of metrics and aggregates are correct.

They run on the modules as installed: collected from their files they would be imported under another
name, and Numba would keep that name in its cache.
"""

from __future__ import annotations

import doctest
from importlib import import_module
from pkgutil import iter_modules

import pytest

import stormproof.metrics

MODULES = [f"stormproof.metrics.{module.name}" for module in iter_modules(stormproof.metrics.__path__)]


@pytest.mark.parametrize("name", MODULES)
def test_examples_of_docstrings_are_correct(name):
    assert doctest.testmod(import_module(name)).failed == 0
