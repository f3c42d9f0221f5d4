"""The screen in a browser: it is there for who has the address, takes keys, and asks for nothing elsewhere."""

from __future__ import annotations

import http.client
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from shardscope.web_server import LoopbackServer
from tests.browser import CHROMIUM, browser

from .conftest import Shardscope

KEPT = Path(__file__).parent.parent / "tui" / "looks" / "fsdp_tp.capture"


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Where the screen of a capture is."""
    command = [sys.executable, "-m", "shardscope", "serve", "open", str(KEPT)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        yield server.stderr.readline().split()[-1]
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 128 + signal.SIGTERM
    finally:
        server.kill()
        server.communicate()


def status(address: str, path: str | None = None, **headers: str) -> int:
    """What is answered to a request for exactly this path, with these headers beside, or in the place of, the usual."""
    parts = urlsplit(address)
    connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=30)
    try:
        connection.putrequest("GET", parts.path if path is None else path, skip_host="Host" in headers)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        connection.endheaders()
        return connection.getresponse().status
    finally:
        connection.close()


def test_it_listens_here_alone(address: str) -> None:
    parts = urlsplit(address)
    assert parts.hostname == "127.0.0.1"
    assert len(parts.path.strip("/")) >= 32  # 24 random bytes
    assert status(address) == 200
    assert status(address, Host=f"localhost:{parts.port}") == 200
    assert status(f"{address}ws", Origin=f"http://{parts.netloc}", **SOCKET) == 101


@pytest.mark.parametrize(
    "path", ["/", "/ws", "/static/css/xterm.css", "/x/ws", "/%2e/ws", "//ws", "/..//static/css/xterm.css", "*"]
)
def test_without_the_secret_there_is_nothing(address: str, path: str) -> None:
    assert status(address, path) in (400, 404)


@pytest.mark.parametrize(
    "above", ["..", "../..", "%2e%2e", "..%2f..", "%2e%2e%2f%2e%2e", "..\\..", "....//", "%00", "../../../../../../.."]
)
def test_no_other_files(address: str, above: str) -> None:
    """Of what textual-serve has beside its static files, and of this machine."""
    secret = urlsplit(address).path
    assert status(address, f"{secret}static/css/xterm.css") == 200
    for file in ("server.py", "templates/app_index.html", "etc/passwd"):
        assert status(address, f"{secret}static/{above}/{file}") in (400, 403, 404)
    assert status(address, f"{secret}download/{above}/etc/passwd") in (400, 403, 404)


SOCKET = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec_WebSocket_Version": "13"}
SOCKET |= {"Sec_WebSocket_Key": "AAAAAAAAAAAAAAAAAAAAAA=="}
HOSTS = [
    "example.org",
    "127.0.0.1.example.org:{}",
    "example.org:{}",
    "127.0.0.1",
    "127.0.0.1:1",
    "0.0.0.0:{}",
    "",
    "[::1]:{}",
]


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("path", ["", "ws"])
def test_a_name_that_is_bound_to_this_machine_later(address: str, host: str, path: str) -> None:
    """DNS rebinding: the request of a page of another site has that site's name."""
    parts = urlsplit(address)
    assert status(address, parts.path + path, Host=host.format(parts.port)) in (400, 403)


@pytest.mark.parametrize(
    "origin",
    ["http://example.org", "null", "http://127.0.0.1", "https://127.0.0.1:{}", "http://127.0.0.1:{}.example.org"],
)
@pytest.mark.parametrize("path", ["", "ws"])
def test_other_sites(address: str, origin: str, path: str) -> None:
    parts = urlsplit(address)
    assert status(address, parts.path + path, Origin=origin.format(parts.port), **SOCKET) == 403


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ("open nothing.hlo", b"cannot read nothing.hlo: No such file or directory"),
        ("open -", b"a browser has no standard input"),
        ("open --bogus x", b"--bogus"),
        ("run", b"function"),
        ("diff --stage=none a b", b"--stage"),
        ("targets", b"COMMAND"),
    ],
)
def test_refused_before_it_listens(
    shardscope: Shardscope, monkeypatch: pytest.MonkeyPatch, arguments: str, why: bytes
) -> None:
    monkeypatch.setattr(LoopbackServer, "until_stopped", lambda _: pytest.fail("it listens"))
    done = shardscope("serve", *arguments.split())
    assert done.returncode == 2
    assert done.stderr.count(b"\n") == 1
    assert why in done.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_screen_in_a_browser(address: str, tmp_path: Path) -> None:
    parts = urlsplit(address)
    with browser(tmp_path / "profile") as page:
        page.open(address)
        page.until_received(b"reduce-scatter")
        page.value("document.querySelector('.xterm-helper-textarea').focus()")
        before = len(page.received)
        page.press("?")
        page.until_received(b"panes are linked", since=before)
        own = f"{parts.scheme}://{parts.netloc}"
        elsewhere = [each for each in page.said if each.startswith("http") and not each.startswith(own)]
        refused = [each for each in page.said if "Content Security Policy" in each]
        assert all(any(each in one for one in refused) for each in elsewhere)
