"""The screen in a browser on this machine: textual-serve behind an address that nobody can guess.

It listens on the loopback alone. Whoever has the address has the screen, and no more than the command behind it shows;
pages of other sites can neither ask for it (the names that a request may be for, and from, are checked) nor be asked
for anything by it.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import shlex
import signal
import socket
from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web
from textual_serve.server import Server

from shardscope.exit_code import ExitCode
from shardscope.signals import SIGNALLED
from shardscope.terminal import say

LOOPBACK = "127.0.0.1"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class LoopbackServer(Server):  # type: ignore[misc]
    """Runs a command anew for each page that is opened.

    Raises:
        OSError: The port is in use.
    """

    def __init__(self, command: Sequence[str], title: str, port: int) -> None:
        self._socket = socket.create_server((LOOPBACK, port))
        self._token = secrets.token_urlsafe(24)
        host = f"{LOOPBACK}:{self._socket.getsockname()[1]}"
        self._hosts = (host, host.replace(LOOPBACK, "localhost"))
        super().__init__(shlex.join(command), host=LOOPBACK, title=title, public_url=f"http://{host}")

    @property
    def address(self) -> str:
        """The address to open in a browser."""
        return f"{self.public_url}/{self._token}/"

    def until_stopped(self) -> ExitCode:
        """Serve until a signal ends it."""
        say(f"the screen is at {self.address}")
        say("whoever has this address can use it; Ctrl+C ends it")
        logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of screens that end after the server
        stopped: list[int] = []
        loop = asyncio.new_event_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._stop, stopped, number)
        web.run_app(self._make_app(), sock=self._socket, handle_signals=False, loop=loop, print=None, access_log=None)
        return ExitCode(SIGNALLED + stopped[0]) if stopped and stopped[0] != signal.SIGINT else ExitCode.DONE

    def _stop(self, stopped: list[int], number: int) -> None:
        stopped.append(number)
        self.request_exit()

    async def on_startup(self, app: web.Application) -> None:
        """Say nothing: the address has been said."""

    async def _make_app(self) -> web.Application:
        secret = web.Application(middlewares=[self._guard])
        secret.add_subapp(f"/{self._token}", await super()._make_app())
        return secret

    @web.middleware  # type: ignore[untyped-decorator]
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Answer pages of this address alone, and let what is answered ask for nothing elsewhere."""
        origin = request.headers.get("Origin")
        if request.host not in self._hosts or (origin and origin not in [f"http://{host}" for host in self._hosts]):
            raise web.HTTPForbidden(text="requests from other sites are rejected")
        response = await handler(request)
        if not response.prepared:
            sockets = " ".join(f"ws://{host}" for host in self._hosts)
            response.headers["Content-Security-Policy"] = (
                f"default-src 'self' 'unsafe-inline' data:; connect-src 'self' {sockets}; "
                "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
            )
            response.headers["Referrer-Policy"] = "no-referrer"
            response.headers["X-Content-Type-Options"] = "nosniff"
        return response
