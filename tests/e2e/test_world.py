"""The world around the program: files that are none, outputs that fail, caches that break."""
import json
import os
import pathlib
import resource
import signal
import subprocess
import tempfile
import unittest

from program import BAD_INPUT, FINE, NO_RESOURCE, PROGRAM, SMALL, WRONG_USE, ProgramTest, path

ANSWER = ["run", path(SMALL), "-p", "Hello tern", "-n", "4", "--temp", "0", "--ignore-eos"]


def limited(*args, limits=(), env=None, **more):
    """The program under resource limits: (what, number) pairs."""

    def lower():
        for what, number in limits:
            resource.setrlimit(what, (number, resource.getrlimit(what)[1]))

    more.setdefault("stdin", subprocess.DEVNULL)
    more.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, *map(str, args)], stderr=subprocess.PIPE, timeout=120, preexec_fn=lower, env=dict(os.environ, **(env or {})), **more)


class Files(ProgramTest):
    VERBS = (["run", "-p", "a"], ["chat"], ["bench"], ["plan"], ["info"], ["tokenize", "--text", "a"], ["validate"], ["explain"], ["verify"])

    def test_what_is_no_file_is_bad_input(self):
        with tempfile.TemporaryDirectory() as folder:
            pipe = os.path.join(folder, "pipe.gguf")
            os.mkfifo(pipe)
            for verb, *options in self.VERBS:
                for file in (folder, pipe, "/dev/null"):
                    with self.subTest((verb, file)):
                        self.refused(BAD_INPUT, verb, file, *options, says="regular file")

    def test_library_code(self):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([PROGRAM, "validate", folder, "--json"], capture_output=True, timeout=60)
            self.assertEqual(json.loads(done.stdout)["error"]["code"], "io")


