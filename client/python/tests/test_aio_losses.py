"""The losses with redlockd.AsyncRedlock, on a cluster of their own, which they stop and cut."""

import unittest

import scenarios
from support import AsyncClient


class AsyncLosses(scenarios.Losing, scenarios.Base):
    Client = AsyncClient
    options = {"daemons": 1, "masters": 3, "config": scenarios.CONFIG}


if __name__ == "__main__":
    unittest.main()
