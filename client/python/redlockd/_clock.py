"""The clock of all deadlines."""

from __future__ import annotations

import time

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

# The TTLs on the masters go on while this machine sleeps. CLOCK_BOOTTIME counts that time, and
# CLOCK_MONOTONIC of Linux does not. On other systems, nothing better is portable.
if hasattr(time, "CLOCK_BOOTTIME"):

    def now_ns() -> int:
        """Nanoseconds since some moment in the past."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

else:
    now_ns = time.monotonic_ns
