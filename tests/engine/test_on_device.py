"""Runs whose images are corrupted on a device: the same rows, on torch's CPU device."""

# ruff: noqa: E402  what follows needs torch

from __future__ import annotations

import gc
import sys
import weakref
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import PIL.Image
import pytest

torch = pytest.importorskip("torch", reason="needs torch")

import stormproof as sp
from helpers.runs import Configure, all_bytes, all_rows
from helpers.scenes import write_scene, write_street
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption
from stormproof.datasets.dataset import SampleDataset
from stormproof.engine.plan import make_plan
from stormproof.engine.run import run
from stormproof.engine.stages import DecodedImage, predict
from stormproof.engine.stages.corrupt import Corruptor
from stormproof.engine.stages.corrupt_on_device import DeviceCorruptor, UploadedImages
from stormproof.engine.work import Times
from stormproof.models import load_model
from stormproof.models.network import plan_input, prepare
from stormproof.models.on_device.inputs import prepare_on_device
from stormproof.results.store.record import read_record

CONDITIONS = ["fog@2,contrast@4,gaussian_noise@3,motion_blur@2,geometric_distortion@3,spatter@2"]
NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 3, 3, padding=1)
    def forward(self, x):
        return self.conv(x)
"""


YOLO = """
import torch

seen = []

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(3, 7, 8, stride=8)
    def forward(self, x):
        seen.append(len(x))
        rows = torch.cat([self.conv(one[None]) for one in x]).flatten(2)  # one by one: equal in any batch
        boxes = rows[:, :4].sigmoid() * 40 + 1
        return torch.cat([boxes, (40 * rows[:, 4:]).sigmoid()], 1)
