"""Where memory is short the program says so: exit code 3 and one sentence, at every limit."""
import os
import resource
import subprocess
import tempfile
import unittest

from program import FINE, NO_RESOURCE, PROGRAM, SANITIZED, SMALL, ProgramTest, path

MIB = 1 << 20


@unittest.skipIf(SANITIZED, "sanitizers reserve terabytes of addresses")
class Memory(ProgramTest):
    def limited(self, mebibytes, cache):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (mebibytes * MIB, mebibytes * MIB))
        command = [PROGRAM, "run", path(SMALL), "--prompt-ids", "1,43,72", "-n", "2", "--temp", "0", "--threads", "3"]
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=120,
                              env={**os.environ, "XDG_CACHE_HOME": cache}, preexec_fn=limit)

    def sweep(self, limits, fresh):
        """Every exit is an answer or a sentence; fresh: without compiled kernels."""
        with tempfile.TemporaryDirectory() as cache:
            if not fresh:
                self.assertEqual(self.limited(2000, cache).returncode, FINE)
            return self.codes(limits, cache, fresh)

    def codes(self, limits, cache, fresh):
        codes = set()
        for mebibytes in limits:
            done = self.limited(mebibytes, os.path.join(cache, str(mebibytes)) if fresh else cache)
            error = done.stderr.decode(errors="replace")
            if "error while loading shared libraries" in error:
                continue  # not even started
            with self.subTest(mebibytes):
                self.assertIn(done.returncode, (FINE, NO_RESOURCE), error)
                if done.returncode == NO_RESOURCE:
                    self.assertTrue(error.startswith("tern: "), error)
                    self.assertEqual(error.count("\n"), 1, error)
                codes.add(done.returncode)
        return codes

    def test_with_compiled_kernels(self):
        self.assertEqual(self.sweep(range(16, 260, 6), fresh=False), {FINE, NO_RESOURCE})

    def test_with_kernels_to_compile(self):
        self.assertEqual(self.sweep(range(40, 700, 60), fresh=True), {FINE, NO_RESOURCE})


if __name__ == "__main__":
    unittest.main()
