"""A server with the part of the Hugging Face hub's interface that an upload uses."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from werkzeug import Request, Response

if TYPE_CHECKING:
    from pytest_httpserver import HTTPServer

_LARGE = (".safetensors", ".gguf", ".png")


class Hub:
    """Keeps what it is sent; large files come by Git LFS, as on the hub."""

    def __init__(self, server: HTTPServer) -> None:
        self.url = server.url_for("").rstrip("/")
        self.files: dict[str, bytes] = {}
        self.made: list[dict[str, Any]] = []
        self.broken = False
        """Whether commits are refused."""
        self._large: dict[str, bytes] = {}
        server.expect_request("/api/whoami-v2").respond_with_json({"type": "user", "name": "me"})
        server.expect_request("/api/validate-yaml").respond_with_json({"errors": [], "warnings": []})
        server.expect_request("/api/repos/create").respond_with_handler(self._create)
        server.expect_request("/api/models/me/conductor/preupload/main").respond_with_handler(self._preupload)
        server.expect_request("/me/conductor.git/info/lfs/objects/batch").respond_with_handler(self._batch)
        server.expect_request("/api/models/me/conductor/commit/main").respond_with_handler(self._commit)
        server.expect_request("/large", method="PUT").respond_with_handler(self._put)

    def _create(self, request: Request) -> Response:
        self.made.append(request.get_json())
        return _json({"url": f"{self.url}/me/conductor", "id": "me/conductor"})

    def _preupload(self, request: Request) -> Response:
        names = [each["path"] for each in request.get_json()["files"]]
        return _json({"files": [{"path": name, "uploadMode": _mode(name), "shouldIgnore": False} for name in names]})

    def _batch(self, request: Request) -> Response:
        def action(oid: str) -> dict[str, Any]:
            return {"upload": {"href": f"{self.url}/large?oid={oid}"}}

        found = request.get_json()["objects"]
        return _json({"transfer": "basic", "objects": [{**each, "actions": action(each["oid"])} for each in found]})

    def _put(self, request: Request) -> Response:
        self._large[request.args["oid"]] = request.get_data()
        return Response()

    def _commit(self, request: Request) -> Response:
        if self.broken:
            return Response("the hub is closed", status=403)
        for line in map(json.loads, request.get_data().splitlines()):
            value = line["value"]
            if line["key"] == "file":
                self.files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                self.files[value["path"]] = self._large[value["oid"]]
        return _json({"commitUrl": f"{self.url}/me/conductor/commit/{'a' * 40}", "commitOid": "a" * 40})


def _mode(name: str) -> str:
    return "lfs" if name.endswith(_LARGE) else "regular"


def _json(value: Any) -> Response:
    return Response(json.dumps(value), content_type="application/json")