class Output(ProgramTest):
    COMMANDS = (ANSWER, ANSWER + ["--json"], ["info", path(SMALL), "--json"], ["info", path(SMALL)], ["validate", path(SMALL)], ["devices"], ["--help"], ["run", "--help"], ["--version"])

    def fails(self, done, args):
        self.assertEqual(done.returncode, NO_RESOURCE, (args, done.stderr))
        self.assertRegex(done.stderr, rb"^tern: the output could not be written\n$")

    def test_full_disk(self):
        for args in self.COMMANDS:
            with self.subTest(args), open("/dev/full", "wb") as full:
                self.fails(limited(*args, stdout=full), args)

    def test_closed_output(self):
        for args in self.COMMANDS:
            with self.subTest(args):
                child = subprocess.run(["sh", "-c", 'exec "$0" "$@" >&-', PROGRAM, *args], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120)
                self.fails(child, args)

    def test_closed_streams_are_no_files(self):
        """A kernel cache that is filled while nothing is open must not get what was meant for people."""
        with tempfile.TemporaryDirectory() as folder:
            command = 'exec "$0" "$@" <&- >&- 2>&-'
            done = subprocess.run(["sh", "-c", command, PROGRAM, *ANSWER], timeout=120, env=dict(os.environ, XDG_CACHE_HOME=folder))
            self.assertEqual(done.returncode, NO_RESOURCE)
            for entry in pathlib.Path(folder).rglob("*"):
                if entry.is_file():
                    self.assertTrue(entry.read_bytes().startswith(b"terncac"), entry)

    def test_reader_that_leaves(self):
        child = subprocess.Popen([PROGRAM, *ANSWER[:4], "-n", "100", "--temp", "0", "--ignore-eos"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.read(1)
        child.stdout.close()
        error = child.stderr.read()
        child.stderr.close()
        self.assertIn(child.wait(60), (-signal.SIGPIPE, NO_RESOURCE))
        self.assertLessEqual(error.count(b"\n"), 1)


class Limits(ProgramTest):
    def test_files_that_may_not_grow(self):
        with tempfile.TemporaryDirectory() as folder:
            done = limited(*ANSWER, limits=[(resource.RLIMIT_FSIZE, 0)], env={"XDG_CACHE_HOME": folder})
            self.assertEqual((done.returncode, done.stderr), (FINE, b""))
            self.assertEqual([f for f in pathlib.Path(folder).rglob("*") if f.is_file()], [])


class Cache(ProgramTest):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.want = self.answer()

    def answer(self, folder=None):
        done = limited(*ANSWER, env={"XDG_CACHE_HOME": folder or self.folder.name})
        self.assertEqual((done.returncode, done.stderr), (FINE, b""))
        return done.stdout

    def entries(self):
        return sorted(f for f in pathlib.Path(self.folder.name).rglob("*") if f.is_file())

    def test_damage_is_repaired(self):
        whole = {f: f.read_bytes() for f in self.entries()}
        self.assertTrue(whole)

        def flipped(data, at):
            return data[:at] + bytes([data[at] ^ 0x40]) + data[at + 1 :]

        damage = [lambda d: b"", lambda d: d[:10], lambda d: d[:-1], lambda d: d + b"x", lambda d: bytes(len(d)), lambda d: flipped(d, 9), lambda d: flipped(d, 20), lambda d: flipped(d, len(d) // 2), lambda d: flipped(d, len(d) - 1)]
        for i, (file, data) in enumerate(whole.items()):
            file.write_bytes(damage[i % len(damage)](data))
        self.assertEqual(self.answer(), self.want)
        self.assertEqual({f: f.read_bytes() for f in self.entries()}, whole)

    def test_an_entry_of_another_kernel_is_no_entry(self):
        first, second, *_ = self.entries()
        kept = first.read_bytes()
        first.write_bytes(second.read_bytes())
        self.assertEqual(self.answer(), self.want)
        self.assertEqual(first.read_bytes(), kept)

    def test_entries_that_cannot_be_read_or_written(self):
        for file in self.entries():
            file.unlink()
            file.mkdir()
            (file / "x").write_bytes(b"x")
        self.assertEqual(self.answer(), self.want)

    def test_no_folder(self):
        for folder in ("/dev/null", "/proc/nowhere", "relative"):
            self.assertEqual(self.answer(folder), self.want)
        self.assertFalse(os.path.exists("relative"))

    def test_filled_by_several_at_once(self):
        with tempfile.TemporaryDirectory() as folder:
            env = dict(os.environ, XDG_CACHE_HOME=folder)
            children = [subprocess.Popen([PROGRAM, *ANSWER], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env) for _ in range(3)]
            for child in children:
                self.assertEqual(child.communicate(timeout=300), (self.want, b""))
            names = [f.name for f in pathlib.Path(folder).rglob("*") if f.is_file()]
            self.assertEqual(sorted(names), [f.name for f in self.entries()])


class Flags(ProgramTest):
    """What is accepted has an effect."""

    def test_context_to_the_token(self):
        ids = ",".join(["1"] * 6)
        answer = self.ok_json("run", path(SMALL), "--prompt-ids", ids, "--ctx", 6, "--temp", 0, "--ignore-eos", "-n", 9)
        self.assertEqual((len(answer["ids"]), answer["stop"]), (1, "context_full"))
        self.refused(WRONG_USE, "run", path(SMALL), "--prompt-ids", ids, "--ctx", 5, says="holds 5;")
        self.refused(WRONG_USE, "run", path(SMALL), "-p", "Hello", "--ctx", 1, says="holds 1;")

    def test_seeds(self):
        for seed in (0, 18446744073709551615):
            self.ok(*ANSWER, "--seed", seed)
        for seed in ("-1", "18446744073709551616", "1.5", "x", ""):
            self.refused(WRONG_USE, *ANSWER, "--seed", seed, says="seed")

    def test_verify_has_no_context(self):
        self.refused(WRONG_USE, "verify", path(SMALL), "--ctx", 64, says="--ctx")

    def test_text_behind_a_stop_text_that_did_not_come(self):
        text = "crab"
        ids = self.ok_json("tokenize", path(SMALL), "--text", text, "--no-bos")["ids"]
        forced = ["run", path(SMALL), "-p", "a", "--temp", 0, "--stop", "abacus", "--force-ids", ",".join(map(str, ids + [2])), "-n", 20]
        answer = self.ok_json(*forced)
        self.assertEqual((answer["stop"], answer["text"]), ("end_token", text))
        self.assertEqual(self.ok(*forced), text.encode() + b"\n")


if __name__ == "__main__":
    unittest.main()
