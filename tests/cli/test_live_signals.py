"""The signals of a run are let go of before its loop closes."""

from __future__ import annotations

import asyncio
import signal

from wfdsl.cli.display.live import stopped_by_signals


def test_no_signal_writes_to_a_loop_that_is_about_to_close() -> None:
    async def main() -> int:
        await stopped_by_signals(asyncio.sleep(0), "")
        return signal.set_wakeup_fd(-1)

    before = signal.getsignal(signal.SIGTERM)
    assert asyncio.run(main()) == -1
    assert signal.getsignal(signal.SIGTERM) == before
