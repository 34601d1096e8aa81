"""Batches of images of several sizes: what the CPU makes of each image, in one go for most recipes."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

from math import ceil, floor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from helpers.both_sets import PAIRS, depths, photographs
from stormproof.core.condition import Condition
from stormproof.core.randomness import Frame
from stormproof.core.sample import Context, Sample
from stormproof.corruptions import SUITES, apply, find, on_device
from stormproof.corruptions.chain import steps
from stormproof.corruptions.on_device import corrupt_batch
from stormproof.imaging.gpu.draws import Draws, philox_words
from stormproof.imaging.gpu.each import BySize, Each
from stormproof.imaging.gpu.ragged import Ragged, Sizes, ragged_images
from stormproof.imaging.plans import cloud_side

SIZES = [(40, 50), (23, 31), (50, 33), (40, 50), (37, 52)]
WHOLE = (50, 52)
IDS = [f"{i}.png" for i in range(len(SIZES))]
LAST = {condition.corruption: condition for condition in PAIRS}.values()  # one of each recipe


def padded(channels: int = 3) -> torch.Tensor:
    """Photographs of all sizes in a padding of noise."""
    rng = np.random.default_rng(5)
    batch = rng.integers(0, 256, (len(SIZES), *WHOLE, channels)).astype(np.uint8)
    for i, (height, width) in enumerate(SIZES):
        batch[i, :height, :width] = photographs(height, width, channels)[i % 2]
    return torch.from_numpy(batch).permute(0, 3, 1, 2).contiguous()


def wrong(condition: Condition, ids: list[object] = IDS, channels: int = 3) -> list[int]:
    """The images that differ from the CPU's, or whose padding has changed."""
    batch = padded(channels)
    depth = torch.ones((len(SIZES), *WHOLE))
    for i, (height, width) in enumerate(SIZES):
        depth[i, :height, :width] = torch.from_numpy(depths(height, width)[i % 2])
    needs = find(str(condition.corruption)).needs
    made = corrupt_batch(batch, condition, ids=ids, sizes=SIZES, depth=depth if needs else None)
    found = []
    for i, (height, width) in enumerate(SIZES):
        frame = ids[i] if isinstance(ids[i], Frame) else Frame(ids[i])
        image = batch[i, :, :height, :width].permute(1, 2, 0).numpy()
        sample = Sample(
            frame.id,
            image if channels == 3 else image[..., 0],
            context=Context(depth=depth[i, :height, :width].numpy()),
            sequence=frame.sequence,
            time=frame.time,
        )
        expected = batch[i].clone()
        corrupted = apply(sample, condition).image.reshape(height, width, channels)
        expected[:, :height, :width] = torch.from_numpy(corrupted.copy()).permute(2, 0, 1)
        if not torch.equal(made[i], expected):
            found.append(i)
    return found


@pytest.mark.parametrize("condition", PAIRS, ids=str)
def test_every_image_of_a_mixed_batch_equals_that_of_the_cpu(condition: Condition, parts: list[int]) -> None:
    assert wrong(condition) == []
    if condition in SUITES["imagenet-c"].conditions:
        assert parts == [], "its recipe takes several sizes at once"


@pytest.mark.parametrize("condition", LAST, ids=lambda c: c.corruption)
def test_grey_images_and_frames_of_a_clip_equal_those_of_the_cpu(condition: Condition) -> None:
    assert wrong(condition, channels=1) == []
    frames = [Frame(name, "clip", 0.3 * i) for i, name in enumerate(IDS)]
    assert wrong(condition, frames) == []


