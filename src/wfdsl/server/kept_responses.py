"""Earlier responses that a request names by their ids: `previous_response_id`, and items of the type `item_reference`.

A response is kept in the journal with the items that it was asked and those that it gave, so it is found again after a
restart. No key finds the responses of another one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wfdsl.errors import JournalFailure
from wfdsl.interpreter.journal import Journal
from wfdsl.interpreter.journal_responses import keep_response, response_of
from wfdsl.server.api_errors import ApiError, not_supported

RESPONSE_PREFIX = "resp_"


class KeptResponses:
    """The responses of one API key."""

    def __init__(self, journal: Journal | None, key: str) -> None:
        """Without a journal, nothing is kept; `key` is the key's name, and empty where no keys are needed."""
        self._journal = journal
        self._key = key

    @property
    def are_kept(self) -> bool:
        """Whether responses can be kept."""
        return self._journal is not None

    async def keep(
        self, response_id: str, run_id: str, *, previous: str | None, asked: Sequence[Any], output: Sequence[Any]
    ) -> None:
        """Keep a response: the one before it, and the items of its input and output.

        Raises:
            ApiError: it cannot be kept now.
        """
        assert self._journal is not None  # callers have looked at `are_kept`
        content = {"previous": previous, "input": list(asked), "output": list(output)}
        try:
            await keep_response(self._journal, response_id, run_id, content)
        except JournalFailure as error:
            raise ApiError(503, str(error), code="journal_failed", headers={"retry-after": "5"}) from error

    def conversation(self, response_id: str) -> list[Any]:
        """The items of a response and of all before it, input and output, in order.

        Raises:
            ApiError: one of them is not kept.
        """
        found: list[list[Any]] = []
        following: str | None = response_id
        while following is not None:
            content = self._response(following, "previous_response_id")
            if content is None:
                message = f"previous response {following!r} was not found: send the whole conversation as input"
                raise ApiError(400, message, code="previous_response_not_found", param="previous_response_id")
            found.append([*content["input"], *content["output"]])
            following = content["previous"]
        return [item for items in reversed(found) for item in items]

    def item(self, item_id: Any, place: str) -> dict[str, Any]:
        """The item of a response's output that a reference names; `place` is where the reference is.

        Raises:
            ApiError: there is none.
        """
        # The id of an item holds that of its response: `msg_RESPONSE`, `fc_RESPONSE_0`.
        own = item_id.split("_") if isinstance(item_id, str) else []
        content = self._response(f"{RESPONSE_PREFIX}{own[1]}", place) if len(own) > 1 else None
        for item in [] if content is None else content["output"]:
            if item["id"] == item_id:
                return dict(item)
        message = f"{place}: item {item_id!r:.100} was not found: send the item itself; `store: false` keeps no items"
        raise ApiError(404, message, code="item_not_found", param=place)

    def _response(self, response_id: str, param: str) -> Mapping[str, Any] | None:
        if self._journal is None:
            raise not_supported(param, f"{param}: without a journal no responses are kept; send the items themselves")
        return response_of(self._journal.path, response_id, self._key)
