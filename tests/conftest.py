"""What all tests share: how hypothesis searches.

`ci` draws the same examples on every run. `WFDSL_HYPOTHESIS=explore pytest` draws new and many more ones.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

_SLOW = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "ci", max_examples=150, derandomize=True, database=None, deadline=None, suppress_health_check=_SLOW
)
settings.register_profile("explore", max_examples=3000, deadline=None, suppress_health_check=_SLOW)
settings.load_profile(os.environ.get("WFDSL_HYPOTHESIS", "ci"))
