"""A chat server in a thread that counts what it is asked, for tests that kill processes around it."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Refused(Exception):  # noqa: N818
    """What `answer` raises to refuse a request as one too many."""

    retry_after = "1"


class ChatServer:
    """Speaks OpenAI's chat API. No two replies are the same, so that a second call for one step shows."""

    def __init__(self, *, delay_s: float = 0.0, port: int = 0, text: str | None = None) -> None:
        """`text` is what every reply says instead."""
        self.asked: list[str] = []
        """The last message of each request, in the order in which they came."""
        self.replied: dict[str, list[str]] = {}
        """The replies to each last message."""
        self.delay_s, self._text = delay_s, text
        self._news = threading.Condition()
        self._server = _Server(("127.0.0.1", port), _handler_of(self))
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def wait_for(self, requests: int, *, timeout_s: float = 60.0) -> None:
        """Wait until a number of requests have come in."""
        with self._news:
            assert self._news.wait_for(lambda: len(self.asked) >= requests, timeout_s), "the requests did not come"

    def answer(self, body: dict[str, Any]) -> str:
        subtask = str(body["messages"][-1]["content"])
        with self._news:
            self.asked.append(subtask)
            text = self._text or f"reply {len(self.asked)}"
            self._news.notify_all()
        time.sleep(self.delay_s)
        with self._news:
            self.replied.setdefault(subtask, []).append(text)
        return text


class _Server(ThreadingHTTPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore clients that were killed."""


_USAGE = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}


def _whole(text: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
    return json.dumps(
        {"id": "1", "object": "chat.completion", "model": "m", "choices": [choice], "usage": _USAGE}
    ).encode()


def _streamed(text: str) -> bytes:
    first = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}
    last = {"index": 0, "delta": {}, "finish_reason": "stop"}
    chunk = {"id": "1", "object": "chat.completion.chunk", "model": "m"}
    events = [{**chunk, "choices": [first]}, {**chunk, "choices": [last]}, {**chunk, "choices": [], "usage": _USAGE}]
    lines = [f"data: {json.dumps(event)}\n\n" for event in events]
    return "".join([*lines, "data: [DONE]\n\n"]).encode()


def _handler_of(chat: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            try:
                text = chat.answer(body)
            except Refused as refused:
                self.send_response(429)
                self.send_header("retry-after", refused.retry_after)
                self.send_header("content-length", "0")
                self.end_headers()
                return
            data = _streamed(text) if body.get("stream") else _whole(text)
            self.send_response(200)
            self.send_header("content-type", "text/event-stream" if body.get("stream") else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name that it overrides)
            """Quiet."""

    return Handler
