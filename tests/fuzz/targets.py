"""Everything that reads what others wrote, each with correct input to start from and the way it is read."""

from __future__ import annotations

import math
import random
import socket
import threading
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.dataset_targets import Case, arrays, context, dataset, lay, polygons, quietly, seeds
from fuzz.mutate import HOSTILE, flip, json_bytes, mutate, other_image, strewn, tree
from fuzz.run_targets import manifest, plan, requirements, run_folder
from fuzz.sealed_targets import evidence, sealed_again, submission
from fuzz.verb_targets import composed, domain, explored_folder, kept_map, plane, request
from helpers.tiny_datasets import BUILDERS
from stormproof.core.condition import CLEAN, Condition
from stormproof.core.imagefile import PixelRules, image_size, read_image
from stormproof.core.spec import Spec
from stormproof.corruptions.grammar import read_conditions
from stormproof.datasets import read_dataset
from stormproof.engine.config import make_config, read_settings
from stormproof.engine.plan import requested_conditions
from stormproof.engine.run import run
from stormproof.models import load_model
from stormproof.models.card import complete_card, read_card
from stormproof.models.endpoint import Client, Endpoint
from stormproof.models.model import Precomputed
from stormproof.models.sanity_checks import probe
from stormproof.results.run import Run

_IMAGE = np.zeros((24, 32, 3), np.uint8)


_RESULT = {"image_id": 9, "category_id": 3, "bbox": [1.5, 2, 3, 4.25], "score": 0.5}
_MASKED = {**_RESULT, "segmentation": {"size": [24, 32], "counts": "T33e000000la0"}}


def _results(dice: random.Random, folder: Path) -> None:
    spec, files = seeds()["coco"]
    lay(files, folder)
    seed = [dict(dice.choice((_RESULT, _MASKED)), image_id=image) for image in (7, 9, 9)]
    (folder / "results").mkdir()
    (folder / "results/clean.json").write_bytes(mutate("clean.json", json_bytes(seed), dice))
    name = dice.choice(("fog@3.json", "fog@3[on=person].json", "%00.json", "[].json", "x@9.json"))
    if dice.random() < 0.3:
        (folder / "results" / name).write_bytes(json_bytes(seed))
    model = load_model(f"results:{folder}/results")
    assert isinstance(model, Precomputed)
    bound = model.bind(read_dataset(spec.replace("ROOT", str(folder))))
    for image in ("7", "9", "absent"):
        bound.lookup(image, CLEAN)
    quietly(lambda: bound.fingerprint)


_POINTS = [word for k in range(17) for word in (k + 4, 20 - k, 2)]
_OBJECT_RESULTS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("coco-keypoints", {"image_id": 7, "category_id": 1, "keypoints": _POINTS, "score": 0.5}),
    ("coco-keypoints",
     {"image_id": 7, "category_id": 1, "keypoints": _POINTS, "bbox": [2, 2, 20, 20], "score": 0.25}),
    ("lvis", {"image_id": 7, "category_id": 3, "bbox": [1.5, 2, 3, 4.25], "score": 0.5}),
    ("yolo-obb", {"image_id": "a", "category_id": 1, "obb": [8, 8, 6, 4, 0.4], "score": 0.5}),
    ("yolo-obb", {"image_id": "a", "category_id": 1, "poly": [2, 2, 9, 2, 9, 6, 2, 6], "score": 0.5}),
    ("dota", {"image_id": "P0001", "category_id": 7, "rbox": [8, 8, 6, 4, 0.4], "score": 0.5}),
)  # fmt: skip


def _object_results(dice: random.Random, folder: Path) -> None:
    """Results with key points, oriented boxes or LVIS' classes, read and scored with what they are about."""
    kind, row = dice.choice(_OBJECT_RESULTS)
    spec, files = seeds()[kind]
    lay(files, folder / "data")
    rows = [{**row, "score": score} for score in (0.5, 0.25, 0.75)]
    (folder / "results").mkdir()
    (folder / "results/clean.json").write_bytes(mutate("clean.json", json_bytes(rows), dice))
    out = folder / "out"
    settings = {"model": f"results:{folder}/results", "data": spec.replace("ROOT", str(folder / "data")),
                "conditions": [], "engine": "local", "out": str(out)}  # fmt: skip
    summary = run(make_config(settings))
    if not summary.failed:
        for name, cells in Run(out).score(replicates=50).per_condition.items():
            assert math.isnan(cells["clean"]) or 0 <= cells["clean"] < 1e9, (name, cells)


