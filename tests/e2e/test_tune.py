"""tern tune: what it finds is kept, taken and told; it changes no text."""
import json
import os
import pathlib
import subprocess
import tempfile
import unittest

from program import BAD_INPUT, FINE, PROGRAM, SMALL, ProgramTest, path

PLUGIN = (pathlib.Path(PROGRAM).parent / "libtern-llvm.so").exists()


class Tune(ProgramTest):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.cache = pathlib.Path(folder.name)
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.cache))

    def call(self, *args, code=FINE):
        done = subprocess.run([PROGRAM, *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, timeout=300, env=self.env)
        self.assertEqual(done.returncode, code, done.stderr.decode(errors="replace"))
        return done

    def answer(self, *more):
        done = self.call("run", path(SMALL), "-p", "Hello tern", "-n", 8, "--temp", 0, "--ignore-eos", "--json", *more)
        return json.loads(done.stdout)["ids"], done.stderr.decode()

    @unittest.skipUnless(PLUGIN, "this build has no code generator to compile variants with")
    def test_is_kept_and_taken(self):
        before, errors = self.answer()
        self.assertEqual(errors, "")
        told = json.loads(self.call("tune", path(SMALL), "-r", 1, "--dry-run", "--json").stdout)
        self.assertGreater(told["variants"], 4)
        self.assertIsNone(told["path"])
        self.assertFalse((self.cache / "tern/tuning").exists())
        told = json.loads(self.call("tune", path(SMALL), "-r", 2, "--json").stdout)
        kept = pathlib.Path(told["path"])
        self.assertEqual(kept.parent, self.cache / "tern/tuning")
        self.assertEqual(len(kept.read_text().splitlines()), 1 + len(told["tuned"]))
        self.assertEqual(self.answer()[0], before)
        self.take_another(kept)
        self.assertEqual(self.answer()[0], before)
        # Damage is told, and the usual variants are taken.
        kept.write_text("nonsense\n")
        ids, errors = self.answer()
        self.assertEqual(ids, before)
        self.assertRegex(errors, r"line 1 of the tuning .*tern tune.*\n$")
        self.assertEqual(self.answer("--no-tuning"), (before, ""))

    def variants(self, *more):
        told = json.loads(self.call("explain", path(SMALL), "--json", *more).stdout)
        return {s["problem"]: s["variant"] for r in told["ranges"] for s in r["steps"] if s["variant"].startswith("matmul.")}

    def take_another(self, kept):
        """A table of ours: one problem in another than the usual variant."""
        usual = self.variants("--no-tuning")
        problem, variant = next((p, v) for p, v in usual.items() if " t" in v)
        kernel, words = variant.split(" ", 1)
        other = "t1 u1" if words != "t1 u1" else "t1 u2"
        header = kept.read_text().splitlines()[0]
        kept.write_text(f"{header}\n{kernel}\t{other}\t1e-6\t2e-6\t{problem}\n")
        self.assertEqual(self.variants()[problem], f"{kernel} {other}")
        self.assertEqual(self.variants("--no-tuning"), usual)

    def test_refusals(self):
        self.refused(BAD_INPUT, "tune", "no_such_file.gguf")
        self.refused(1, "tune", path(SMALL), "--rounds", "0")


if __name__ == "__main__":
    unittest.main()