@pytest.fixture
def parts(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many images each application of a recipe to images of one size has had."""
    counted: list[int] = []
    applied = on_device._apply_to_part
    monkeypatch.setattr(
        on_device,
        "_apply_to_part",
        lambda part, *rest: counted.append(len(part.images)) or applied(part, *rest),
    )
    return counted


def test_recipes_that_need_one_size_are_split_by_size(parts: list[int]) -> None:
    corrupt_batch(padded(), "spatter@2", ids=IDS, sizes=SIZES)
    corrupt_batch(padded(), "motion_blur@2[scale=auto]", ids=IDS, sizes=SIZES)  # other lengths for each size
    assert sorted(parts) == [1, 1, 1, 1, 1, 1, 2, 2]


def test_images_of_one_size_in_a_larger_padding_are_one_part(parts: list[int]) -> None:
    batch = padded()
    made = corrupt_batch(batch, "fog@3", ids=IDS, sizes=[(20, 30)] * len(IDS))
    assert parts == [len(IDS)]
    alone = corrupt_batch(batch[..., :20, :30].contiguous(), "fog@3", ids=IDS)
    assert torch.equal(made[..., :20, :30], alone)
    assert torch.equal(made[..., 20:, :], batch[..., 20:, :])


def test_images_of_one_pixel_height_or_width_equal_those_of_the_cpu() -> None:
    batch, sizes = padded(), [(1, 1), (50, 1), (1, 52), (2, 3), (50, 52)]
    for condition in LAST:
        if find(str(condition.corruption)).needs:
            continue
        made = corrupt_batch(batch, condition, ids=IDS, sizes=sizes)
        for i, (height, width) in enumerate(sizes):
            crop = batch[i : i + 1, :, :height, :width].contiguous()
            alone = corrupt_batch(crop, condition, ids=IDS[i : i + 1])
            assert torch.equal(made[i, :, :height, :width], alone[0]), f"{condition}, {height}×{width}"


@pytest.mark.parametrize("form", [torch.contiguous_format, torch.channels_last], ids=str)
def test_layouts_of_memory_do_not_matter(form: torch.memory_format) -> None:
    batch = padded()
    expected = corrupt_batch(batch, "elastic_transform@3", ids=IDS, sizes=SIZES)
    given = batch.contiguous(memory_format=form)
    before = given.clone()
    assert torch.equal(corrupt_batch(given, "elastic_transform@3", ids=IDS, sizes=SIZES), expected)
    assert torch.equal(given, before)


def test_a_mixed_batch_too_large_is_split(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = corrupt_batch(padded(), "snow@3", ids=IDS, sizes=SIZES)
    monkeypatch.setattr(on_device, "_most_at_once", lambda *_: 2)
    assert torch.equal(corrupt_batch(padded(), "snow@3", ids=IDS, sizes=SIZES), expected)


def test_a_number_per_image_behaves_like_a_single_number() -> None:
    side = Each(np.array([5, 8]))
    for expression in (
        lambda n: n * 0.3, lambda n: 2 * n - 1, lambda n: -0.005 * n, lambda n: ceil(n / 3),
        lambda n: round(n * 0.5), lambda n: floor(n * 0.6), lambda n: np.maximum(n, 6),
        lambda n: max(n - 3, 0), lambda n: cloud_side((n, 3)),
    ):  # fmt: skip
        assert expression(side).values.tolist() == [expression(5), expression(8)]
    assert bool(side > 4)
    assert np.stack((side, side + 1), axis=-1).tolist() == [[5, 6], [8, 9]]
    assert int(Each(np.array([7, 7]))) == 7


def test_one_number_for_all_is_refused_where_images_differ() -> None:
    side = Each(np.array([5, 8]))
    for use in (
        int, float, range, hash, lambda n: n > 6 or None, lambda n: max(n, 6), np.arange, np.zeros,
        lambda n: np.ones(2) * n, lambda n: n * np.ones(2), lambda n: np.linspace(0, 1, n),
    ):  # fmt: skip
        with pytest.raises(BySize):
            use(side)


def test_values_of_several_sizes_are_not_read_as_one() -> None:
    batch = ragged_images(padded(), SIZES)
    assert [side.values.tolist() for side in batch.shape[:2]] == [
        list(side) for side in zip(*SIZES, strict=True)
    ]
    for use in (
        lambda b: b.data, lambda b: b + 1, lambda b: b[:3], lambda b: b.astype(np.float32), lambda b: b.min(),
        lambda b: np.clip(b, 0, 1), np.asarray,
    ):  # fmt: skip
        with pytest.raises(BySize):
            use(batch)
    largest = [int(batch.part([i], size).data.max()) for i, size in enumerate(SIZES)]
    assert batch.max().data.tolist() == largest


def test_padding_is_where_no_image_is() -> None:
    sizes = Sizes(np.array([(1, 2), (2, 1)]))
    assert sizes.whole == (16, 16)
    assert sizes.inside.nonzero().tolist() == [[0, 0, 0, 0], [0, 0, 0, 1], [1, 0, 0, 0], [1, 0, 1, 0]]
    assert isinstance(Ragged(torch.zeros((2, 2, 3)), sizes).shape[0], Each)


@pytest.mark.parametrize("whole", [(80, 100), (64, 64), (52, 70)], ids=str)
def test_a_padding_wider_than_needed_stays_as_it_is(whole: tuple[int, int]) -> None:
    batch = torch.randint(0, 256, (len(SIZES), 3, *whole), dtype=torch.uint8)
    batch[..., : WHOLE[0], : WHOLE[1]] = padded()
    made = corrupt_batch(batch, "glass_blur@2", ids=IDS, sizes=SIZES)
    expected = batch.clone()
    expected[..., : WHOLE[0], : WHOLE[1]] = corrupt_batch(padded(), "glass_blur@2", ids=IDS, sizes=SIZES)
    assert torch.equal(made, expected)


def test_random_words_of_the_host_equal_those_of_single_draws() -> None:
    draws = steps(Condition.parse("fog@3"))[0].draws(IDS, 7)
    keys = np.array([draw.key for draw in draws], np.int64)
    for count in (1, 2, 9):
        expected = [draw.words("angle", count).tolist() for draw in draws]
        assert Draws(draws).words("angle", count).tolist() == expected
    assert philox_words(keys, 2**32 - 1, 3).dtype == np.uint32
