"""The processes of one training, as torchrun or `accelerate launch` start them.

Every process computes its part of the gradient. Only the first one runs workflows, so that one budget, one set of rate
limits and one journal hold for all, and only it writes files and messages. So results do not depend on how completions
are split. Values travel through torch.distributed, in a group of their own on the CPU.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final, TypeVar

from wfdsl.errors import UsageError, WfdslError

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")
_LOST: Final = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed")
"""Messages of torch.distributed about a process that has ended."""


class OtherProcessEnded(WfdslError):  # noqa: N818  (what it says)
    """Another process of the training ended, so this one ends too."""


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a training, seen from one of them. All of them must get to each of its methods."""

    rank: int = 0
    count: int = 1
    group: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this process runs workflows and writes."""
        return self.rank == 0

    def on_first(self, work: Callable[[], _Result]) -> _Result:
        """The result of work that only the first process does, in all of them; if it fails, its end ends their wait."""
        values: list[Any] = [work() if self.is_first else None]
        self._together("broadcast_object_list", values, src=0)
        return values[0]  # type: ignore[no-any-return]

    async def on_all(
        self, items: Sequence[_Item], work: Callable[[list[_Item]], Awaitable[_Result]]
    ) -> tuple[_Result, slice]:
        """The result of the first process's work on the items of all processes, and the place of one's own items."""
        parts: list[Any] = [list(items)] * self.count
        await asyncio.to_thread(self._together, "all_gather_object", parts, parts[0])
        begin = sum(map(len, parts[: self.rank]))
        done: Any = await work([item for part in parts for item in part]) if self.is_first else None
        return await asyncio.to_thread(self.on_first, lambda: done), slice(begin, begin + len(items))

    def _together(self, operation: str, *values: Any, **named: Any) -> None:
        """An operation of torch.distributed in which all processes take part."""
        if self.count > 1:
            from torch import distributed  # noqa: PLC0415  (a dry run needs no torch)

            getattr(distributed, operation)(*values, group=self.group, **named)


ALONE: Final = Processes()
"""The one process of an ordinary training."""


@contextmanager
def joined(asked: int | None = None) -> Iterator[Processes]:
    """The processes of the training inside the block, which they leave together; `asked` is how many there should be.

    Where another process has ended or is interrupted, all but the first one end without a message.

    Raises:
        UsageError: there are more or fewer.
        OtherProcessEnded: another process has ended, and says why.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if asked is not None and asked != count:
        raise UsageError(
            f"train.processes is {asked}, and {count} {'was' if count == 1 else 'were'} started; start them with: "
            f"torchrun --nproc_per_node {asked} -m wfdsl_rl.cli.train ..."
        )
    if count == 1:
        yield ALONE
        return
    import torch  # noqa: PLC0415  (a dry run needs no torch)
    from accelerate import PartialState  # noqa: PLC0415

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        # FSDP computes norms of weights and gradients on the CPU where it keeps them there.
        torch.distributed.init_process_group("cpu:gloo,cuda:nccl")
    PartialState(cpu=not torch.cuda.is_available())
    # The others wait while the first process runs workflows. A process that ends, ends the wait at once.
    group = torch.distributed.new_group(backend="gloo", timeout=timedelta(days=7))
    found = Processes(torch.distributed.get_rank(), count, group)
    try:
        yield found
        torch.distributed.barrier(group=group)  # one that closes them while others still use them may abort
        torch.distributed.destroy_process_group()
    except (KeyboardInterrupt, RuntimeError) as error:
        is_lost = any(said in str(error) for said in _LOST)
        if not found.is_first and (is_lost or isinstance(error, KeyboardInterrupt)):
            raise SystemExit(1) from None
        if not is_lost:
            raise
        raise OtherProcessEnded(
            "another process of this training ended; look for its message, then continue with --resume DIR"
        ) from error
