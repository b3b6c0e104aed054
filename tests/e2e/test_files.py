"""validate, info and tokenize over the case files, as the manifest says."""
import json
import os
import pty
import subprocess
import unittest

from program import BAD_INPUT, CASES, FINE, LATER, MANIFEST, NO_RESOURCE, PROGRAM, SANITIZED, SMALL, WRONG_USE, ProgramTest, call, mentions, path


class Validate(ProgramTest):
    def verdict(self, name, *args):
        done = call("validate", path(name), "--json", *args, timeout=MANIFEST["limits"]["seconds"] * (20 if SANITIZED else 2))
        self.assertEqual(done.stderr, b"", name)
        verdict = json.loads(done.stdout.decode("utf-8"))
        self.assertEqual(done.returncode, FINE if verdict["ok"] else BAD_INPUT, (name, verdict))
        self.assertEqual(verdict["error"] is None, verdict["ok"], name)
        return verdict

    def test_every_case(self):
        for name, case in CASES.items():
            with self.subTest(name):
                verdict = self.verdict(name)
                error = verdict["error"]
                # What shows at run or in the chat template only is no fault of the file's structure.
                if case["stage"] in ("run", "chat") or case["expect"] == "ok":
                    if error and LATER.search(name):
                        self.assertEqual(error["code"], "unsupported")
                    else:
                        self.assertTrue(verdict["ok"], error)
                elif case["expect"] == "error":
                    self.assertFalse(verdict["ok"])
                if error:
                    self.assertIn(error["code"], ("malformed", "unsupported", "not_found", "limit"))
                    if not LATER.search(name):
                        self.assertTrue(mentions(case, error["message"]), error)

    def test_stages(self):
        self.assertEqual(self.verdict("hdr_valid_stub.gguf")["stage"], "container")
        self.assertTrue(self.verdict("hdr_no_kv_no_tensors.gguf", "--stage", "container")["ok"])
        self.assertFalse(self.verdict("hdr_valid_stub.gguf", "--stage", "model")["ok"])
        self.assertEqual(self.verdict(SMALL)["stage"], "model")

    def test_offset_and_names(self):
        error = self.verdict("kv_str_len_2p32.gguf")["error"]
        self.assertIsInstance(error["offset"], int)
        self.assertLess(error["offset"], CASES["kv_str_len_2p32.gguf"]["bytes"])
        self.assertEqual(error["code"], "malformed")
        self.assertEqual(self.verdict("there_is_no_such_file.gguf")["error"]["code"], "not_found")

    def test_broken_template_is_a_warning(self):
        verdict = self.verdict("model_chat_syntax.gguf")
        self.assertTrue(verdict["ok"])
        self.assertRegex(verdict["warnings"][0], "template")

    def test_text(self):
        self.assertTrue(self.ok("validate", path(SMALL)).endswith(b": ok\n"))
        self.refused(BAD_INPUT, "validate", path("hdr_bad_magic.gguf"), says="hdr_bad_magic.gguf")


class Info(ProgramTest):
    def test_lists_any_valid_container(self):
        for name, case in CASES.items():
            if case["expect"] == "ok" or case["stage"] in ("model", "run", "chat"):
                with self.subTest(name):
                    done = call("info", path(name), "--json")
                    if done.returncode != FINE:  # faults of the container that the manifest counts to the model
                        self.assertNotEqual(case["expect"], "ok", done.stderr)
                        continue
                    info = json.loads(done.stdout.decode("utf-8"))
                    self.assertEqual((info["model"] is None), (info["refusal"] is not None))
                    self.assertTrue(all({"name", "type", "shape", "offset", "bytes"} <= t.keys() for t in info["tensors"]))

    def test_numbers(self):
        info = self.ok_json("info", path(SMALL))
        model = info["model"]
        self.assertEqual((model["architecture"], model["hidden"], model["heads"], model["vocabulary"]), ("llama", 32, 2, 100))
        embedding = next(t for t in info["tensors"] if t["name"] == "token_embd.weight")
        self.assertEqual(embedding["shape"], [100, 32])
        self.assertEqual(info["container"], "gguf")

    def test_text_is_safe_on_a_terminal(self):
        shown = self.ok("info", path("kv_str_nul_quote.gguf"), "--keys")
        self.assertIn(b"x.s", shown)
        self.assertNotIn(b"\x1b", shown)
        self.assertNotIn(b"\x00", shown)

    def test_build(self):
        build = self.ok_json("info", "--build")["build"]
        self.assertTrue({"q4_0", "q4_1", "q8_0"} <= set(build["formats"]))
        self.assertIn("cpu", build["devices"])

    def test_refusals(self):
        self.refused(WRONG_USE, "info")
        self.refused(WRONG_USE, "info", path(SMALL), "--json", "--keys")
        self.refused(BAD_INPUT, "info", path("hdr_version_4.gguf"), says="version")
        self.refused(BAD_INPUT, "info", "/there/is/no/such/file", says="/there/is/no/such/file")


