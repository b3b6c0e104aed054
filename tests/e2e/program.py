"""Drives the program as a person or a script would. The tests use Python's own library only."""
import json
import os
import pathlib
import re
import subprocess
import unittest

PROGRAM = os.environ["TERN_PROGRAM"]
GGUF = pathlib.Path(os.environ["TERN_TEST_DATA"]) / "gguf"
SANITIZED = bool(os.environ.get("TERN_SANITIZE"))
MANIFEST = json.loads((GGUF / "manifest.json").read_text())
CASES = {case["name"]: case for case in MANIFEST["cases"]}

FINE, WRONG_USE, BAD_INPUT, NO_RESOURCE, CHECK_FAILED = range(5)
SMALL = "model_ok_small.gguf"
# Formats and families that this build refuses by name; their cases may end in that refusal.
LATER = re.compile(r"^q_id(142_pq2_0|42_g128)|^model_hadamard")


def path(name):
    return str(GGUF / name)


def call(*args, stdin=None, timeout=300):
    """Runs the program; without stdin the input is an empty pipe."""
    return subprocess.run([PROGRAM, *map(str, args)], input=stdin if stdin is not None else b"", capture_output=True, timeout=timeout)


def shown(master):
    """All that a program wrote to a terminal whose other end is closed: it comes in pieces."""
    data = b""
    try:
        while piece := os.read(master, 65536):
            data += piece
    except OSError:  # the end, as Linux tells it
        pass
    os.close(master)
    return data.decode(errors="replace")


def mentions(case, text):
    return all(re.search(pattern, text, re.I) for pattern in case["must_mention"])


class ProgramTest(unittest.TestCase):
    def ok(self, *args, stdin=None):
        done = call(*args, stdin=stdin)
        self.assertEqual(done.returncode, FINE, (args, done.stderr.decode(errors="replace")))
        self.assertEqual(done.stderr, b"", args)  # quiet in a pipe
        return done.stdout

    def ok_json(self, *args, stdin=None):
        return json.loads(self.ok(*args, "--json", stdin=stdin).decode("utf-8"))

    def refused(self, code, *args, stdin=None, says=None):
        """One line on stderr, nothing on stdout."""
        done = call(*args, stdin=stdin)
        error = done.stderr.decode(errors="replace")
        self.assertEqual(done.returncode, code, (args, error))
        self.assertEqual(done.stdout, b"", args)
        self.assertTrue(error.startswith("tern: "), error)
        self.assertEqual(error.count("\n"), 1, error)
        if says is not None:
            self.assertRegex(error, re.compile(says, re.I))
        return error
