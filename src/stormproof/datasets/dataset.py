"""What every dataset is: samples by index, with stable ids, class names and a fingerprint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from stormproof.core.sample import Sample, Truth
from stormproof.core.wrapper import Described


@runtime_checkable
class Dataset(Described, Protocol):
    """Anything with these members is a dataset; no base class, no registration.

    `fingerprint` is a hash of annotations and file list: equal fingerprints mean equal truth. Indexing
    decodes one image; `truth` and `size` do not touch image files unless the format leaves no other way.
    """

    @property
    def ids(self) -> Sequence[str]: ...

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> Sample: ...
    def truth(self, index: int) -> Truth: ...
    def size(self, index: int) -> tuple[int, int]:
        """Height and width."""
        ...
