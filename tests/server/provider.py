"""A provider on loopback with many connections at a time, whose replies come word by word and can be held back."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

CONDUCTOR = "boss"


class Provider:
    """Answers chat completions; the model `boss` writes the workflows of `plans`, all others repeat their last line."""

    def __init__(self) -> None:
        self.reset()
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    def reset(self) -> None:
        """Forget everything."""
        self.plans: list[str] = []
        self.bodies: list[dict[str, Any]] = []
        self.status: dict[str, int] = {}
        """Models that answer with an error."""
        self.failure = b'{"error": {"message": "no luck"}}'
        self.answers: dict[str, str] = {}
        self.calls: dict[str, list[tuple[str, str]]] = {}
        """Models that call tools, once they are offered some and have no results: names and arguments."""
        self.finishes: dict[str, str] = {}
        """How the replies of models end, if not by themselves."""
        self.held: set[str] = set()
        """Models that wait, after the first word, until `released` is set."""
        self.stuck = threading.Event()
        self.released = threading.Event()
        self.hung_up = threading.Event()
        """Set once a client has left a reply that was held back."""

    def asked(self, model: str) -> list[dict[str, Any]]:
        """The requests to a model."""
        return [body for body in self.bodies if body["model"] == model]

    def text(self, body: dict[str, Any]) -> str:
        with self._lock:
            self.bodies.append(body)
            if body["model"] == CONDUCTOR:
                return self.plans.pop(0)
        if self.tools_called(body):
            return "Let me see."
        content = body["messages"][-1]["content"]
        last = (content if isinstance(content, str) else content[0]["text"]).splitlines()[-1]
        return self.answers.get(body["model"], f"{body['model']} did: {last}")

    def tools_called(self, body: dict[str, Any]) -> list[tuple[str, str]]:
        """The tools that a model calls."""
        told = any(message["role"] == "tool" for message in body["messages"])
        offered = body.get("tools") and body.get("tool_choice") != "none"
        return self.calls.get(body["model"], []) if offered and not told else []

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)


def _handler(provider: Provider) -> Callable[..., BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            self.released, self.hung_up = provider.released, provider.hung_up  # those of this test
            model, text = body["model"], provider.text(body)
            if model in provider.status:
                self._send(provider.status[model], provider.failure, "application/json")
                return
            words = [f"{word} " for word in text.split(" ")]
            words[-1] = words[-1][:-1]
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.send_header("connection", "close")
            self.end_headers()
            usage = {"prompt_tokens": 10, "completion_tokens": len(words), "total_tokens": 10 + len(words)}
            for word in words:
                self._event({"choices": [{"index": 0, "delta": {"content": word}}]})
                if model in provider.held:
                    self._hold()
            calls = provider.tools_called(body)
            for index, (name, arguments) in enumerate(calls):
                about = {"index": index, "id": f"own{index}", "type": "function"}
                self._event(
                    {"choices": [{"index": 0, "delta": {"tool_calls": [{**about, "function": {"name": name}}]}}]}
                )
                for piece in (arguments[:3], arguments[3:]):
                    given = {"index": index, "function": {"arguments": piece}}
                    self._event({"choices": [{"index": 0, "delta": {"tool_calls": [given]}}]})
            finish = "tool_calls" if calls else provider.finishes.get(model, "stop")
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}], "usage": usage})
            self._write(b"data: [DONE]\n\n")

        def _hold(self) -> None:
            provider.stuck.set()
            self.connection.settimeout(0.02)
            while not self.released.is_set():
                try:
                    if not self.connection.recv(1):
                        self.hung_up.set()
                        return
                except TimeoutError:
                    continue
                except OSError:
                    self.hung_up.set()
                    return
            self.connection.settimeout(None)

        def _event(self, value: dict[str, Any]) -> None:
            self._write(b"data: " + json.dumps(value).encode() + b"\n\n")

        def _write(self, content: bytes) -> None:
            try:
                self.wfile.write(content)
            except OSError:
                self.hung_up.set()

        def _send(self, status: int, content: bytes, kind: str) -> None:
            self.send_response(status)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *args: Any) -> None:
            pass

    return Handler
