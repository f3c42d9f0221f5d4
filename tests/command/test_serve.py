"""The screen in a browser: it is there for who has the address, takes keys, and asks for nothing elsewhere."""

from __future__ import annotations

import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.browser import CHROMIUM, browser

KEPT = Path(__file__).parent.parent / "tui" / "looks" / "fsdp_tp.capture"


def status(address: str, **headers: str) -> int:
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here")
def test_a_screen_in_a_browser(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shardscope", "serve", "open", str(KEPT)]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert server.stderr is not None
        address = server.stderr.readline().split()[-1]
        root = answers_its_address_alone(address)
        with browser(tmp_path / "profile") as page:
            page.open(address)
            page.until_received(b"reduce-scatter")
            page.value("document.querySelector('.xterm-helper-textarea').focus()")
            before = len(page.received)
            page.press("?")
            page.until_received(b"panes are linked", since=before)
            elsewhere = [each for each in page.said if each.startswith("http") and not each.startswith(root)]
            refused = [each for each in page.said if "Content Security Policy" in each]
            assert all(any(each in one for one in refused) for each in elsewhere)
        server.send_signal(signal.SIGTERM)
        assert server.wait(30) == 128 + signal.SIGTERM
    finally:
        server.kill()
        server.communicate()


def answers_its_address_alone(address: str) -> str:
    parts = urlsplit(address)
    root = f"{parts.scheme}://{parts.netloc}"
    assert parts.hostname == "127.0.0.1"
    assert status(address) == 200
    assert status(f"{root}/") == status(f"{root}/ws") == status(f"{root}/static/css/xterm.css") == 404
    assert status(address, Origin="http://example.org") == status(address, Host="example.org") == 403
    return root
