"""What all tests share: how hypothesis searches, and that Ctrl-C is heard.

`ci` draws the same examples on every run. `WFDSL_HYPOTHESIS=explore pytest` draws new and many more ones.
"""

from __future__ import annotations

import os
import signal

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "ci", max_examples=150, derandomize=True, database=None, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile("explore", max_examples=3000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("WFDSL_HYPOTHESIS", "ci"))

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # Started in the background of a shell: what tests start and interrupt would inherit that it is ignored.
    signal.signal(signal.SIGINT, signal.default_int_handler)
