"""Metadata of datasets and models, and the base class of wrappers that delegate it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Protocol

_DELEGATED = ("attributes", "category_ids", "depth_remark", "frames", "groups", "things", "thread_safe")
_BY_IMAGE = ("federated",)  # tables with a row for each image


class Described(Protocol):
    """`classes` name the labels of objects, `semantic_classes` the values of semantic maps; either may be
    empty. `fingerprint` is a hash of everything that decides the truth or the predictions."""

    @property
    def name(self) -> str: ...
    @property
    def classes(self) -> tuple[str, ...]: ...
    @property
    def semantic_classes(self) -> tuple[str, ...]: ...
    @property
    def fingerprint(self) -> str: ...


class Wrapper(ABC):
    """Base class for wrappers: delegates metadata to the wrapped object."""

    @property
    @abstractmethod
    def _inner(self) -> Described: ...

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def classes(self) -> tuple[str, ...]:
        return self._inner.classes

    @property
    def semantic_classes(self) -> tuple[str, ...]:
        return self._inner.semantic_classes

    @property
    def fingerprint(self) -> str:
        return self._inner.fingerprint

    def __getattr__(self, name: str) -> Any:
        """Abilities of the wrapped dataset (`datasets.dataset.Abilities`) that need no index, or have a row
        for each image; a wrapper that leaves images out has the indices of the others in `kept`."""
        if name not in (*_DELEGATED, *_BY_IMAGE):
            raise AttributeError(name)
        value, kept = getattr(self._inner, name), self.__dict__.get("kept")
        return value if name in _DELEGATED or value is None or kept is None else value.of_images(list(kept))
