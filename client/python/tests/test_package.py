"""The package as such: its version, its types, and how it is installed."""

import glob
import os
import pickle
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import scenarios
import support
import test_sync
import redlockd


class Package(unittest.TestCase):
    def test_version_is_that_of_redlockd(self):
        with open(os.path.join(support.ROOT, "Makefile"), encoding="utf-8") as makefile:
            version = re.search(r"^VERSION := (\S+)$", makefile.read(), re.MULTILINE)[1]
        self.assertEqual(redlockd.__version__, version)

    def test_licence_is_that_of_redlockd(self):
        texts = []
        for folder in (support.ROOT, support.PACKAGE):
            with open(os.path.join(folder, "LICENSE"), encoding="utf-8") as licence:
                texts.append(licence.read())
        self.assertEqual(texts[0], texts[1])

    def test_every_scenario_has_a_test(self):
        names = []
        path = os.path.join(os.path.dirname(support.PACKAGE), "scenarios.md")
        with open(path, encoding="utf-8") as table:
            for line in table:
                if line.startswith("| `"):
                    names += re.findall(r"`([a-z_]+)`", line.split("|")[1])
        parts = [vars(part) for part in (
            scenarios.Acquiring, scenarios.Extending, scenarios.Losing, scenarios.Connecting,
            scenarios.Secured, test_sync.Sync,
        )]  # fmt: skip
        tests = {name for part in parts for name in part}
        self.assertEqual([name for name in names if f"test_{name}" not in tests], [])
        self.assertGreater(len(names), 30)

    def test_everything_public_has_a_docstring(self):
        for name in redlockd.__all__:
            thing = getattr(redlockd, name)
            self.assertTrue(thing.__doc__, name)
            for key, value in vars(thing).items():
                if not key.startswith("_") and (callable(value) or isinstance(value, property)):
                    self.assertTrue(value.__doc__, f"{name}.{key}")

    def test_errors_can_be_pickled(self):
        for error in (
            redlockd.NotAcquired("held", 1.5), redlockd.NoQuorum("2/5", {"a": "refused"}),
            redlockd.Lost("a", "gone"), redlockd.Lost("a", "unextended", "no daemon answers"),
            redlockd.Denied("no"), redlockd.Unavailable("full", "waiters"),
            redlockd.Rejected("ttl-range", "the TTL is too long"),
        ):  # fmt: skip
            copy = pickle.loads(pickle.dumps(error))
            self.assertEqual((type(copy), str(copy)), (type(error), str(error)))
            self.assertEqual(vars(copy), vars(error))

    def test_mypy_accepts_the_types(self):
        if shutil.which("mypy") is None:
            self.skipTest("mypy is not installed")
        with tempfile.TemporaryDirectory() as cache:
            argv = ["mypy", "--strict", "--cache-dir", cache, "redlockd"]
            done = subprocess.run(argv, cwd=support.PACKAGE, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_pip_installs_it_offline(self):
        with tempfile.TemporaryDirectory() as directory:
            source = os.path.join(directory, "source")  # the build leaves files in its folder
            ignore = shutil.ignore_patterns("tests", "build", "*.egg-info", "__pycache__")
            shutil.copytree(support.PACKAGE, source, ignore=ignore)
            target = os.path.join(directory, "target")
            pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation"]
            pip += ["--no-index", "--no-compile", "--target", target, source]
            done = subprocess.run(pip, capture_output=True, text=True)
            missing = ("No module named pip", "No module named 'setuptools'", "'bdist_wheel'")
            if any(text in done.stderr for text in missing):
                self.skipTest("pip, setuptools or (for an old setuptools) wheel is not installed")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertTrue(os.path.exists(os.path.join(target, "redlockd", "py.typed")))
            licences = glob.glob(os.path.join(target, "redlockd-*", "**", "LICENSE"), recursive=True)
            self.assertEqual(len(licences), 1)
            program = "import redlockd; print(redlockd.__version__)"
            environment = dict(os.environ, PYTHONPATH=target)
            done = subprocess.run(
                [sys.executable, "-c", program], cwd=directory, env=environment,
                capture_output=True, text=True,
            )  # fmt: skip
            self.assertEqual(done.stdout.strip(), redlockd.__version__, done.stderr)


if __name__ == "__main__":
    unittest.main()
