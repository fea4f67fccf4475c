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
_LONGEST_WAIT: Final = timedelta(days=7)
"""The others wait while the first process runs workflows. A process that ends, ends the wait at once."""
_BACKENDS: Final = "cpu:gloo,cuda:nccl"
"""Of the group on GPUs. FSDP computes norms of weights and gradients on the CPU where it keeps them there."""
_LOST: Final = ("Connection closed by peer", "Connection reset by peer", "Broken pipe", "Socket closed")
"""Messages of torch.distributed about a process that has ended."""


class OtherProcessEnded(WfdslError):  # noqa: N818  (what it says)
    """Another process of the training ended, so this one ends too."""


@dataclass(frozen=True, slots=True)
class Processes:
    """The processes of a training, seen from one of them."""

    rank: int = 0
    count: int = 1
    group: Any = None

    @property
    def is_first(self) -> bool:
        """Whether this process runs workflows and writes."""
        return self.rank == 0

    def everywhere(self, value: _Item) -> list[_Item]:
        """The values of all processes, by rank. All processes must get here, as for the other methods."""
        if self.count == 1:
            return [value]
        from torch import distributed  # noqa: PLC0415  (a dry run needs no torch)

        values: list[Any] = [None] * self.count
        with told_when_lost():
            distributed.all_gather_object(values, value, group=self.group)
        return values

    def on_first(self, work: Callable[[], _Result]) -> _Result:
        """The result of work that only the first process does.

        Raises:
            OtherProcessEnded: the first process failed, and says why.
        """
        return self._from_first(work() if self.is_first else None)  # type: ignore[no-any-return]

    async def on_all(
        self, items: Sequence[_Item], work: Callable[[list[_Item]], Awaitable[_Result]]
    ) -> tuple[_Result, slice]:
        """The result of the first process's work on the items of all processes, and the place of one's own items.

        Raises:
            OtherProcessEnded: the first process failed, and says why.
        """
        parts = await asyncio.to_thread(self.everywhere, list(items))
        begin = sum(map(len, parts[: self.rank]))
        done = await work([item for part in parts for item in part]) if self.is_first else None
        return await asyncio.to_thread(self._from_first, done), slice(begin, begin + len(items))

    def leave(self) -> None:
        """Wait for all processes, then close the connections: one that ends while others still use them may abort."""
        if self.count == 1:
            return
        from torch import distributed  # noqa: PLC0415  (a dry run needs no torch)

        with told_when_lost():
            distributed.barrier(group=self.group)
        distributed.destroy_process_group()

    def _from_first(self, value: Any) -> Any:
        """The first process's value, in all of them. Where it fails before, its end ends the wait of the others."""
        values = [value]
        if self.count > 1:
            from torch import distributed  # noqa: PLC0415  (a dry run needs no torch)

            with told_when_lost():
                distributed.broadcast_object_list(values, src=0, group=self.group)
        return values[0]


ALONE: Final = Processes()
"""The one process of an ordinary training."""


def rank_prefix() -> str:
    """Tells the processes of a distributed training apart, which may have completions of the same row."""
    rank = os.environ.get("RANK", "0")
    return "" if rank == "0" else f"{rank}-"


def join_processes(asked: int | None = None) -> Processes:
    """Join the other processes of the training; `asked` is how many there should be, if that was said.

    Raises:
        UsageError: there are more or fewer.
    """
    count = int(os.environ.get("WORLD_SIZE", "1"))
    if asked is not None and asked != count:
        raise UsageError(
            f"train.processes is {asked}, and {count} {'was' if count == 1 else 'were'} started; start them with: "
            f"torchrun --nproc_per_node {asked} -m wfdsl_rl.cli.train ..."
        )
    if count == 1:
        return ALONE
    import torch  # noqa: PLC0415  (a dry run needs no torch)
    from accelerate import PartialState  # noqa: PLC0415

    if torch.cuda.is_available():
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
        torch.distributed.init_process_group(_BACKENDS)
    PartialState(cpu=not torch.cuda.is_available())
    group = torch.distributed.new_group(backend="gloo", timeout=_LONGEST_WAIT)
    return Processes(torch.distributed.get_rank(), count, group)


@contextmanager
def told_when_lost() -> Iterator[None]:
    """Say that another process has ended, instead of an error of its connection."""
    try:
        yield
    except RuntimeError as error:
        if not any(said in str(error) for said in _LOST):
            raise
        raise OtherProcessEnded(
            "another process of this training ended; look for its message, then continue with --resume DIR"
        ) from error
