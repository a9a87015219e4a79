#!/usr/bin/env python3
"""Runs all tests of the Python client, the test modules in parallel: run.py [MODULE ...]

The last lines are a summary for people and one for tests/run.sh.
"""

import json
import os
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = ["test_core", "test_package"]
MODULES += ["test_sync", "test_sync_losses", "test_aio", "test_aio_losses"]


def run_module(module):
    """In a child: the log on standard error, the counts on standard output."""
    suite = unittest.defaultTestLoader.loadTestsFromName(module)
    result = unittest.TextTestRunner(stream=sys.stderr, verbosity=2).run(suite)
    failures, errors = len(result.failures), len(result.errors)
    names = [str(test).split()[0] for test, _ in result.failures + result.errors]
    counts = {"run": result.testsRun, "failures": failures, "errors": errors, "failed": names}
    print(json.dumps(counts))


def main(modules):
    environment = dict(os.environ, PYTHONDONTWRITEBYTECODE="1", PYTHONPATH=HERE)
    children = [
        subprocess.Popen(
            [sys.executable, os.path.join(HERE, "run.py"), "--module", module],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=environment,
        )
        for module in modules
    ]
    total, failures, errors = 0, 0, 0
    for module, child in zip(modules, children):
        out, log = child.communicate()
        try:
            counts = json.loads(out.splitlines()[-1])
        except (IndexError, ValueError):  # it has crashed
            counts = {"run": 1, "failures": 0, "errors": 1, "failed": ["all"]}
        total += counts["run"]
        failures += counts["failures"]
        errors += counts["errors"]
        if counts["failed"]:
            print(log)
            for name in counts["failed"]:
                print(f"{module}.py:1:F:{name}: see the log above")
    bad = failures + errors
    print(f"{total - bad} passed, {bad} failed")
    percent = 100 * (total - bad) // total if total else 0
    print(f"{percent}%: Checks: {total}, Failures: {failures}, Errors: {errors}")
    return 0 if bad == 0 and total > 0 else 1


if __name__ == "__main__":
    if sys.argv[1:2] == ["--module"]:
        run_module(sys.argv[2])
    else:
        sys.exit(main(sys.argv[1:] or MODULES))
