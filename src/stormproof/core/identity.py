"""What identities are made of, bound when Stormproof is imported: hashes, and JSON as text.

A model's code runs in our process and may replace `json.dumps` or `hashlib.blake2b`. Keys of random numbers,
fingerprints and seals must not change with them.
"""

from __future__ import annotations

from hashlib import blake2b, file_digest
from json import JSONEncoder

__all__ = ["blake2b", "compact_json", "file_digest", "sorted_compact_json", "sorted_json", "to_json"]

to_json = JSONEncoder().encode
compact_json = JSONEncoder(separators=(",", ":")).encode
sorted_json = JSONEncoder(sort_keys=True, default=str).encode
sorted_compact_json = JSONEncoder(sort_keys=True, separators=(",", ":")).encode
