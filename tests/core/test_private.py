"""Passwords and keys in addresses are left out, whatever stands beside them."""

from __future__ import annotations

import pytest

from stormproof.core.private import without_secrets


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("http://h/p?a=${A}&b=${B},timeout=5", "http://h/p?a=${A}&b=${B},timeout=5"),
        ("http://h/p?${KEY}", "http://h/p?${KEY}"),
        ("http://me:${PASSWORD}@h/p", "http://me:${PASSWORD}@h/p"),
        ("http://${TOKEN}@h/p", "http://${TOKEN}@h/p"),
        ("http://h/p?model=${M}&api_key=k3y", "http://h/p"),
        ("http://h/p?api_key=k3y&model=${M}", "http://h/p"),
        ("http://h/p?api_key=k3y${M}", "http://h/p"),
        ("http://h/p?key=${M}#k3y", "http://h/p"),
        ("http://${NAME}:pa55word@h/p", "http://h/p"),
        ("http://pa55word${NAME}@h/p", "http://h/p"),
    ],
)
def test_an_address_keeps_environment_variables_and_no_secrets(given: str, shown: str) -> None:
    assert without_secrets(given) == shown


def test_cleaning_a_text_twice_keeps_the_mark_of_its_query() -> None:
    once = without_secrets("http://me:pa55word@h/p?api_key=k3y", mark="?…")
    assert once == without_secrets(once) == "http://h/p?…"
