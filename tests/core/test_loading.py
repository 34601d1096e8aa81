"""Errors about frameworks that are missing or broken."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stormproof.core.errors import InvalidOption, MissingExtra, StormproofError
from stormproof.core.loading import framework


@pytest.mark.parametrize(
    ("content", "error", "said"),
    [
        ("import lamps_and_wires.none", InvalidOption, "is installed but .* 'lamps_and_wires'"),
        ("import lamp", InvalidOption, "lampshade is installed but .* 'lamp'"),  # a name that begins its own
        ("from os import no_such_name", InvalidOption, "is installed but .* 'no_such_name'"),
        (None, MissingExtra, "lampshade is not installed; install it with: pip install lampshade"),
    ],
)
def test_says_whether_a_framework_or_what_it_needs_is_missing(
    content: str | None, error: type[StormproofError], said: str, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    if content is not None:
        (tmp_path / "lampshade.py").write_text(content)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(error, match=said) as raised:
        framework("lampshade", install="pip install lampshade")
    assert type(raised.value) is error
    assert "lampshade" not in sys.modules