class Tokenize(ProgramTest):
    def test_manifest(self):
        for name, case in CASES.items():
            if "tokenize" in case:
                with self.subTest(name):
                    text, ids = case["tokenize"]["text"], case["tokenize"]["ids"]
                    self.assertEqual(self.ok_json("tokenize", path(name), "--text", text), {"ids": ids})
                    self.assertEqual(self.ok_json("tokenize", path(name), "--text", text, "--no-bos"), {"ids": ids[1:]})
                    self.assertEqual(self.ok_json("tokenize", path(name), "--ids", ",".join(map(str, ids))), {"text": text})

    def test_sources(self):
        ids = CASES[SMALL]["tokenize"]["ids"]
        plain = (",".join(map(str, ids)) + "\n").encode()
        self.assertEqual(self.ok("tokenize", path(SMALL), stdin=b"Hello tern\n"), plain)
        self.assertEqual(self.ok("tokenize", path(SMALL), "-f", "-", stdin=b"Hello tern"), plain)

    def test_special(self):
        raw = self.ok_json("tokenize", path(SMALL), "--text", "<s>", "--no-bos")["ids"]
        parsed = self.ok_json("tokenize", path(SMALL), "--text", "<s>", "--no-bos", "--parse-special")["ids"]
        self.assertEqual(parsed, [1])
        self.assertNotIn(1, raw)

    def test_bytes_that_are_no_text(self):
        self.ok_json("tokenize", path("model_ok_q4_0.gguf"), stdin=b"\xff\xfe\x00")

    def test_refusals(self):
        self.refused(WRONG_USE, "tokenize", path(SMALL), "--text", "a", "--ids", "1")
        self.refused(WRONG_USE, "tokenize", path(SMALL), "--ids", "1,x")
        self.refused(WRONG_USE, "tokenize", path(SMALL), "--ids", "1,100", says="vocabulary")
        self.refused(WRONG_USE, "tokenize", path(SMALL), "--ids", "1", "--no-bos")
        self.refused(BAD_INPUT, "tokenize", path("model_missing_tok_model.gguf"), "--text", "a", says="token")


class Use(ProgramTest):
    def test_help(self):
        self.assertIn(b"Examples", self.ok("--help"))
        for verb in ("run", "bench", "info", "tokenize", "validate", "devices", "explain"):
            self.assertIn(b"Examples", self.ok(verb, "--help"), verb)
        self.assertRegex(self.ok("--version"), rb"^tern \d+\.\d+")

    def test_wrong_use(self):
        self.refused(WRONG_USE)
        self.refused(WRONG_USE, "fly")
        self.refused(WRONG_USE, "info", path(SMALL), "--no-such-option")
        self.refused(WRONG_USE, "validate", path(SMALL), "--stage", "moon")

    def test_devices(self):
        devices = {d["spec"]: d for d in self.ok_json("devices")["devices"]}
        self.assertTrue(devices["cpu"]["available"])
        self.assertGreater(devices["cpu"]["workers"], 0)
        self.assertIn(b"cpu", self.ok("devices"))

    def test_no_prompt_on_a_terminal(self):
        master, slave = pty.openpty()
        try:
            done = subprocess.run([PROGRAM, "tokenize", path(SMALL)], stdin=slave, capture_output=True, timeout=60)
        finally:
            os.close(master)
            os.close(slave)
        self.assertEqual(done.returncode, WRONG_USE)
        self.assertIn(b"--text", done.stderr)


