"""Kernels that came with tern, and the interpreter where they and the code generator lack."""
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from program import FINE, PROGRAM, SMALL, ProgramTest, path

FOLDER = pathlib.Path(PROGRAM).parent
PACKS = FOLDER / "tern-packs"
HAVE_PACKS = PACKS.is_dir() and any(PACKS.glob("*.pack"))
PLUGIN = (FOLDER / "libtern-llvm.so").exists()
ANSWER = ["-p", "Hello tern", "-n", "8", "--temp", "0", "--ignore-eos", "--json"]
MODEL = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "tern/models/SmolLM2-135M-Instruct.Q4_1.gguf"


class Alone(ProgramTest):
    """The program in a folder of its own, where no code generator lies, with an empty cache."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        shutil.copy2(PROGRAM, self.bin / "tern")
        self.env = dict(os.environ, XDG_CACHE_HOME=str(self.folder / "cache"))

    def run_alone(self, *args, program=None, env=None, timeout=300):
        done = subprocess.run([str(program or self.bin / "tern"), *map(str, args)], stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout, env=dict(self.env, **(env or {})))
        self.assertEqual(done.returncode, FINE, done.stderr.decode(errors="replace"))
        return done

    def with_packs(self):
        shutil.copytree(PACKS, self.folder / "lib" / "tern-packs")

    def answer(self, model, *more, **how):
        done = self.run_alone("run", model, *ANSWER, *more, **how)
        return json.loads(done.stdout), done.stderr.decode()

    @unittest.skipUnless(PLUGIN, "this build has no code generator to compare with")
    def test_interpreted_answers_are_the_compiled_ones(self):
        elsewhere = {"XDG_CACHE_HOME": str(self.folder / "compiled")}  # what is compiled must not be found
        for more in ([], ["--precise"], ["--device", "mean"]):
            with self.subTest(more):
                want, errors = self.answer(path(SMALL), *more, program=PROGRAM, env=elsewhere)
                self.assertEqual(errors, "")
                got, errors = self.answer(path(SMALL), *more)
                self.assertEqual(got["ids"], want["ids"])
                self.assertEqual(errors.count("\n"), 1, errors)
                self.assertRegex(errors, r"kernels are interpreted.*libtern-llvm\.so")

    def test_explain_tells_where_kernels_come_from(self):
        told = json.loads(self.run_alone("explain", path(SMALL), "--json").stdout)
        sources = {s["source"] for r in told["ranges"] for s in r["steps"] if s["source"]}
        self.assertEqual(sources, {"interpreted"})
        self.assertEqual(told["timings"]["kernels"], told["timings"]["kernels_interpreted"])
        self.assertEqual(len(told["timings"]["notes"]), 1)
        if PLUGIN:
            told = json.loads(self.run_alone("explain", path(SMALL), "--json", "--no-packs", program=PROGRAM).stdout)
            self.assertEqual(told["timings"]["kernels"], told["timings"]["kernels_compiled"])
            told = json.loads(self.run_alone("explain", path(SMALL), "--json", "--no-packs", "--no-llvm", program=PROGRAM).stdout)
            self.assertEqual(told["timings"]["kernels"], told["timings"]["kernels_cached"])

    def test_info_tells_what_is_inside(self):
        build = json.loads(self.run_alone("info", "--build", "--json").stdout)["build"]
        self.assertEqual(build["packs"], [])
        self.assertFalse(build["plugin"]["found"])
        self.assertIn("libtern-llvm.so", build["plugin"]["refusal"])
        for key in ("version", "compiler", "codegen"):
            self.assertTrue(build[key], key)
        text = self.run_alone("info", "--build").stdout.decode()
        self.assertIn("packs       none", text)
        if PLUGIN:
            build = json.loads(self.run_alone("info", "--build", "--json", program=PROGRAM).stdout)["build"]
            self.assertTrue(build["plugin"]["found"])

    @unittest.skipUnless(HAVE_PACKS, "this build has no packs (TERN_PACKS)")
    def test_packs_are_found_from_path_and_beside_the_program(self):
        self.with_packs()
        for how in ({}, {"program": "tern", "env": {"PATH": f"{self.bin}:{os.environ['PATH']}"}}):
            build = json.loads(self.run_alone("info", "--build", "--json", **how).stdout)["build"]
            self.assertEqual({p["level"] for p in build["packs"]}, set(build["levels"]))
            self.assertEqual([p["refusal"] for p in build["packs"]], [None] * len(build["packs"]))
            self.assertEqual(sum(p["used"] for p in build["packs"]), 1)
            self.assertGreater(min(p["kernels"] for p in build["packs"]), 100)

    @unittest.skipUnless(HAVE_PACKS and MODEL.exists(), "needs packs (TERN_PACKS) and the model (scripts/model)")
    def test_a_real_model_needs_nothing_but_the_pack(self):
        self.with_packs()
        got, errors = self.answer(MODEL)
        self.assertEqual(errors, "")
        told = json.loads(self.run_alone("explain", MODEL, "--json").stdout)["timings"]
        self.assertEqual(told["kernels_packed"], told["kernels"])
        if PLUGIN:
            want, _ = self.answer(MODEL, "--no-packs", program=PROGRAM)
            self.assertEqual(got["ids"], want["ids"])

    @unittest.skipUnless(HAVE_PACKS, "this build has no packs (TERN_PACKS)")
    def test_a_damaged_pack_is_refused_by_name(self):
        self.with_packs()
        build = json.loads(self.run_alone("info", "--build", "--json").stdout)["build"]
        mine = next(pathlib.Path(p["file"]) for p in build["packs"] if p["used"])
        data = bytearray(mine.read_bytes())
        data[100] ^= 1
        mine.write_bytes(data)
        build = json.loads(self.run_alone("info", "--build", "--json").stdout)["build"]
        self.assertEqual([("damaged" in (p["refusal"] or "")) for p in build["packs"]], [pathlib.Path(p["file"]) == mine for p in build["packs"]])
        self.assertIn("refused", self.run_alone("info", "--build").stdout.decode())
        _, errors = self.answer(path(SMALL))
        self.assertRegex(errors, r"pack .*is damaged")
        self.assertRegex(errors, r"kernels are interpreted")


if __name__ == "__main__":
    unittest.main()