"""


@pytest.fixture
def net(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """A tiny segmenter in torch that takes images as they are."""
    (tmp_path / "tiny_net_on_device.py").write_text(NET)
    (tmp_path / "card.yaml").write_text(
        "decoder: logits\nclasses: [dark, grey, bright]\n"
        "input: {resize: none, channels: BGR, mean: [123.7, 116.3, 103.5], std: [58.4, 57.1, 57.4]}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield f"torch:tiny_net_on_device:Net,card={tmp_path / 'card.yaml'}"
    sys.modules.pop("tiny_net_on_device", None)


DEVICES = [
    "cpu",
    pytest.param(
        "cuda",
        marks=[pytest.mark.gpu, pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device")],
    ),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("other", [{}, {"batch": 3}, {"engine": "pool", "workers": 1}], ids=str)
def test_rows_do_not_depend_on_the_device(
    configure: Configure, other: dict[str, object], device: str
) -> None:
    one = configure(out="one", conditions=CONDITIONS)
    two = configure(out="two", conditions=CONDITIONS, device=device, **other)
    run(one)
    assert run(two).complete
    assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))
    first, second = read_record(Path(one.out)), read_record(Path(two.out))
    assert first.key == second.key
    assert second.provenance["hardware"]["device"].startswith(device)


@pytest.mark.parametrize("device", DEVICES)
def test_a_torch_model_gets_tensors_and_predicts_the_same(
    configure: Configure, net: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    street = write_street(tmp_path / "street")
    one, two = (
        configure(out=str(place), data=street, conditions=CONDITIONS, device=place).model_copy(
            update={"model": f"{net},device={device}"}
        )
        for place in (None, device)
    )
    run(one)
    given = []
    call = predict.call_model

    def watched(model, images, timeout):
        given.extend(type(image) for image in images)
        return call(model, images, timeout)

    monkeypatch.setattr(predict, "call_model", watched)
    assert run(two).complete
    assert {*given} == {torch.Tensor}
    assert all_bytes(Path(one.out)) == all_bytes(Path(two.out))


def test_python_code_may_take_tensors(configure: Configure, tmp_path: Path) -> None:
    script = tmp_path / "summing.py"
    script.write_text(
        "def detect(images):\n"
        "    kinds = [float(not hasattr(image, 'numpy')) for image in images]\n"
        "    tops = [int(image[..., 0].sum()) % 30 for image in images]\n"
        "    return [{'boxes': [[0, top, 9, top + 9]], 'scores': [kind], 'labels': [0]}\n"
        "            for top, kind in zip(tops, kinds)]\n"
        "detect.takes_tensors = True\n"
    )
    one, two = (
        configure(out=str(device), device=device).model_copy(update={"model": f"{script}:detect"})
        for device in (None, "cpu")
    )
    run(one)
    run(two)
    host, device = (all_rows(Path(config.out)) for config in (one, two))
    assert host["boxes"] == device["boxes"]
    assert {score for row in host["scores"].to_pylist() for score in row} == {1.0}
    assert {score for row in device["scores"].to_pylist() for score in row} == {0.0}


def test_a_run_begun_on_the_cpu_continues_on_a_device(configure: Configure) -> None:
    whole = configure(out="whole", conditions=CONDITIONS)
    run(whole)
    run(configure(out="grown", limit=7, conditions=["fog@2"]))
    run(configure(out="grown", conditions=CONDITIONS, device="cpu"))
    assert all_bytes(Path(whole.out).with_name("grown")) == all_bytes(Path(whole.out))


def test_runs_images_of_several_sizes_grey_ones_and_broken_ones(configure: Configure, tmp_path: Path) -> None:
    data = write_scene(tmp_path / "scene", images=6)
    folder = tmp_path / "scene" / "images"
    (folder / "004.png").write_bytes(b"no image")
    grey = np.asarray(PIL.Image.open(folder / "002.png"))[..., 0]
    PIL.Image.fromarray(grey).save(folder / "002.png")
    plain = f"images:{folder}"
    for spec in (data, plain):
        name = spec.partition(":")[0]
        one, two = (configure(out=f"{name}{device}", data=spec, device=device) for device in (None, "cpu"))
        found = [run(config).failures for config in (one, two)]
        assert [failure.cell for failure in found[0]] == [failure.cell for failure in found[1]]
        assert {failure.image for failure in found[1]} == {failure.image for failure in found[0]} != set()
        assert all_rows(Path(one.out)).equals(all_rows(Path(two.out)))


@pytest.mark.parametrize("model", ["brightness_boxes", "thresholds"])
def test_an_unreadable_label_map_fails_its_image_on_a_device_too(
    configure: Configure, tmp_path: Path, model: str
) -> None:
    data = write_street(tmp_path / "street")
    (tmp_path / "street/labels/004.png").write_bytes(b"no map")
    one, two = (configure(model, out=str(device), data=data, device=device) for device in (None, "cpu"))
    failures = [[(f.cell, f.kind) for f in run(config).failures] for config in (one, two)]
    assert failures[0] == failures[1]
    assert {kind for _, kind in failures[1]} == {"image"}
    assert all_rows(Path(one.out)).equals(all_rows(Path(two.out)))


def test_the_garbage_collector_looks_at_new_objects_only(tmp_path: Path) -> None:
    frozen: list[int] = []

    def detect(images: list[np.ndarray]) -> list[sp.Prediction]:
        frozen.append(gc.get_freeze_count())
        return [sp.Prediction([], [], [])] * len(images)

    def detect_once(out: str) -> int:
        images = [sp.Sample("one", np.zeros((8, 8, 3), np.uint8))]
        sp.run(detect, images, out=tmp_path / out, conditions="clean", device="cpu", progress=False)
        return frozen.pop()

    gc.unfreeze()
    try:
        assert detect_once("thawed") > 0
        assert gc.get_freeze_count() == 0
    finally:
        gc.freeze()  # as all tests have it
    assert detect_once("frozen") > 0
    assert gc.get_freeze_count() > 0


def test_frees_reference_cycles_of_a_model_during_the_run(tmp_path: Path) -> None:
    """Also at the end of a chunk, and when the next run begins."""

    class Circle:
        def __init__(self) -> None:
            self.itself = self

    held, alive, most = [Circle()], weakref.WeakSet[Circle](), list[int]()

    def detect(images: list[np.ndarray]) -> list[sp.Prediction]:
        alive.add(Circle())
        most.append(len(alive))
        return [sp.Prediction([], [], [])] * len(images)

    images = [sp.Sample(str(k), np.zeros((8, 8, 3), np.uint8)) for k in range(150)]
    settings = {"conditions": "clean", "device": "cpu", "progress": False}
    gc.unfreeze()
    try:
        sp.run(detect, images, out=tmp_path / "long", chunk=1, **settings)
        assert len(most) == len(images)
        assert max(most) < 0.8 * len(images)
        between = weakref.ref(held.pop())
        sp.run(detect, images[:1], out=tmp_path / "next", **settings)
        assert between() is None
    finally:
        gc.freeze()  # as all tests have it


def test_a_failed_batch_is_repeated_image_by_image(configure: Configure) -> None:
    one, two = (configure("raises_on_marked", out=str(device), device=device) for device in (None, "cpu"))
    failures = [[failure.cell for failure in run(config).failures] for config in (one, two)]
    assert failures[0] == failures[1] != []
    assert all_rows(Path(one.out)).equals(all_rows(Path(two.out)))


def test_reports_that_a_device_failed(configure: Configure, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(images, condition, **_):
        if condition.corruption == "fog":
            raise RuntimeError("an illegal memory access was encountered")
        return images.clone()

    monkeypatch.setattr("stormproof.engine.stages.corrupt_on_device.corrupt_batch", broken)
    failures = run(configure(device="cpu")).failures
    assert len(failures) == 12
    assert {(failure.kind, failure.condition) for failure in failures} == {("corruption", "fog@2")}
    assert "illegal memory access" in failures[0].error


def test_refuses_what_a_device_cannot_do_before_the_run(configure: Configure) -> None:
    for condition, why in {"style[alpha=1]": "style", "fog@3[on=objects]": "objects"}.items():
        with pytest.raises(Exception, match=why):
            make_plan(configure(conditions=[condition], device="cpu"))
    with pytest.raises(InvalidOption, match="already corrupted"):
        configure(device="cpu", copies="somewhere")
    with pytest.raises(InvalidOption, match="write cuda, cuda:1 or cpu"):
        make_plan(configure(device="gpu"))


def test_a_part_holds_several_whole_batches(configure: Configure) -> None:
    assert make_plan(configure(device="cpu", batch=10, chunk=None)).work.record.chunk == 80
    assert make_plan(configure(device="cpu", batch=10, chunk=3)).work.record.chunk == 3


@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8", "int8"])
@pytest.mark.parametrize("layout", ["NCHW", "NHWC"])
def test_tensors_are_prepared_as_arrays_are(net: str, dtype: str, layout: str) -> None:
    card = load_model(net).card.input.model_copy(update={"dtype": dtype, "layout": layout})
    image = np.random.default_rng(0).integers(0, 256, (9, 7, 3), np.uint8)
    expected = prepare(image, plan_input(image, card), card)
    made = prepare_on_device([(torch.from_numpy(image), plan_input(image, card))] * 2, card).numpy()
    assert made.dtype == expected.dtype
    assert (made == expected).all()


def test_models_whose_resizing_no_device_offers_get_arrays(net: str) -> None:
    model = load_model(net)
    for interpolation in ("linear", "antialias", "area", "cubic"):
        update = {"resize": "stretch", "size": (8, 8), "interpolation": interpolation}
        card = model.card.model_copy(update={"input": model.card.input.model_copy(update=update)})
        assert replace(model, card=card).takes_tensors == (interpolation != "cubic")


@pytest.mark.parametrize("resize", ["stretch", "letterbox", "shortest"])
def test_a_model_that_resizes_gets_full_batches_and_predicts_the_same(
    configure: Configure, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, resize: str
) -> None:
    """Photographs of several sizes, in grey and in colour, resized on the device with the host's bytes."""
    rng, folder = np.random.default_rng(6), tmp_path / "photos"
    folder.mkdir()
    for number, shape in enumerate(
        [(40, 60, 3), (52, 48, 3), (33, 70, 3), (61, 61), (48, 64, 3), (64, 20, 3)]
    ):
        PIL.Image.fromarray(rng.integers(0, 256, shape, np.uint8)).save(folder / f"{number}.png")
    (tmp_path / "tiny_yolo_on_device.py").write_text(YOLO)
    (tmp_path / "yolo.yaml").write_text(
        f"decoder: yolov8\nclasses: [a, b, c]\ninput: {{resize: {resize}, size: [32, 48], multiple: 16}}\n"
        if resize == "shortest"
        else f"decoder: yolov8\nclasses: [a, b, c]\ninput: {{resize: {resize}, size: [32, 48]}}\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    spec = f"torch:tiny_yolo_on_device:Net,card={tmp_path / 'yolo.yaml'},batch=4"
    one, two = (
        configure(
            out=str(device), device=device, conditions=["fog@2,contrast@4"], batch=4, chunk=6,
            data=f"images:{folder}",
        ).model_copy(update={"model": spec})
        for device in (None, "cpu")
    )  # fmt: skip
    run(one)
    module = sys.modules["tiny_yolo_on_device"]
    module.seen.clear()
    run(two)
    assert all_rows(Path(one.out)).equals(all_rows(Path(two.out)))
    assert sum(map(len, all_rows(Path(two.out))["scores"].to_pylist())) > 0
    if resize != "shortest":  # which has inputs of several sizes
        assert module.seen[-5:] == [4, 4, 4, 4, 2]  # before these, the first images are checked


def test_a_model_gets_full_batches_of_photographs_of_any_size(configure: Configure, tmp_path: Path) -> None:
    """Images of four sizes, in grey and in colour, corrupted together and given to the model together."""
    rng, folder = np.random.default_rng(5), tmp_path / "photos"
    folder.mkdir()
    shapes = [(40, 60, 3), (52, 48, 3), (40, 60, 3), (33, 70, 3), (61, 61, 3), (48, 52), (40, 60, 3)]
    for number, shape in enumerate(shapes):
        PIL.Image.fromarray(rng.integers(0, 256, shape, np.uint8)).save(folder / f"{number}.png")
    script = tmp_path / "counting.py"
    script.write_text(
        "seen = []\n"
        "def detect(images):\n"
        "    seen.append(len(images))\n"
        "    return [{'boxes': [[0, 0, 9, 1 + int(image.sum()) % 50]], 'scores': [.5], 'labels': [0]}\n"
        "            for image in images]\n"
        "detect.takes_tensors = True\n"
        "detect.classes = ['thing']\n"
    )
    conditions = ["gaussian_noise@3,fog@2,jpeg_compression@4,motion_blur@2,elastic_transform@1"]
    one, two = (
        configure(
            out=str(device), device=device, conditions=conditions, batch=6, chunk=7, data=f"images:{folder}"
        )
        .model_copy(update={"model": f"{script}:detect"})
        for device in (None, "cpu")
    )  # fmt: skip
    run(one)
    sys.modules["stormproof_script_counting"].seen.clear()
    run(two)
    assert all_rows(Path(one.out)).equals(all_rows(Path(two.out)))
    calls = sys.modules["stormproof_script_counting"].seen
    assert calls == [6] * 7  # of seven images under six conditions


def test_an_image_alone_in_a_padded_batch_is_corrupted_without_its_padding() -> None:
    """As when the others already have rows under a condition."""
    rng, fog = np.random.default_rng(7), Condition.parse("fog@3")
    images = [rng.integers(0, 256, (*size, 3), np.uint8) for size in ((40, 60), (52, 48))]
    dataset = SampleDataset.of([sp.Sample(f"im{i}", image) for i, image in enumerate(images)])
    reads, times = [DecodedImage(i, dataset[i], "") for i in range(2)], Times()
    on_host = Corruptor(dataset, seed=0, copies=None, times=times)
    corrupt = DeviceCorruptor(on_host, "cpu", 0, times, keep=False)
    [alone] = corrupt.under_all(corrupt.upload(reads), [fog], {0: [fog], 1: []})
    assert (alone.image == on_host(reads[0], fog).image).all()
    assert alone.change() == on_host(reads[0], fog).change()


def test_images_are_picked_from_a_batch_on_the_stream_that_uploaded_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another stream would read them before they are there."""
    fog, launching, inside = Condition.parse("fog@3"), [], []
    dataset = SampleDataset.of([sp.Sample(f"im{i}", np.zeros((40, 60, 3), np.uint8)) for i in range(2)])
    reads, times = [DecodedImage(i, dataset[i], "") for i in range(2)], Times()
    corrupt = DeviceCorruptor(
        Corruptor(dataset, seed=0, copies=None, times=times), "cpu", 0, times, keep=False
    )

    @contextmanager
    def own_stream(self):
        launching.append(True)
        yield
        launching.pop()

    monkeypatch.setattr(DeviceCorruptor, "_launching", own_stream)
    pick = UploadedImages.under
    monkeypatch.setattr(
        UploadedImages, "under", lambda *given: inside.append(bool(launching)) or pick(*given)
    )
    assert len([*corrupt.under_all(corrupt.upload(reads), [fog], {0: [fog], 1: []})]) == 1
    assert inside == [True]


def test_a_function_passed_in_python_may_take_tensors(tmp_path: Path) -> None:
    """As one in a file may: its images stay on the device."""
    kinds = []

    def detect(images):
        kinds.extend(type(image) for image in images)
        return [{"boxes": [], "scores": [], "labels": []} for _ in images]

    detect.takes_tensors = True  # type: ignore[attr-defined]
    samples = [sp.Sample(f"im{i}", np.full((20, 30 + i, 3), 99, np.uint8)) for i in range(3)]
    sp.run(detect, samples, conditions="contrast@3", device="cpu", out=tmp_path / "run", progress=False)
    assert {*kinds} == {torch.Tensor}
