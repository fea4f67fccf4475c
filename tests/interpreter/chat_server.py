"""A chat server in a thread that keeps what it is asked: the provider of tests whose runs need a real one."""

from __future__ import annotations

import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self


class Refused(Exception):  # noqa: N818
    """What `answer` raises to refuse a request, if not otherwise said as one too many."""

    retry_after = "1"

    def __init__(self, status: int = 429) -> None:
        self.status = status


class ChatServer:
    """Speaks OpenAI's chat API. No two replies are the same, so that a second call for one step shows."""

    finish = "stop"

    def __init__(self, *, delay_s: float = 0.0, port: int = 0, text: str | None = None) -> None:
        """`text` is what every reply says instead."""
        self.asked: list[Any] = []
        """The last message of each request, in the order in which they came."""
        self.replied: dict[str, list[str]] = {}
        """The replies to each last message."""
        self.keys: set[str] = set()
        """What was sent as the key."""
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

    def pool_file(self, *names: str, more: str = "") -> str:
        """A pool file with workers of these names here, each with further lines."""
        base = f'provider = "openai"\nbase_url = "{self.url}"\n{more}\n'
        return "".join(f'[[pool.workers]]\nname = "{name}"\nmodel = "{name}"\n{base}' for name in names)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

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


def _reply(text: str, finish: str, *, streamed: bool) -> bytes:
    kind, where = ("chat.completion.chunk", "delta") if streamed else ("chat.completion", "message")
    choice = {"index": 0, where: {"role": "assistant", "content": text}, "finish_reason": finish}
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "total_tokens": 12}
    reply = json.dumps({"id": "1", "object": kind, "model": "m", "choices": [choice], "usage": usage})
    return (f"data: {reply}\n\ndata: [DONE]\n\n" if streamed else reply).encode()


def _handler_of(chat: ChatServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            chat.keys.add(self.headers.get("authorization", ""))
            streamed = bool(body.get("stream"))
            try:
                data = _reply(chat.answer(body), chat.finish, streamed=streamed)
                self.send_response(200)
            except Refused as refused:
                streamed, data = False, b'{"error": {"message": "no"}}'
                self.send_response(refused.status)
                self.send_header("retry-after", refused.retry_after)
            self.send_header("content-type", "text/event-stream" if streamed else "application/json")
            self.send_header("content-length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name that it overrides)
            """Quiet."""

    return Handler
