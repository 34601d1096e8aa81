"""Renew the table of decoder options in docs/models.md: `python docs/make_decoders.py`."""

from __future__ import annotations

from pathlib import Path

from parts import write_part

from stormproof.core.spec import keyword_options
from stormproof.models.decoders import DECODERS, option_words

PAGE = Path(__file__).parent / "models.md"
PART = "decoder options"


def table() -> str:
    rows = ["| option | says | decoders, with their defaults |", "|---|---|---|"]
    for option, words in option_words().items():
        taken = {
            name: options[option].default
            for name, decoder in DECODERS.items()
            if option in (options := keyword_options(decoder.function))
        }
        rows.append(f"| `{option}` | {words} | {', '.join(f'`{n}` {_yaml(v)}' for n, v in taken.items())} |")
    return "\n".join(rows)


def _yaml(value: object) -> str:
    """A default as a card would write it."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(list(value)) if isinstance(value, tuple) else str(value)


if __name__ == "__main__":
    write_part(PAGE, PART, table())