def _maps(dice: random.Random, folder: Path) -> None:
    _, files = seeds()["voc-seg"]
    lay(files, folder)
    png = files["SegmentationClass/2007_000001.png"]
    (folder / "maps/clean").mkdir(parents=True)
    (folder / "maps/clean/2007_000001.png").write_bytes(mutate("a.png", png, dice))
    load_model(f"results:{folder}/maps").lookup("2007_000001", CLEAN)


def _image(dice: random.Random, folder: Path) -> None:
    content = other_image(dice)
    if dice.random() < 0.8:
        content = flip(content, dice)
    rules = PixelRules(
        dice.choice(("ignore", "apply")), dice.choice(("refuse", "drop", "white")), dice.choice((0, 12, 16))
    )
    quietly(lambda: read_image(content, "image", rules))
    quietly(lambda: image_size(content, "image", rules))


_SPECS = (
    "coco:val.json,images=val", "yolo:data.yaml,split=val", "tar:val-{0000..0002}.tar",
    "world:val,count=2,size=64x48",
    "images:folder,exif=apply", "onnx:model.onnx,score=0.1,classes=coco80", "results:folder,classes=coco80",
    "tflite:m.tflite", "hog:people,threshold=0", "http://127.0.0.1:1/x,retries=0,timeout=0.2",
    "torch:a.pt,device=cpu",
    "voc:root,split=val,depth=folder,depth_scale=2", "x.onnx", "yolo11n.pt", "kitti:.", "tar:.",
)  # fmt: skip


_SPEC_TOKENS = (
    ",", "=", ":", "\\", "\0", "~nobody/", "\x1b[2J", "[/]", "{", "}", "*", "9" * 5000, "nan", "é", " ",
)  # fmt: skip


def _spec(dice: random.Random, folder: Path) -> None:
    spec = strewn(dice.choice(_SPECS), _SPEC_TOKENS, dice.choice((0, 1, 2, 3)), dice)
    Spec.parse(spec)
    kind = spec.partition(":")[0].strip()
    if kind in {known.partition(":")[0] for known in _SPECS}:  # another kind would name code to import
        quietly(lambda: read_dataset(spec))
        if kind not in ("hog", "world", "torch"):
            quietly(lambda: load_model(spec))


_CONDITIONS = (
    "clean", "fog@3", "gaussian_noise[sigma=0.1]", "frost@3[textures=my/frost]", 'fog@3[on="traffic light"]',
    "fog@1,snow@2", "haze[beta=0.04]", "imagenet-c", "fog", "rain@5[on=person,off=car]",
)  # fmt: skip


_CONDITION_TOKENS = (
    "@", "[", "]", ",", "=", '"', "\\", "9" * 5000, "1e999", "-1", "sigma=1,sigma=x", "\0", "\n", "é", "٣",
)  # fmt: skip


def _condition(dice: random.Random, folder: Path) -> None:
    whole = strewn(dice.choice(_CONDITIONS), _CONDITION_TOKENS, dice.choice((0, 1, 2, 4)), dice)
    quietly(lambda: _round_trip(whole))
    quietly(lambda: read_conditions(whole))


def _round_trip(text: str) -> None:
    condition = Condition.parse(text)
    assert Condition.parse(str(condition)) == condition


_RUN = b"""model: onnx:model.onnx
data: world:val,count=2
out: runs/x
conditions: [imagenet-c, fog@3, 'haze[beta=0.04]']
seed: 3
tags: {team: a}
workers: 2
timeout: 3.5
"""
_CARD = b"""name: nano
classes: [person, car]
rename: {car: lorry}
input: {size: [32, 32], mean: [1, 2, 3], std: 5, resize: letterbox}
decoder: nanodet
options: {strides: [8, 16]}
score: 0.1
"""


def _run_yaml(dice: random.Random, folder: Path) -> None:
    path = folder / "run.yaml"
    path.write_bytes(mutate("run.yaml", _RUN, dice))
    requested_conditions(make_config(read_settings(path), str(path)))


def _card(dice: random.Random, folder: Path) -> None:
    path = folder / "card.yaml"
    path.write_bytes(mutate("card.yaml", _CARD, dice))
    complete_card({"input": {"layout": "NCHW"}}, read_card(None, str(path))[0], path)