class Plan(ProgramTest):
    def test_parts_and_sum(self):
        plan = self.ok_json("plan", path(SMALL))
        parts = [plan[key] for key in ("weights_bytes", "state_bytes", "scratch_bytes", "io_bytes", "host_bytes")]
        for key in ("weights_bytes", "state_bytes", "scratch_bytes"):
            self.assertGreater(plan[key], 0, key)
        self.assertEqual(plan["total_bytes"], sum(parts))
        self.assertTrue(plan["fits"])
        self.assertLess(plan["total_bytes"], plan["available_bytes"])
        told = self.ok_json("explain", path(SMALL))["memory"]
        self.assertEqual([plan["weights_bytes"], plan["state_bytes"], plan["scratch_bytes"]], [told["weights"], told["state"], told["scratch"]])

    def test_state_is_proportional_to_the_context(self):
        one, four = (self.ok_json("plan", path(SMALL), "--ctx", n) for n in (32, 128))
        self.assertEqual(4 * one["state_bytes"], four["state_bytes"])
        self.assertEqual(one["weights_bytes"], four["weights_bytes"])
        wide = self.ok_json("plan", path(SMALL), "--ctx", 32, "--precise")
        self.assertEqual(wide["state_bytes"], 2 * one["state_bytes"])  # f32 instead of f16
        self.assertEqual((one["kv"], wide["kv"]), ("f16", "f32"))

    def test_kinds_of_kv(self):
        shape = ["plan", "--shape", "smollm2-135m", "--format", "q4_0", "--ctx", 4096]
        # 30 layers, keys and values, 3 heads of 64; q8 and q4 with two f16 scales a head.
        for kind, head in (("f32", 256), ("f16", 128), ("bf16", 128), ("q8", 68), ("q4", 36)):
            plan = self.ok_json(*shape, "--kv", kind)
            self.assertEqual((plan["kv"], plan["state_bytes"]), (kind, 4096 * 30 * 2 * 3 * head))
        self.assertEqual(self.ok_json(*shape, "--precise", "--kv", "q8")["kv"], "q8")
        self.assertIn(b"keys and values of the context, q4", self.ok(*shape, "--kv", "q4"))
        self.refused(WRONG_USE, *shape, "--kv", "q3")
        self.refused(BAD_INPUT, "plan", path(SMALL), "--kv", "q8", says="multiples of 32, this one is")

    def test_use(self):
        self.assertIn(b"weights", self.ok("plan", path(SMALL), "--device", "mean"))
        self.refused(WRONG_USE, "plan", path(SMALL), "--ctx", 1000000, says="exceeds the model's")
        self.refused(BAD_INPUT, "plan", path("model_block_count_3.gguf"))
        self.refused(NO_RESOURCE, "plan", path(SMALL), "--device", "abacus")

    def test_what_does_not_fit(self):
        # 1.8 GB of weights, 30 GB of keys and values.
        long = ["--shape", "llama-3.2-3b", "--format", "q4_0", "--precise", "--ctx", 131072]
        done = call("plan", *long, "--json")
        plan = json.loads(done.stdout)
        if plan["fits"] or plan["available_bytes"] < 3 << 30:
            self.skipTest("skipped: this machine's memory is not between the weights and the context")
        self.assertEqual(done.returncode, NO_RESOURCE)
        self.assertIn(plan["refusal"], done.stderr.decode())
        self.assertRegex(plan["refusal"], r"needs \d+ bytes .*; a context of \d+ tokens fits \(--ctx\)")


if __name__ == "__main__":
    unittest.main()
