"""The losses with redlockd.Redlock, on a cluster of their own, which they stop and cut."""

import unittest

import scenarios
from support import SyncClient


class SyncLosses(scenarios.Losing, scenarios.Base):
    Client = SyncClient
    options = {"daemons": 1, "masters": 3, "config": scenarios.CONFIG}


if __name__ == "__main__":
    unittest.main()
