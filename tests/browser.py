"""A headless Chromium, spoken to through a pipe (https://chromedevtools.github.io/devtools-protocol)."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
MAX_WAIT_S = 60.0


class Browser:
    """One page; `said` are errors, messages of its console, and addresses that it asked for.

    `received` is what came through web sockets.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._rest = b""
        self._number = 0
        self._session: dict[str, str] = {}
        self.said: list[str] = []
        self.received = b""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session |= {"sessionId": self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]}
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and return its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters, **self._session}
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, (method, answer["error"])
                return dict(answer["result"])

    def open(self, address: str) -> None:
        """Go to an address, and wait until it is there."""
        self.send("Page.navigate", url=address)
        self.until("document.readyState === 'complete' && location.href !== 'about:blank'")

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is in the page."""
        found = self.send("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + MAX_WAIT_S
        while not self.value(expression):
            assert time.monotonic() < end, expression
            time.sleep(0.05)

    def until_received(self, text: bytes, since: int = 0) -> None:
        """Wait until a web socket has brought a text, after so many bytes."""
        end = time.monotonic() + MAX_WAIT_S
        while text not in self.received[since:]:
            assert time.monotonic() < end, (text, self.received[-2000:])
            self.value("0")
            time.sleep(0.05)

    def press(self, keys: str) -> None:
        """Press keys one after the other."""
        for key in keys:
            self.send("Input.dispatchKeyEvent", type="keyDown", key=key, text=key)
            self.send("Input.dispatchKeyEvent", type="keyUp", key=key)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._rest:
            read = os.read(self._answers, 1 << 16)
            assert read, "the browser has ended"
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        answer: dict[str, Any] = json.loads(message)
        parameters = answer.get("params", {})
        match answer.get("method"):
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled" | "Log.entryAdded":
                self.said.append(json.dumps(parameters))
            case "Network.requestWillBeSent":
                self.said.append(parameters["request"]["url"])
            case "Network.webSocketFrameReceived":
                frame = parameters["response"]
                data = frame["payloadData"]
                self.received += data.encode() if frame["opcode"] == 1 else base64.b64decode(data)
        return answer


@contextmanager
def browser(folder: Path) -> Iterator[Browser]:
    """A browser whose files lie in a folder."""
    assert CHROMIUM is not None
    to_read, commands = os.pipe()
    answers, to_write = os.pipe()
    script = f'exec 3<&{to_read} 4>&{to_write}; exec "$0" "$@"'
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run"]
    options += ["--disable-dev-shm-usage", "--disable-background-networking", f"--user-data-dir={folder}"]
    process = subprocess.Popen(
        ["bash", "-c", script, CHROMIUM, *options],
        pass_fds=(to_read, to_write),
        stderr=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )
    os.close(to_read)
    os.close(to_write)
    try:
        yield Browser(commands, answers)
    finally:
        os.close(commands)
        os.close(answers)
        process.terminate()
        process.wait(MAX_WAIT_S)
