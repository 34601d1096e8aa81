"""Composed conditions: each part acts on what the part before it made, with its own random numbers."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidCondition, InvalidOption, UnknownName
from stormproof.core.randomness import Draw, Frame
from stormproof.core.sample import RLE, Camera, Context, Instances, Sample, SemanticMap, Truth
from stormproof.corruptions import apply, corrupt_image, find, truth_under
from stormproof.corruptions.chain import in_order, moves_labels, needs, order_doubts, steps
from stormproof.corruptions.geometry import move_map
from stormproof.corruptions.grammar import read_condition, read_conditions
from stormproof.corruptions.suites import BENCHMARK_15
from stormproof.imaging import sources

SIZE = (48, 64)
PAIRS = tuple(f"{a}@3+{b}@3" for a, b in combinations(BENCHMARK_15, 2))


def _image(phase: float = 0.0) -> np.ndarray:
    """Waves with some noise: edges, flat parts and every grey level."""
    y, x = np.mgrid[: SIZE[0], : SIZE[1]]
    waves = 127 + 120 * np.sin(x / 7 + phase) * np.cos(y / 5)
    noise = np.random.default_rng(0).integers(0, 256, (*SIZE, 3))
    return (0.3 * noise + 0.7 * waves[..., None]).clip(0, 255).astype(np.uint8)


def _sample(*, sequence: str = "", time: float = 0.0, name: str = "a.png") -> Sample:
    mask = np.zeros(SIZE, bool)
    mask[12:28, 10:26] = True
    truth = Truth(
        Instances([[10, 12, 26, 28]], [0], masks=(RLE.from_mask(mask),)), SemanticMap(mask.astype(np.uint8))
    )
    depth = np.tile(np.linspace(60, 4, SIZE[0], dtype=np.float32)[:, None], (1, SIZE[1]))
    context = Context(depth=depth, camera=Camera(60.0, 60.0, 31.5, 23.5))
    return Sample(
        name, _image(), truth, context, classes=("car",), semantic_classes=("road", "car"),
        sequence=sequence, time=time,
    )  # fmt: skip


def _alone(image: np.ndarray, part: str, place: int, *, identity: str = "a.png", seed: int = 0) -> np.ndarray:
    """A part at a place of a chain, by the recipe itself: keyed as alone, plus the place."""
    condition = Condition.parse(part)
    found = find(str(condition.corruption))
    key = (identity, found.name, condition.whole_severity or 0, *([place] if place else []))
    return found.apply(image, condition, Draw.keyed(seed, *key))


@pytest.mark.parametrize("pair", PAIRS)
def test_every_pair_of_imagenet_c_equals_its_parts_in_sequence_on_cpu_and_device(pair: str) -> None:
    torch = pytest.importorskip("torch")
    from stormproof.corruptions.on_device import corrupt_batch

    image, (first, second) = _image(), pair.split("+")
    made = corrupt_image(image, pair, image_id="a.png")
    before = corrupt_image(image, first, image_id="a.png")
    assert (before == _alone(image, first, 0)).all()
    assert (made == _alone(before, second, 1)).all()
    batch = torch.from_numpy(np.stack([image, _image(1.0)])).permute(0, 3, 1, 2)
    on_device = corrupt_batch(batch, pair, ids=["a.png", "b.png"])
    assert (on_device[0].permute(1, 2, 0).numpy() == made).all()


def test_the_same_corruption_twice_draws_new_numbers_the_second_time() -> None:
    image = np.full((*SIZE, 3), 128, np.uint8)
    once = corrupt_image(image, "gaussian_noise@3", image_id="a").astype(int) - 128
    twice = corrupt_image(image, "gaussian_noise@3+gaussian_noise@3", image_id="a").astype(int) - 128
    assert np.corrcoef(once.ravel(), (twice - once).ravel())[0, 1] < 0.1
    assert 1.2 < twice.std() / once.std() < 1.6  # √2, had 8 bits no ends


def test_a_part_in_brackets_keeps_its_plus() -> None:
    condition = Condition.parse('fog@3[on=car+person]+frost@2[textures="a+b]"]+jpeg_compression[quality=10]')
    assert [str(part) for part in condition.parts] == [
        "fog@3[on=car+person]", 'frost@2[textures="a+b]"]', "jpeg_compression[quality=10]",
    ]  # fmt: skip
    assert Condition.parse(str(condition)) == condition
    assert (condition.corruption, condition.severity, condition.params, condition.is_clean) == (
        "fog+frost+jpeg_compression", None, (), False,
    )  # fmt: skip


@pytest.mark.parametrize(
    "text", ["clean+fog@3", "fog@3+", "+fog@3", "fog@3++snow@1", "fog+snow@3", "fog@3+clean"]
)
def test_refuses_a_chain_with_an_empty_or_clean_part(text: str) -> None:
    with pytest.raises(InvalidCondition):
        Condition.parse(text)


def test_parts_may_name_several_conditions() -> None:
    named = read_conditions("night[lux=5]+rain@1-2+jpeg_compression@2, noise@3+pixelate@1")
    assert [str(condition) for condition in named] == [
        "night[lux=5]+rain@1+jpeg_compression@2",
        "night[lux=5]+rain@2+jpeg_compression@2",
        "gaussian_noise@3+pixelate@1",
        "shot_noise@3+pixelate@1",
        "impulse_noise@3+pixelate@1",
    ]
    with pytest.raises(UnknownName, match="pixelate"):
        read_conditions("fog@3+pixelat@1")
    with pytest.raises(InvalidCondition, match="sigma"):
        read_condition("fog@3+gaussian_noise[sigma=-1]")


def test_reads_conditions_from_a_file(tmp_path: Path) -> None:
    listed = tmp_path / "storms.txt"
    listed.write_text("# rain at night\nnight@2+rain@1-2\n\nfog@3, snow@3  # alone\n")
    assert list(map(str, read_conditions(str(listed)))) == [
        "night@2+rain@1",
        "night@2+rain@2",
        "fog@3",
        "snow@3",
    ]
    listed.write_text("fog@3\nfogg@3\n")
    with pytest.raises(InvalidCondition, match=r"storms\.txt, line 2.*fogg"):
        read_conditions(str(listed))
    listed.write_text(f"{listed}\n")
    with pytest.raises(InvalidCondition, match="another list"):
        read_conditions(str(listed))
    with pytest.raises(InvalidOption, match="no such file"):
        read_conditions(str(tmp_path / "storm.txt"))


WARP = "geometric_distortion[delta=0.2]"


def test_truth_and_depth_move_once_through_geometry_noise_and_jpeg() -> None:
    sample = _sample()
    chain, warp = (apply(sample, text) for text in (f"{WARP}+gaussian_noise@3+jpeg_compression@3", WARP))
    assert chain.truth.instances is not None
    assert warp.truth.instances is not None
    assert (chain.truth.instances.boxes == warp.truth.instances.boxes).all()
    assert (chain.truth.semantic.labels == warp.truth.semantic.labels).all()  # type: ignore[union-attr]
    np.testing.assert_array_equal(chain.context.depth, warp.context.depth)
    assert (chain.truth.instances.boxes != sample.truth.instances.boxes).any()  # type: ignore[union-attr]


def test_truth_moves_through_every_geometric_part() -> None:
    """A white square stays under its mask when two warps follow each other, whatever stands between them."""
    sample = _sample()
    image = np.full((*SIZE, 3), 60, np.uint8)
    image[12:28, 10:26] = 255
    sample = Sample(sample.id, image, sample.truth, sample.context)
    chain = Condition.parse(f"{WARP}+contrast@1+elastic_transform@5[labels=moved]")
    moved = apply(sample, chain, seed=3)
    mask = moved.truth.instances.masks[0].to_mask()  # type: ignore[union-attr, index]
    shown = moved.image[..., 0] > (int(moved.image.min()) + int(moved.image.max())) // 2
    assert (mask & shown).sum() / (mask | shown).sum() > 0.9
    alone = truth_under(sample.truth, SIZE, chain, seed=3, image_id=sample.frame)
    assert (alone.instances.masks[0].to_mask() == mask).all()  # type: ignore[union-attr, index]
    assert moves_labels(chain)
    assert not moves_labels(Condition.parse("fog@3+jpeg_compression@1"))


def test_a_part_that_needs_depth_sees_the_depth_that_an_earlier_part_moved() -> None:
    """By hand: warp image and depth, then haze by the recipe itself."""
    sample, haze = _sample(), Condition.parse("haze[visibility=50]")
    made = apply(sample, f"{WARP}+{haze}")
    warp = Condition.parse(WARP)
    field = find("geometric_distortion").field(SIZE, warp, Draw.keyed(0))
    depth = move_map(sample.context.depth, sources(*field), np.nan)
    warped = corrupt_image(sample.image, warp)
    found = find("haze")
    expected = found.apply(warped, haze, Draw.keyed(0, "a.png", "haze", 0, 1), Context(depth=depth))
    assert (made.image == expected).all()
    still = found.apply(warped, haze, Draw.keyed(0, "a.png", "haze", 0, 1), sample.context)
    assert (made.image != still).any()
    assert needs(Condition.parse(f"{WARP}+{haze}")) == {"depth"}


@pytest.mark.parametrize(
    "chain", [f"{WARP}+haze[visibility=50]+gaussian_noise@2", f"rain@3+{WARP}+night@2+jpeg_compression@2",
              "elastic_transform@5[labels=moved]+fog_3d@3+rain@2", "motion_blur@3[scale=auto]+pixelate@2"],
)  # fmt: skip
def test_every_part_on_a_device_sees_depth_camera_and_scale(chain: str) -> None:
    torch = pytest.importorskip("torch")
    from stormproof.corruptions.on_device import corrupt_batch

    sample = _sample()
    batch = torch.from_numpy(sample.image).permute(2, 0, 1)[None]
    metres = torch.from_numpy(np.asarray(sample.context.depth))[None]
    given = {"ids": ["a.png"], "depth": metres, "cameras": [sample.context.camera]}
    on_device = corrupt_batch(batch, chain, **given)
    assert (on_device[0].permute(1, 2, 0).numpy() == apply(sample, chain).image).all()
    padded = torch.nn.functional.pad(batch.repeat(2, 1, 1, 1), (0, 8, 0, 5))
    deep = torch.nn.functional.pad(metres.repeat(2, 1, 1), (0, 8, 0, 5), value=float("nan"))
    sizes = [SIZE, (SIZE[0] - 6, SIZE[1] - 9)]
    two = {"ids": ["a.png", "b.png"], "depth": deep, "cameras": [sample.context.camera] * 2, "sizes": sizes}
    mixed = corrupt_batch(padded, chain, **two)
    assert (mixed[0, :, : SIZE[0], : SIZE[1]] == on_device[0]).all()
    assert (mixed[:, :, SIZE[0] :] == padded[:, :, SIZE[0] :]).all()


def test_each_part_may_change_another_part_of_the_image() -> None:
    """`on=` refers to where objects are when the part acts: after a warp, to where they moved."""
    sample = _sample()
    made = apply(sample, f"{WARP}+gaussian_noise@5[on=objects]+contrast@3[on=background]")
    warped = apply(sample, WARP)
    inside = warped.truth.instances.masks[0].to_mask()  # type: ignore[union-attr, index]
    noisy = _alone(warped.image, "gaussian_noise@5[on=objects]", 1)
    assert (made.image[inside] == noisy[inside]).all()
    flat = find("contrast").apply(
        np.where(inside[..., None], noisy, warped.image), Condition.parse("contrast@3"), Draw.keyed(0)
    )
    assert (made.image[~inside] == flat[~inside]).all()


def test_every_part_of_a_chain_keeps_its_owner_of_randomness() -> None:
    """Dirt on the pane stays through a clip; noise before it is drawn anew in every frame."""
    grey = np.full((*SIZE, 3), 128, np.uint8)
    frames = [Frame("0.png", "drive", 0.0), Frame("1.png", "drive", 0.5)]
    (alone,) = steps(Condition.parse("spatter@4"))
    assert alone.corruption.owner == "camera"
    draws = [alone._replace(place=1).draw(frame, 0) for frame in frames]
    assert draws[0].key == draws[1].key
    assert draws[0].key != alone.draw(frames[0], 0).key
    _, noise = steps(Condition.parse("contrast@1+gaussian_noise@3"))
    assert len({noise.draw(frame, 0).key for frame in frames}) == 2
    first, second = (corrupt_image(grey, "contrast@1+spatter@4", image_id=frame) for frame in frames)
    assert (first == second).all()
    noisy = [corrupt_image(grey, "gaussian_noise@1+spatter@4", image_id=frame) for frame in frames]
    assert (noisy[0] != noisy[1]).any()


def test_warns_of_a_physically_impossible_order() -> None:
    good = ["night@3+rain@3+frost@2+gaussian_noise@1+jpeg_compression@2", "fog@3+snow@3", "fog@1",
            "sparkles@1+rain@1"]  # fmt: skip
    assert order_doubts(map(Condition.parse, good)) == ""
    wrong = Condition.parse("jpeg_compression@2+rain@3")
    told = order_doubts([wrong])
    assert "rain@3+jpeg_compression@2" in told
    assert str(in_order(wrong)) == "rain@3+jpeg_compression@2"
    corrupt_image(_image(), "jpeg_compression@2+fog@3")  # not refused
