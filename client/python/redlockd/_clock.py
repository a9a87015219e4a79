"""The clock of all deadlines."""

from __future__ import annotations

import sys
import time

NS_PER_MS = 1_000_000
NS_PER_S = 1_000_000_000

# The TTLs on the masters go on while this machine sleeps. On Linux CLOCK_BOOTTIME counts that time,
# and on macOS CLOCK_MONOTONIC_RAW. time.monotonic() counts it on neither of them. On other systems,
# nothing better is portable.
if sys.platform == "linux":

    def now_ns() -> int:
        """Nanoseconds since some moment in the past."""
        return time.clock_gettime_ns(time.CLOCK_BOOTTIME)

elif sys.platform == "darwin":

    def now_ns() -> int:
        """Nanoseconds since some moment in the past."""
        return time.clock_gettime_ns(time.CLOCK_MONOTONIC_RAW)

else:
    now_ns = time.monotonic_ns
