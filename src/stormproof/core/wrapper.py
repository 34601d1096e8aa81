"""Metadata of datasets and models, and the base class of wrappers that delegate it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from stormproof.core.randomness import Frame


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
    def category_ids(self) -> tuple[int, ...]:
        """The ids of the classes in the format's own files, if it has any."""
        return getattr(self._inner, "category_ids", ())

    @property
    def attributes(self) -> Mapping[str, Mapping[str, str]]:
        """Attributes of the images, such as weather or city, by name and image id."""
        return getattr(self._inner, "attributes", {})

    @property
    def frames(self) -> Mapping[str, Frame]:
        """The sequence and time of the images that belong to clips, by image id."""
        return getattr(self._inner, "frames", {})

    @property
    def groups(self) -> Mapping[str, str]:
        """The group of each image that is not independent of all others, by image id."""
        return getattr(self._inner, "groups", {})

    @property
    def things(self) -> tuple[str, ...]:
        """The semantic classes with countable objects, where `classes` does not say so."""
        return getattr(self._inner, "things", ())

    @property
    def depth_remark(self) -> str:
        """A caveat about a dataset's depth, for readers of haze and defocus scores; "" if there is none."""
        return getattr(self._inner, "depth_remark", "")

    @property
    def fingerprint(self) -> str:
        return self._inner.fingerprint
