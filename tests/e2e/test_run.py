"""run, bench and explain on the tiny models, against the manifest's f64 figures."""
import json
import os
import pty
import signal
import subprocess
import tempfile
import time
import unittest

from program import BAD_INPUT, CASES, FINE, LATER, NO_RESOURCE, PROGRAM, SMALL, WRONG_USE, ProgramTest, call, mentions, path, shown


def ids_text(ids):
    return ",".join(map(str, ids))


class Run(ProgramTest):
    def greedy(self, name, *args, ids=None, n=8, top=100000):
        prompt = ids or CASES[name]["run"]["prompt_ids"]
        return self.ok_json("run", path(name), "--prompt-ids", ids_text(prompt), "-n", n, "--temp", "0", "--ignore-eos", "--top-logits", top, *args)

    def check(self, name, answer, tolerance):
        expect = CASES[name]["run"]
        self.assertEqual(answer["prompt_ids"], expect["prompt_ids"])
        self.assertEqual(answer["ids"], expect["greedy"])
        logits = dict(map(tuple, answer["top_logits"][0]))
        worst = max(abs(logits[i] - want) for i, want in enumerate(expect["logits_first16"]))
        self.assertLessEqual(worst, tolerance * expect["logits_std"], name)
        for step in answer["top_logits"]:
            self.assertEqual(step, sorted(step, key=lambda pair: (-pair[1], pair[0])))
        self.assertEqual([step[0][0] for step in answer["top_logits"]], answer["ids"])

    def test_manifest(self):
        for name, case in CASES.items():
            if case.get("run") and not LATER.search(name):
                with self.subTest(name):
                    self.check(name, self.greedy(name, "--precise"), case["run"]["tol_f32"])
                    self.check(name, self.greedy(name), case["run"]["tol_int8"])
            elif case["expect"] == "ok" and case["stage"] == "model" and not LATER.search(name):
                with self.subTest(name):
                    self.assertEqual(len(self.greedy(name, ids=[1, 43, 72], top=1)["ids"]), 8)

    def test_kinds_of_kv(self):
        for kind in ("f32", "bf16"):
            self.check(SMALL, self.greedy(SMALL, "--kv", kind), CASES[SMALL]["run"]["tol_int8"])
        self.assertEqual(self.greedy(SMALL, "--kv", "f16")["top_logits"], self.greedy(SMALL)["top_logits"])
        self.assertNotEqual(self.greedy(SMALL, "--kv", "bf16")["top_logits"], self.greedy(SMALL)["top_logits"])
        self.refused(BAD_INPUT, "run", path(SMALL), "--kv", "q4", "-p", "Hi", says="multiples of 32, this one is")

    def test_mean_device(self):
        for name in (SMALL, "model_ok_q4_0.gguf"):
            with self.subTest(name):
                self.check(name, self.greedy(name, "--device", "mean"), CASES[name]["run"]["tol_int8"])

    def test_faults_that_show_when_run(self):
        for name, case in CASES.items():
            if case["stage"] == "run":
                with self.subTest(name):
                    error = self.refused(BAD_INPUT, "run", path(name), "--prompt-ids", "1,43,72", "-n", 4, "--temp", 0, "--json")
                    self.assertTrue(mentions(case, error), error)

    def test_faults_of_templates(self):
        for name, case in CASES.items():
            if case["stage"] == "chat":
                with self.subTest(name):
                    error = self.refused(BAD_INPUT, "run", path(name), "--chat", "-p", "Hi", "-n", 2)
                    self.assertTrue(mentions(case, error), error)
                    self.ok("run", path(name), "-p", "Hi", "-n", 2)

    def test_bad_models_write_nothing(self):
        for name, case in CASES.items():
            if case["stage"] == "model" and case["expect"] == "error":
                with self.subTest(name):
                    self.refused(BAD_INPUT, "run", path(name), "-p", "Hi", "-n", 2)

    def test_shape_of_the_answer(self):
        answer = self.greedy(SMALL, n=4, top=3)
        self.assertEqual({"prompt_ids", "ids", "text", "top_logits", "stop", "timings"}, set(answer))
        self.assertEqual(answer["stop"], "length")
        self.assertEqual([len(step) for step in answer["top_logits"]], [3] * 4)
        for key in ("load_s", "first_token_s", "prefill_s", "decode_s", "prefill_tokens_per_s", "decode_tokens_per_s"):
            self.assertGreater(answer["timings"][key], 0, key)

    def test_teacher_forcing(self):
        free = self.greedy("model_ok_f16_untied.gguf", "--precise")
        same = self.greedy("model_ok_f16_untied.gguf", "--precise", "--force-ids", ids_text(free["ids"]))
        self.assertEqual(same["ids"], free["ids"])
        # Another first id changes what is chosen after it, and not what is chosen before.
        other = self.greedy("model_ok_f16_untied.gguf", "--precise", "--force-ids", "5")
        self.assertEqual(other["ids"][0], free["ids"][0])
        self.assertNotEqual(other["top_logits"][1], free["top_logits"][1])
        again = self.greedy("model_ok_f16_untied.gguf", "--precise", n=1, ids=CASES["model_ok_f16_untied.gguf"]["run"]["prompt_ids"] + [5])
        self.assertEqual(other["ids"][1], again["ids"][0])

    def test_text_and_ids_agree(self):
        expect = CASES[SMALL]
        answer = self.ok_json("run", path(SMALL), "-p", expect["tokenize"]["text"], "-n", 4, "--temp", 0, "--ignore-eos")
        self.assertEqual(answer["prompt_ids"], expect["tokenize"]["ids"])
        self.assertEqual(answer["ids"], expect["run"]["greedy"][:4])
        self.assertEqual(answer["top_logits"], [])
        shown = self.ok("run", path(SMALL), "-p", expect["tokenize"]["text"], "-n", 4, "--temp", 0, "--ignore-eos")
        self.assertEqual(shown.decode(), answer["text"] + "\n")

    def test_sources(self):
        same = ["-n", 3, "--temp", 0, "--json"]
        by_option = json.loads(self.ok("run", path(SMALL), "-p", "Hello tern", *same))
        by_pipe = json.loads(self.ok("run", path(SMALL), *same, stdin=b"Hello tern\n"))
        with tempfile.NamedTemporaryFile() as file:
            file.write(b"Hello tern\n")
            file.flush()
            by_file = json.loads(self.ok("run", path(SMALL), "-f", file.name, *same))
        for other in (by_pipe, by_file):
            self.assertEqual((other["prompt_ids"], other["ids"], other["text"]), (by_option["prompt_ids"], by_option["ids"], by_option["text"]))

    def test_sampling(self):
        def text(*args):
            return self.ok_json("run", path("model_ok_f16_untied.gguf"), "-p", "Hello", "-n", 24, "--ignore-eos", *args)["ids"]

        hot = ["--temp", 5, "--top-k", 0, "--top-p", 1, "--min-p", 0]
        self.assertEqual(text("--seed", 3, *hot), text("--seed", 3, *hot))
        self.assertNotEqual(text("--seed", 3, *hot), text("--seed", 4, *hot))
        greedy = text("--temp", 0)
        self.assertEqual(text("--temp", 5, "--top-k", 1), greedy)
        self.assertEqual(text("--temp", 5, "--min-p", 1), greedy)
        self.assertEqual(text("--temp", 5, "--top-p", 1e-6), greedy)
        for penalty in (["--repeat-penalty", 5], ["--frequency-penalty", 5], ["--presence-penalty", 5]):
            self.assertNotEqual(text("--temp", 0, *penalty), greedy, penalty)

    def test_threads_and_chunks_give_equal_text(self):
        one = self.greedy(SMALL, "--threads", 1)
        for threads in (2, 3):
            other = self.greedy(SMALL, "--threads", threads)
            self.assertEqual((one["ids"], one["top_logits"]), (other["ids"], other["top_logits"]))

    def test_stop(self):
        whole = self.ok_json("run", path(SMALL), "-p", "Hello tern", "-n", 8, "--temp", 0, "--ignore-eos")["text"]
        cut = self.ok_json("run", path(SMALL), "-p", "Hello tern", "-n", 8, "--temp", 0, "--ignore-eos", "--stop", "nowhere", "--stop", whole[2:4])
        self.assertEqual(cut["stop"], "stop_string")
        first = self.ok_json("run", "--stop", whole[2:4], path(SMALL), "-p", "Hello tern", "-n", 8, "--temp", 0, "--ignore-eos")
        self.assertEqual(first["text"], cut["text"])
        self.assertEqual(cut["text"], whole[: whole.index(whole[2:4])])

    def test_context(self):
        answer = self.ok_json("run", path(SMALL), "--prompt-ids", ids_text([1] * 30), "-n", 64, "--ctx", 32, "--temp", 0, "--ignore-eos")
        self.assertEqual(answer["stop"], "context_full")
        self.refused(WRONG_USE, "run", path(SMALL), "--prompt-ids", ids_text([1] * 33), "--ctx", 32, says="--ctx")

    def test_wrong_use(self):
        model = path(SMALL)
        for args in (
            ["-p", "a", "--prompt-ids", "1"],
            ["-p", "a", "-f", "b"],
            ["--prompt-ids", "1", "--chat"],
            ["-p", "a", "--system", "b"],
            ["-p", "a", "--top-logits", "3"],
            ["-p", "a", "--temp", "-1"],
            ["-p", "a", "--temp", "nan"],
            ["-p", "a", "--top-p", "0"],
            ["-p", "a", "--stop", ""],
            ["-p", "a", "--stop", "b", "stray"],
            ["-p", "a", "-t", "1025"],
            ["-p", "a", "-n", "0"],
            ["--prompt-ids", "1,100"],
            ["--prompt-ids", "1,-2"],
            ["--prompt-ids", ""],
            ["--prompt-ids", "1", "--force-ids", "100"],
            ["--prompt-ids", "1", "--ctx", "1000000"],
        ):
            with self.subTest(args):
                self.refused(WRONG_USE, "run", model, *args)
        self.refused(BAD_INPUT, "run", model, "-f", "/there/is/no/such/file")
        self.refused(BAD_INPUT, "run", "/there/is/no/such/model", "-p", "a")
        self.refused(NO_RESOURCE, "run", model, "-p", "a", "--device", "abacus", says="abacus")

    def test_statistics_on_a_terminal_only(self):
        master, slave = pty.openpty()
        done = subprocess.run([PROGRAM, "run", path(SMALL), "-p", "Hello tern", "-n", "4", "--temp", "0"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, timeout=120)
        os.close(slave)
        seen = shown(master)
        self.assertEqual(done.returncode, FINE)
        self.assertRegex(seen, r"\d+ tokens read at")

    def test_interrupt_ends_the_answer(self):
        command = [PROGRAM, "run", path(SMALL), "-p", "Hello tern", "-n", "1000000", "--ctx", "100000", "--ignore-eos", "--temp", "0"]
        context = self.ok_json("info", path(SMALL))["model"]["context"]
        command[command.index("100000")] = str(context)
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdout.read(1)  # the answer has begun
        child.send_signal(signal.SIGINT)
        begin = time.monotonic()
        out, error = child.communicate(timeout=30)
        self.assertLess(time.monotonic() - begin, 10)
        self.assertEqual((child.returncode, error), (FINE, b""))
        self.assertTrue(out.endswith(b"\n"))


class Bench(ProgramTest):
    def test_figures(self):
        figures = self.ok_json("bench", path(SMALL), "-p", 16, "-n", 8, "-t", 1, "-r", 2)
        for key in ("prefill_tokens_per_s", "decode_tokens_per_s", "decode_roof_share", "read_bytes_per_s"):
            self.assertGreater(figures[key], 0, key)
        # The share is what its parts say.
        share = figures["decode_bytes_per_step"] * figures["decode_tokens_per_s"] / figures["read_bytes_per_s"]
        self.assertAlmostEqual(figures["decode_roof_share"], share, delta=1e-6 * share)
        self.assertEqual(len(figures["decode_rounds"]), 2)

    def test_depth(self):
        near, far = (self.ok_json("bench", path(SMALL), "-p", 4, "-n", 2, "-r", 1, "--depth", n) for n in (0, 64))
        self.assertEqual((near["depth"], far["depth"], far["kv"]), (0, 64, "f16"))
        more = self.ok_json("plan", path(SMALL), "--ctx", 64)["state_bytes"]
        self.assertEqual(far["decode_bytes_per_step"] - near["decode_bytes_per_step"], more)
        self.refused(WRONG_USE, "bench", path(SMALL), "-p", 4, "--depth", 64, "--ctx", 32, says="--depth")

    def test_sequences(self):
        one, five = (self.ok_json("bench", path(SMALL), "-p", 4, "-n", 2, "-r", 1, "--depth", 32, "-b", n) for n in (1, 5))
        self.assertEqual((one["sequences"], five["sequences"]), (1, 5))
        kv = self.ok_json("plan", path(SMALL), "--ctx", 32)["state_bytes"] / 32 * 33.5  # of each sequence, on average
        self.assertAlmostEqual(five["decode_bytes_per_step"] - one["decode_bytes_per_step"], 4 * kv, delta=1)
        share = five["decode_bytes_per_step"] * five["decode_tokens_per_s"] / 5 / five["read_bytes_per_s"]
        self.assertAlmostEqual(five["decode_roof_share"], share, delta=1e-6 * share)
        self.assertIn(b"5 sequences", self.ok("bench", path(SMALL), "-p", 0, "-n", 2, "-r", 1, "-b", 5))

    def test_profile(self):
        told = self.ok_json("bench", path(SMALL), "-p", 16, "-n", 4, "-r", 1, "--profile")["profile"]
        for part in ("prefill", "decode"):
            seconds = [row["seconds"] for row in told[part]]
            self.assertEqual(seconds, sorted(seconds, reverse=True))
            self.assertEqual({True}, {row["seconds"] > 0 and row["steps"] > 0 for row in told[part]})
            self.assertTrue(any(row["kernel"].startswith("mat") and row["flop"] > 0 for row in told[part]))
        self.assertIn(b"decode, one token", self.ok("bench", path(SMALL), "-p", 16, "-n", 4, "-r", 1, "--profile"))

    def test_use(self):
        self.assertIsNone(self.ok_json("bench", path(SMALL), "-p", 0, "-n", 4, "-r", 1)["prefill_tokens_per_s"])
        self.refused(WRONG_USE, "bench", path(SMALL), "-p", 0, "-n", 0)
        self.refused(BAD_INPUT, "bench", path("model_block_count_3.gguf"))

    def test_shapes(self):
        told = self.ok_json("bench", "--shape", "smollm2-135m", "--format", "q8_0", "--embedding-format", "q4_0", "-p", 4, "-n", 2, "-r", 1)
        self.assertEqual((told["shape"], told["format"], told["embedding_format"]), ("smollm2-135m", "q8_0", "q4_0"))
        # 106,168,320 weights in matrices at 34 bytes for 32, 28,311,552 in the table at 18 for 32, 61 norms of f32, and keys and values.
        weights = 106168320 * 34 // 32 + 28311552 * 18 // 32 + 61 * 576 * 4
        self.assertAlmostEqual(told["decode_bytes_per_step"], weights + 30 * 2 * 3 * 64 * 2 * 1.5, delta=1)
        self.assertGreater(told["decode_tokens_per_s"], 0)
        names = [shape["name"] for shape in self.ok_json("bench", "--shape", "list")["shapes"]]
        self.assertIn("llama-3-8b", names)
        self.assertIn("bonsai-8b", names)
        self.assertIn(b"random weights", self.ok("bench", "--shape", "smollm2-135m", "-p", 2, "-n", 0, "-r", 1))

    def test_shapes_refused(self):
        self.refused(WRONG_USE, "bench", "--shape", "abacus-1b", says="llama-3-8b")
        self.refused(WRONG_USE, "bench", "--shape", "smollm2-135m", "--format", "q9_9", says="q4_0")
        self.refused(WRONG_USE, "bench", path(SMALL), "--shape", "smollm2-135m")
        self.refused(WRONG_USE, "bench", path(SMALL), "--format", "q4_0", says="--shape")
        self.refused(WRONG_USE, "bench", says="--shape")
        huge = ["--shape", "llama-3-70b", "--format", "f32"]
        told = json.loads(call("plan", *huge, "--json", "--ctx", 4).stdout)
        if told["fits"]:
            self.skipTest("skipped: this machine has the 282 GB that were to be refused")
        error = self.refused(NO_RESOURCE, "bench", *huge, "-p", 4, "-n", 4)
        self.assertRegex(error, r"needs \d+ bytes .* are available; not even a context")


class Explain(ProgramTest):
    def test_steps(self):
        told = self.ok_json("explain", path(SMALL))
        self.assertGreaterEqual(len(told["ranges"]), 2)
        for part in told["ranges"]:
            self.assertGreater(part["phases"], 0)
            for step in part["steps"]:
                self.assertTrue(step["kernel"])
                self.assertLess(step["phase"], part["phases"])
        self.assertTrue(any(step["refusals"] for part in told["ranges"] for step in part["steps"]))
        self.assertGreater(told["memory"]["state"], 0)

    def test_use(self):
        one = self.ok_json("explain", path(SMALL), "--range", 0, "--program")
        self.assertEqual([part["index"] for part in one["ranges"]], [0])
        self.assertTrue(one["program"])
        self.assertIn(b"range 0", self.ok("explain", path(SMALL)))
        self.refused(WRONG_USE, "explain", path(SMALL), "--range", 99)
        self.refused(BAD_INPUT, "explain", path("model_arch_unknown.gguf"), says="llamma")


class Verify(ProgramTest):
    def test_models_lie_within_their_bounds(self):
        for flags in ([], ["--precise"], ["--tokens", "1"], ["--device", "mean"]):
            answer = json.loads(self.ok("verify", path("model_ok_q4_0.gguf"), "--json", *flags))
            self.assertTrue(answer["ok"], answer)
            self.assertEqual([o["name"] for o in answer["outputs"]], ["blk.0", "blk.1", "logits"])
            for output in answer["outputs"]:
                self.assertGreater(output["relative"], 0)  # two evaluations, not one beside itself
                self.assertLess(output["relative"], output["bound"])

    def test_precise_is_closer(self):
        far, near = (json.loads(self.ok("verify", path("model_ok_q4_0.gguf"), "--json", *flags))["outputs"][-1]["relative"]
                     for flags in ([], ["--precise"]))
        self.assertLess(near * 100, far)

if __name__ == "__main__":
    unittest.main()
