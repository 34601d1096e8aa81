"""Datasets: one file per format, opened by a spec string."""

from __future__ import annotations

from importlib.metadata import entry_points
from typing import cast

from stormproof.datasets.dataset import Dataset
from stormproof.datasets.spec import Spec, call, load_attribute
from stormproof.errors import InvalidOption, UnknownName

# kind → where its opener lives; loaded only when named.
READERS: dict[str, str] = {
    "world": "stormproof.datasets.world:open_world",
}


def open_dataset(text: str) -> Dataset:
    """Open the dataset that a spec string names.

    Kinds are the built-in readers, then those other packages offer in the entry point group
    `stormproof.datasets`; `package.module:attribute` names a dataset, or a function that makes one.
    """
    spec = Spec.parse(text)
    plugins = {point.name: point for point in entry_points(group="stormproof.datasets")}
    if spec.kind in READERS:
        opener = load_attribute(READERS[spec.kind])
    elif spec.kind in plugins:
        opener = plugins[spec.kind].load()
    elif "." in spec.kind:
        found = load_attribute(f"{spec.kind}:{spec.main}")
        dataset = found() if callable(found) else found
        if not isinstance(dataset, Dataset):
            raise InvalidOption(
                f"{text!r} is a {type(dataset).__name__}, which lacks some members of a Dataset."
            )
        return dataset
    else:
        raise UnknownName("kind of dataset", spec.kind, [*READERS, *plugins], f"Kinds: {', '.join(READERS)}.")
    return cast(Dataset, call(opener, spec))
