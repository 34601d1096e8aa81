"""Only its user: whoever lacks the token, has another name for the server or asks for files gets nothing."""

from __future__ import annotations

import ast
import shutil
import socket
from pathlib import Path

import pytest

from helpers.explorer import TOKEN, Client
from stormproof.core.condition import Condition
from stormproof.core.errors import InvalidOption, RunError
from stormproof.explore.app import ANSWERS
from stormproof.explore.desk import Desk
from stormproof.explore.serve import Server
from stormproof.explore.subject import explore_models, explore_runs

TRAVERSALS = (
    "../../../../etc/passwd", "..%2f..%2f..%2fetc%2fpasswd", "%2e%2e/%2e%2e/etc/passwd", "/etc/passwd",
    "....//....//etc/passwd", "file:///etc/passwd", "..\\..\\etc\\passwd", "etc/passwd%00.js", "%00", "~root",
)  # fmt: skip
_CELL = ("subject", "condition")
_LOOK = ("image", "condition", "page", "turn")
PARAMETERS = {
    "session": (), "progress": (), "map": ("measure",), "slices": ("name",), "tallies": _CELL,
    "cell": (*_CELL, "class", "slice", "error", "fate", "score", "first", "count"),
    "steps": ("corruption", "params", "top"), "look": _LOOK, "picture": _LOOK,
    "thumbnail": ("image", "condition"),
    "painting": (*_CELL, "image"), "table": ("image", "condition"),
    "acts": (*_CELL, "image", "metric", "bound", "threshold", "id"),
}  # fmt: skip
ODD = (
    "-1",
    "99",
    "1e99",
    "nan",
    "999999999999999",
    "<script>",
    "x" * 5000,
    "[]",
    '{"a":',
    '{"textures": "/etc"}',
)
SECRET = b"root:"


@pytest.mark.parametrize(
    "path", ["/", "/ask/session", "/index.html", "/main.js", f"/x{TOKEN}/", f"/{TOKEN}x/"]
)
def test_refuses_requests_without_the_token(client: Client, path: str) -> None:
    answer = client.get(path)
    assert answer.status == 403
    assert TOKEN.encode() not in answer.body


@pytest.mark.parametrize(
    "host",
    ["evil.example", "evil.example:{port}", "127.0.0.1", "127.0.0.1.evil.example:{port}", "", "localhost:1",
     "127.0.0.1:{port}, evil.example"],
)  # fmt: skip
def test_refuses_requests_to_another_host_name(client: Client, host: str) -> None:
    answer = client.get(f"/{TOKEN}/ask/session", host=host.format(port=client.port))
    assert answer.status in (400, 421)
    assert b"dataset" not in answer.body


def test_accepts_the_names_of_this_machine(client: Client) -> None:
    for host in ("127.0.0.1", "localhost", "LOCALHOST"):
        assert client.get(f"/{TOKEN}/", host=f"{host}:{client.port}").status == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_refuses_every_method_but_get(client: Client, method: str) -> None:
    assert client.get(f"/{TOKEN}/ask/session", method=method).status == 405


@pytest.mark.parametrize("path", TRAVERSALS)
def test_sends_no_files_but_its_own(client: Client, path: str) -> None:
    for place in (f"/{TOKEN}/{path}", f"/{TOKEN}/ask/{path}", f"/{path}"):
        answer = client.get(place.replace("\\", "%5c"))
        assert answer.status in (400, 403, 404), place
        assert SECRET not in answer.body


@pytest.mark.parametrize("question", ANSWERS)
def test_no_parameter_leads_to_a_file(client: Client, question: str) -> None:
    """Every parameter of every question, with every traversal: an answer, or an error without its content."""
    usual = (
        {"metric": "AP50"} if question == "acts" else {"corruption": "frost"} if question == "steps" else {}
    )
    for name in PARAMETERS[question]:
        for value in (*TRAVERSALS, *ODD):
            answer = client.ask(question, **{**usual, name: value})
            assert answer.status in (200, 204, 400), (question, name, value, answer.body[:200])
            assert SECRET not in answer.body


def test_every_answer_has_headers_that_isolate_the_page(client: Client) -> None:
    for path in (f"/{TOKEN}/", f"/{TOKEN}/main.js", f"/{TOKEN}/ask/session", f"/{TOKEN}/nothing"):
        headers = {name.lower(): value for name, value in client.get(path).headers.items()}
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"
        assert "access-control-allow-origin" not in headers


def test_the_name_of_a_run_folder_is_shown_as_text(folder: Path, tmp_path: Path) -> None:
    copy = tmp_path / "'$(touch x)`;\"<script>"
    shutil.copytree(folder, copy)
    made = Desk(explore_runs([copy])).acts(
        0, 0, Condition.parse("fog@3"), {"id": "R1", "metric": "AP", "at_least": 0.5}
    )
    opening = ast.parse(made["python"]).body[1]
    assert isinstance(opening, ast.Assign)
    assert [ast.literal_eval(word) for word in opening.value.args] == [str(copy)]  # type: ignore[attr-defined]


def test_listening_beyond_this_machine_needs_a_chosen_token(folder: Path) -> None:
    exploration = explore_runs([folder])
    with pytest.raises(InvalidOption, match="--token"):
        Server(exploration, host="0.0.0.0")
    with pytest.raises(InvalidOption, match="16 letters"):
        Server(exploration, token="short")


def test_a_server_on_all_addresses_answers_to_any_of_them_and_to_no_other_name(folder: Path) -> None:
    """Whoever opens it from another machine uses an address that this one need not know."""
    server = Server(explore_runs([folder]), host="0.0.0.0", token=TOKEN)
    server.start()
    client = Client(server.port)
    known = ("localhost", "127.0.0.1", "192.168.1.5", "[fe80::1]", socket.gethostname())
    status = {name: client.get(f"/{TOKEN}/", host=f"{name}:{server.port}").status for name in known}
    assert status == dict.fromkeys(known, 200)
    strange = "evil.example@127.0.0.1", "127.0.0.1/evil.example", "127.0.0.1#evil.example"
    for name in ("evil.example", "127.0.0.1.evil.example", "", "[::1", *strange):
        assert client.get(f"/{TOKEN}/", host=f"{name}:{server.port}").status == 421
    assert client.get("/", host=f"127.0.0.1:{server.port}").status == 403
    server.stop()


def test_asks_for_another_port_where_one_is_in_use_and_for_another_host_where_it_is_unknown(
    folder: Path,
) -> None:
    exploration = explore_runs([folder])
    taken = Server(exploration)
    with pytest.raises(RunError, match="choose another --port"):
        Server(exploration, port=taken.port)
    with pytest.raises(RunError, match="choose another --host"):
        Server(exploration, host="192.0.2.1", token=TOKEN)  # of no machine: for documentation


def test_two_servers_have_different_tokens(data: str) -> None:
    from helpers.explorer import MODEL

    exploration = explore_models([MODEL], data)
    first, second = Server(exploration), Server(exploration)
    assert first.link.split("/")[3] != second.link.split("/")[3]
    assert len(first.link.split("/")[3]) >= 32
