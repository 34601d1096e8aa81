"""The file that a model spec names."""

from __future__ import annotations

from pathlib import Path

from stormproof.core.errors import ModelError
from stormproof.core.files import locate


def model_file(text: str, purpose: str) -> Path:
    """The file `text`, which must exist; a near name is suggested where it does not."""
    path = locate(text, error=ModelError)
    if not path.is_file():
        raise ModelError(f"{path} is a folder; {purpose} is a file.")
    return path
