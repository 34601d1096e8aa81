"""The generator: published test vectors, independence of order, and the right distributions."""

from __future__ import annotations

import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from stormproof.core.philox import fill
from stormproof.core.randomness import Draw, KeyedDraws, digest
from stormproof.models.model import fingerprint
from stormproof.results.store.seal import json_digest


def philox(counter: tuple[int, int, int, int], key: tuple[int, int]) -> tuple[int, ...]:
    """Philox4x32-10 in plain integers, written from the paper's definition, as a second opinion."""
    c, k = list(counter), list(key)
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * c[0], 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c[2], 2**32)
        c = [high1 ^ c[1] ^ k[0], low1, high0 ^ c[3] ^ k[1], low0]
        k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
    return tuple(c)


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        ((0xFFFFFFFF,) * 4, (0xFFFFFFFF,) * 2, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
        (
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xA4093822, 0x299F31D0),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_the_plain_definition_gives_the_published_vectors(
    counter: tuple[int, int, int, int], key: tuple[int, int], expected: tuple[int, ...]
) -> None:
    assert philox(counter, key) == expected


@given(
    key=st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
    stream=st.integers(0, 2**32 - 1),
    start=st.integers(0, 2**40),
)
def test_the_compiled_generator_is_philox(key: tuple[int, int], stream: int, start: int) -> None:
    out = np.empty(12, np.uint32)
    fill(out, *map(np.uint64, (*key, stream, start)))
    expected = [w for b in range(start, start + 3) for w in philox((b % 2**32, b >> 32, stream, 0), key)]
    assert out.tolist() == expected


def test_the_first_numbers_do_not_depend_on_how_many_are_drawn() -> None:
    draw = Draw.keyed(0, "image", "fog", 3)
    long = draw.bits("noise", (1000,))
    assert (draw.bits("noise", (137,)) == long[:137]).all()
    assert (draw.bits("noise", (10, 10)).ravel() == long[:100]).all()


def test_every_part_of_the_identity_and_the_stream_matters() -> None:
    identities = [
        (0, "a", "fog", 3),
        (1, "a", "fog", 3),
        (0, "b", "fog", 3),
        (0, "a", "snow", 3),
        (0, "a", "fog", 4),
    ]
    fields = [Draw.keyed(*identity).bits(s, (64,)).tobytes() for identity in identities for s in ("x", "y")]
    assert len(set(fields)) == len(fields)


def test_ids_cannot_be_confused_by_joining() -> None:
    assert Draw.keyed(0, "a,b", "c").key != Draw.keyed(0, "a", "b,c").key
    assert Draw.keyed(0, "1").key != Draw.keyed(0, 1).key


@given(st.integers(), st.lists(st.text(), max_size=4), st.lists(st.text() | st.integers(), max_size=3))
def test_a_batch_of_draws_has_the_keys_of_single_draws(
    seed: int, ids: list[str], rest: list[str | int]
) -> None:
    many = KeyedDraws(seed, ids, *rest)
    assert list(many) == [Draw.keyed(seed, name, *rest) for name in ids]
    assert list(many[1:]) == list(many)[1:]
    assert many.keys.tolist() == [list(draw.key) for draw in many]


def test_fields_have_their_distributions() -> None:
    draw = Draw.keyed(5, "x")
    uniform = draw.uniform_field("u", (200_000,), -2, 3)
    assert stats.kstest(uniform, stats.uniform(-2, 5).cdf).pvalue > 1e-3
    normal = draw.normal_field("n", (200_000,), 1.5, 0.5)
    assert stats.kstest(normal, stats.norm(1.5, 0.5).cdf).pvalue > 1e-3
    whole = draw.integer_field("i", (200_000,), -3, 3)
    counts = np.bincount(whole.astype(int) + 3, minlength=6)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > 1e-3


def test_neighbours_are_uncorrelated() -> None:
    field = Draw.keyed(1, "x").normal_field("n", (400, 400), 0, 1)
    for other in (field[1:, :], field[:, 1:]):
        same = field[: other.shape[0], : other.shape[1]]
        assert abs(float((same * other).mean())) < 0.012


def test_scalars_lie_in_their_range() -> None:
    values = [Draw.keyed(0, i).uniform("angle", -45, 45) for i in range(2000)]
    assert min(values) >= -45
    assert max(values) < 45
    assert stats.kstest(values, stats.uniform(-45, 90).cdf).pvalue > 1e-3
    assert {Draw.keyed(0, i).integer("texture", 5) for i in range(200)} == set(range(5))


@given(st.binary(min_size=1, max_size=300), st.integers(0, 299), st.integers(1, 255))
def test_digest_sees_every_byte(data: bytes, position: int, change: int) -> None:
    image = np.frombuffer(data, np.uint8).reshape(1, -1)
    other = image.copy()
    other[0, position % len(data)] ^= change
    assert digest(image) != digest(other)
    assert digest(image) == digest(image.copy())
    assert digest(image) != digest(image.T) or image.shape == image.T.shape


def test_replacing_library_functions_changes_no_random_number_or_fingerprint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A model's code may replace functions of the standard library in our process."""
    before = Draw.keyed(3, "é.png", "fog", 3), fingerprint((), {"a": [1, 2.5]}), json_digest({"a": 1})
    monkeypatch.setattr(json, "dumps", lambda *_, **__: "{}")
    monkeypatch.setattr(hashlib, "blake2b", hashlib.sha1)
    after = Draw.keyed(3, "é.png", "fog", 3), fingerprint((), {"a": [1, 2.5]}), json_digest({"a": 1})
    assert before == after
