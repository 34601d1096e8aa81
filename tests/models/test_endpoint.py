"""The HTTP adapter against a server on this machine that is friendly, slow, broken or hostile."""

from __future__ import annotations

import base64
import json
import shutil
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
from typer.testing import CliRunner

from helpers.scenes import write_scene
from stormproof.cli import app
from stormproof.core.errors import InvalidOption, InvalidPrediction, ModelError
from stormproof.engine.config import make_config
from stormproof.engine.executors import executor_for
from stormproof.engine.many import runs_of
from stormproof.models import endpoint, load_model

IMAGES = [np.full((10, 12, 3), value, np.uint8) for value in (7, 9)]
DESCRIPTION = {"name": "remote", "classes": ["cat"], "version": "3"}


class Server(ThreadingHTTPServer):
    """`answers` holds what to do with each POST in turn, the last one from then on."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answers: list = []
        self.posts: list = []
        self.tokens: list = []
        self.paths: list = []
        self.description: object = DESCRIPTION

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/predict"


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args) -> None:
        pass

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self.server.tokens.append(self.headers.get("Authorization"))
        self.reply(200, json.dumps(self.server.description).encode())

    def do_POST(self) -> None:
        self.server.posts.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        answers = self.server.answers
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        answer(self)

    def reply(self, status: int, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def says(predictions) -> object:
    return lambda handler: handler.reply(200, json.dumps({"predictions": predictions}).encode())


def status(code: int):
    return lambda handler: handler.reply(code, b"no luck")


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as made:
        thread = threading.Thread(target=made.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield made
        made.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch) -> list[float]:
    pauses: list[float] = []
    monkeypatch.setattr(endpoint.time, "sleep", pauses.append)
    return pauses


BOX = {"boxes": [[1, 2, 3, 4]], "scores": [0.5], "labels": [0]}


def test_reads_boxes_over_http(server: Server) -> None:
    model = load_model(server.url)
    assert (model.name, model.classes) == ("remote", ("cat",))
    server.answers = [says([BOX, {"boxes": [], "scores": [], "labels": []}])]
    first, second = model(IMAGES)
    assert first.boxes.tolist() == [[1, 2, 3, 4]]
    assert len(second) == 0
    sent = [
        np.array(PIL.Image.open(BytesIO(base64.b64decode(item["png"])))) for item in server.posts[0]["images"]
    ]
    assert all(np.array_equal(a, b) for a, b in zip(sent, IMAGES, strict=True))


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl, which makes the certificate")
def test_reads_boxes_over_https(server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key, certificate = str(tmp_path / "key.pem"), str(tmp_path / "certificate.pem")
    subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", certificate]
    subprocess.run([*made, *subject], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    monkeypatch.setenv("SSL_CERT_FILE", certificate)
    model = load_model(server.url.replace("http", "https"))
    server.answers = [says([BOX])]
    assert model(IMAGES[:1])[0].boxes.tolist() == [[1, 2, 3, 4]]


def test_names_an_https_address_that_does_not_speak_tls(server: Server) -> None:
    with pytest.raises(ModelError, match="cannot be reached"):
        load_model(f"{server.url.replace('http', 'https')},retries=0")


def test_reads_maps_and_masks_over_http(server: Server) -> None:
    buffer = BytesIO()
    PIL.Image.fromarray(np.full((10, 12), 4, np.uint8)).save(buffer, "PNG")
    plane = base64.b64encode(buffer.getvalue()).decode()
    mask = {"size": [10, 12], "counts": [21, 3, 96]}
    server.answers = [says([{"semantic": plane}, {"scores": [1], "labels": [0], "masks": [mask]}])]
    first, second = load_model(server.url)(IMAGES)
    assert (first.semantic == 4).all()
    assert second.masks[0].area == 3


def test_the_server_says_which_weights_it_runs(server: Server) -> None:
    first = load_model(server.url).fingerprint
    server.description = {**DESCRIPTION, "version": "4"}
    assert load_model(server.url).fingerprint != first


def test_temporary_errors_are_retried_with_growing_pauses(server: Server, no_waiting: list[float]) -> None:
    server.answers = [status(503), lambda handler: handler.connection.close(), status(429), says([BOX, BOX])]
    assert len(load_model(server.url)(IMAGES)) == 2
    assert len(server.posts) == 4
    assert no_waiting == [0.5, 1.0, 2.0]


def test_gives_up_after_the_retries_or_on_a_permanent_error(server: Server) -> None:
    server.answers = [status(503)]
    with pytest.raises(ModelError, match="answered 503"):
        load_model(f"{server.url},retries=1")(IMAGES)
    assert len(server.posts) == 2
    server.answers = [status(400)]  # asking again would change nothing
    with pytest.raises(ModelError, match="400 Bad Request: no luck"):
        load_model(server.url)(IMAGES)
    assert len(server.posts) == 3


def test_reports_a_server_that_hangs(server: Server) -> None:
    release = threading.Event()
    server.answers = [lambda handler: release.wait()]
    try:
        with pytest.raises(ModelError, match="cannot be reached"):
            load_model(f"{server.url},timeout=0.1,retries=0")(IMAGES)
    finally:
        release.set()


def test_refuses_answers_that_are_too_large(server: Server) -> None:
    server.answers = [lambda handler: handler.reply(200, b"x" * 2_000_000)]
    with pytest.raises(ModelError, match="more than 1 MB"):
        load_model(f"{server.url},limit_mb=1")(IMAGES)


def test_redirects_stay_on_the_host(server: Server) -> None:
    elsewhere = f"http://localhost:{server.server_port}/stolen"
    server.answers = [lambda handler: handler.reply(302, b"", Location=elsewhere)]
    with pytest.raises(ModelError, match="another host"):
        load_model(server.url)(IMAGES)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        (lambda handler: handler.reply(200, b"{"), ModelError, "not JSON"),
        (lambda handler: handler.reply(200, b"[]"), ModelError, "sent no list 'predictions'"),
        (says([BOX]), InvalidPrediction, "1 predictions for 2 images"),
        (says([BOX, 3]), InvalidPrediction, "returned int for an image"),
        (says([BOX, {"semantic": "!"}]), ModelError, "not a PNG in base64"),
    ],
)
def test_says_what_is_wrong_with_an_answer(server: Server, answer, error, said: str) -> None:
    server.answers = [answer]
    with pytest.raises(error, match=said):
        load_model(server.url)(IMAGES)


def test_tokens_come_from_the_environment(server: Server, monkeypatch) -> None:
    with pytest.raises(InvalidOption, match="not set"):
        load_model(f"{server.url},token_env=MODEL_TOKEN")
    monkeypatch.setenv("MODEL_TOKEN", "open sesame")
    model = load_model(f"{server.url},token_env=MODEL_TOKEN")
    assert server.tokens == ["Bearer open sesame"]
    assert model.fingerprint == load_model(server.url).fingerprint


def test_refuses_invalid_addresses(server: Server) -> None:
    with pytest.raises(InvalidOption, match="has no host"):
        load_model("http:predict")
    with pytest.raises(InvalidOption, match="positive"):
        load_model(f"{server.url},timeout=0")
    server.description = []
    with pytest.raises(ModelError, match="without a 'name'"):
        load_model(server.url)
    with pytest.raises(ModelError, match="cannot be reached"):
        load_model("http://127.0.0.1:9/predict,retries=0")


def test_refuses_a_chunk_of_negative_length() -> None:
    """Found by fuzzing: http.client takes a negative length, and no index holds this one."""
    length = "-" + "f" * 24
    answer = f"HTTP/1.1 302 Found\r\nTransfer-Encoding: chunked\r\n\r\n{length}\r\n".encode()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        with pytest.raises(ModelError, match="answered 302 Found"):
            endpoint.Client(f"http://127.0.0.1:{listening.getsockname()[1]}", 20.0, 0, 1000).ask()
        thread.join()


KEY, PASSWORD = "k3y-of-the-customer", "pa55word"


def with_secrets(server: Server) -> str:
    return server.url.replace("http://", f"http://somebody:{PASSWORD}@") + f"?api_key={KEY}&v=2"


def test_a_user_and_a_key_reach_the_server(server: Server) -> None:
    load_model(with_secrets(server))
    assert server.paths == [f"/predict?api_key={KEY}&v=2"]
    assert server.tokens == ["Basic " + base64.b64encode(f"somebody:{PASSWORD}".encode()).decode()]


def test_no_error_repeats_a_key_or_a_password(server: Server) -> None:
    """Even if the server does."""

    def echoes(handler: Handler) -> None:
        handler.reply(400, f"bad: {handler.path} {handler.headers['Authorization']} {PASSWORD}".encode())

    def redirects(handler: Handler) -> None:
        handler.reply(302, b"", Location=f"http://elsewhere/predict?api_key={KEY}")

    model = load_model(f"{with_secrets(server)},retries=0,limit_mb=0.01")
    told = []
    for answer in (echoes, redirects, status(503), lambda handler: handler.reply(200, b"no JSON"),
                   lambda handler: handler.reply(200, b" " * 20_000), says(3),
                   says([{"semantic": "no PNG"}] * 2)):  # fmt: skip
        server.answers = [answer]
        with pytest.raises(ModelError) as raised:
            model(IMAGES)
        told.append(str(raised.value))
    for text in ("http://somebody:pa55word@", f"http://somebody:pa55word/{KEY}@host/x",
                 f"http://127.0.0.1:1/x?api_key={KEY},retries=0", f"http://h/p?api_key=a,{KEY}",
                 f"http://h/p?api_key={KEY},timeout=1,timeout=2"):  # fmt: skip
        with pytest.raises((ModelError, InvalidOption)) as raised:
            load_model(text)
        told.append(str(raised.value))
    assert [text for text in told if KEY in text or PASSWORD in text or "c29tZWJvZHk" in text] == []


def test_the_query_identifies_a_model_but_a_password_does_not(server: Server, monkeypatch) -> None:
    plain, other = (load_model(f"{server.url}?model={name}").fingerprint for name in "ab")
    assert plain != other
    assert load_model(f"{server.url}?model=a").fingerprint == plain
    assert load_model(f"{server.url.replace('//', '//u:p@')}?model=a").fingerprint == plain
    spec = f"{server.url}?key=${{MODEL_KEY}}"
    with pytest.raises(InvalidOption, match="variable MODEL_KEY, which the model's spec names, is not set"):
        load_model(spec)
    monkeypatch.setenv("MODEL_KEY", "a b")
    first = load_model(spec).fingerprint
    assert server.paths[-1] == "/predict?key=a%20b"
    monkeypatch.setenv("MODEL_KEY", "renewed")
    assert load_model(spec).fingerprint == first


def test_a_run_stores_and_shows_neither_key_nor_password(server: Server, tmp_path, monkeypatch) -> None:
    data, spec = write_scene(tmp_path / "scene", images=3), with_secrets(server)
    server.description = {**DESCRIPTION, "classes": ["cat", "dog"]}
    server.answers = [lambda handler: says([BOX] * len(server.posts[-1]["images"]))(handler)]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "r.yaml").write_text(
        "requirements: [{id: R1, metric: AP, condition: clean, at_least: 0.01}]\n"
    )
    where = ["--data", data, "-c", "contrast@2", "--engine", "local", "--out", "run"]
    shown = ""
    for words in (["run", "--model", spec, *where], ["score", "run"], ["report", "run", "--out", "page.html"],
                  ["evidence", "run", "--require", "r.yaml", "--out", "e.json", "--pixels", "1"],
                  ["run", "--config", "run/run.yaml", "--model", spec]):  # fmt: skip
        monkeypatch.setattr(sys, "argv", ["stormproof", *words])
        result = CliRunner().invoke(app, words)
        assert result.exit_code == 0 or words[0] == "evidence", (words, result.output, result.exception)
        shown += result.output
    files = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    leaks = [path.name for path, content in files.items() for secret in (KEY, PASSWORD, "somebody")
             if secret.encode() in content]  # fmt: skip
    assert leaks == []
    assert KEY not in shown
    assert PASSWORD not in shown
    assert "give the address with --model" in (tmp_path / "run" / "run.yaml").read_text()
    for name in ("e.json", "page.html", "page.json"):  # which are passed on
        assert str(tmp_path) not in (tmp_path / name).read_text()


def test_folders_of_a_plan_are_named_without_keys(server: Server) -> None:
    (made,) = runs_of({"models": [with_secrets(server)], "data": "images:x", "out": "runs"})
    assert made.out == "runs/predict"
    config = make_config({"model": with_secrets(server), "data": "images:x", "out": "x", "engine": "slurm"})
    with pytest.raises(InvalidOption, match=r"write \$\{NAME\} in it"):
        executor_for(config, 1)


def test_a_server_without_a_description_is_told_the_protocol() -> None:
    class Predicts(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(501)  # with a page for browsers, as Python's own server answers

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Predicts) as plain:
        threading.Thread(target=plain.serve_forever, daemon=True).start()
        with pytest.raises(ModelError, match=r"GET must describe the model") as error:
            load_model(f"http://127.0.0.1:{plain.server_port}/,retries=0")
        plain.shutdown()
    assert "<" not in str(error.value)