@cache
def _networks() -> tuple[bytes, ...]:
    """A detector with class names and weights in another file, and a segmenter that ends in an ArgMax."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    def saved(nodes: Any, output: Any, *weights: Any) -> bytes:
        image = helper.make_tensor_value_info("image", TensorProto.FLOAT, [1, 3, 16, 16])
        graph = helper.make_graph(nodes, "net", [image], [output], initializer=weights)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        helper.set_model_props(model, {"names": "{0: 'cat', 1: 'dog'}", "imgsz": "[16, 16]"})
        found: bytes = model.SerializeToString()
        return found

    boxes = numpy_helper.from_array(np.ones((1, 6, 6), np.float32), "boxes")
    outside = onnx.TensorProto(name="zero", data_type=TensorProto.FLOAT, data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "weights.bin"), ("offset", "0"), ("length", "4")):
        outside.external_data.add(key=key, value=value)
    sum_up = helper.make_node("ReduceMean", ["image"], ["mean"], keepdims=0)
    nodes = [sum_up, helper.make_node("Mul", ["mean", "zero"], ["none"])]
    nodes.append(helper.make_node("Add", ["boxes", "none"], ["out"]))
    table = helper.make_tensor_value_info("out", TensorProto.FLOAT, [1, 6, 6])
    best = helper.make_node("ArgMax", ["image"], ["out"], axis=1, keepdims=0)
    labels = helper.make_tensor_value_info("out", TensorProto.INT64, [1, 16, 16])
    return saved(nodes, table, boxes, outside), saved([best], labels)


def _onnx(dice: random.Random, folder: Path) -> None:
    path = folder / "net.onnx"
    path.write_bytes(flip(dice.choice(_networks()), dice))
    (folder / "weights.bin").write_bytes(bytes(4))
    quietly(lambda: probe(Spec("onnx", str(path)), _IMAGE))
    load_model(f"onnx:{path},classes=dataset")([_IMAGE])


_ANSWER = {"predictions": [{"boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": [0],
                            "masks": [{"size": [24, 32], "counts": "T33e000000la0"}]},
                           {"semantic": "iVBORw0KGgo="}]}  # fmt: skip
_DESCRIPTION = {"name": "remote", "classes": ["cat"], "version": "3", "semantic_classes": []}


def _http_answer(dice: random.Random, folder: Path) -> None:
    """What a server says, once it has come through the network."""
    answer = tree(dice.choice((_ANSWER, {"predictions": _ANSWER["predictions"][:1]})), dice)

    class Saying:
        shown = "http://host"

        def ask(self, question: object = None) -> Any:
            return answer

    server = Endpoint(Saying(), "http://host", "m", ("cat",), (), "1")  # type: ignore[arg-type]
    server([_IMAGE] * dice.choice((1, 2)))


def _http_wire(dice: random.Random, folder: Path) -> None:
    """Bytes on the wire: status lines, headers, lengths and bodies that are none."""
    body = json_bytes(tree(_DESCRIPTION, dice) if dice.random() < 0.5 else dice.choice(HOSTILE))
    length = dice.choice((len(body), len(body) + 5, 0, -1, "x", "9" * 5000))
    extra = dice.choice(
        (
            "",
            "X: y\r\n" * 200,
            "Location: http://elsewhere/\r\n",
            f"X: {'y' * 70000}\r\n",
            "Transfer-Encoding: chunked\r\n",
        )
    )
    status = dice.choice(
        ("200 OK", "200", "302 Found", "500 Oops", "999999 x", "abc", "204 No Content", "100 Continue")
    )
    wire = f"HTTP/1.1 {status}\r\nContent-Length: {length}\r\n{extra}\r\n".encode() + body
    if dice.random() < 0.5:
        wire = flip(wire, dice)
    with socket.create_server(("127.0.0.1", 0)) as server:
        answering = threading.Thread(target=_answer_once, args=(server, wire), daemon=True)
        answering.start()
        port = server.getsockname()[1]
        try:
            Client(f"http://127.0.0.1:{port}/", timeout=2, retries=0, limit=10**6).ask()
        finally:
            answering.join()


def _answer_once(server: socket.socket, wire: bytes) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        try:
            connection.sendall(wire)
            connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            return


TARGETS: dict[str, Case] = {
    **{kind: dataset(kind) for kind in BUILDERS if kind != "world"},
    "cityscapes polygons": polygons, "context": context, "results": _results,
    "maps": _maps, "image": _image, "spec": _spec, "condition": _condition,
    "run.yaml": _run_yaml, "card": _card, "onnx": _onnx, "http answer": _http_answer, "http wire": _http_wire,
    "run folder": run_folder, "manifest": manifest, "requirements": requirements, "plan": plan,
    "arrays": arrays, "sealed again": sealed_again, "evidence": evidence, "submission": submission,
    "composed": composed, "plane": plane, "domain": domain, "map.json": kept_map, "request": request,
    "explored folder": explored_folder, "object results": _object_results,
}  # fmt: skip
