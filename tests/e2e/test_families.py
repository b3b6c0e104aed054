"""A second family through every verb, beside an evaluation by other means."""
import json
import unittest

from program import GGUF, ProgramTest

GEMMA = GGUF.parent / "llm" / "gemma3_tiny.gguf"


class Gemma(ProgramTest):
    """Windows, head norms, a chat template, another tokenizer."""

    def setUp(self):
        self.golden = json.loads(GEMMA.with_suffix(".json").read_text())

    def test_reference(self):
        ids, spread = self.golden["prompt_ids"], self.golden["logits_std"]
        for flags, tolerance in (["--precise"], 1e-5), ([], 0.1), (["--device", "mean"], 0.1), (["--device", "mean", "--precise"], 1e-5):
            with self.subTest(flags):
                answer = self.ok_json("run", GEMMA, "--prompt-ids", ",".join(map(str, ids)), "-n", 12, "--temp", 0, "--ignore-eos", "--top-logits", 1000, *flags)
                self.assertEqual(answer["ids"], self.golden["greedy"])
                logits = dict(map(tuple, answer["top_logits"][0]))
                for i, want in enumerate(self.golden["logits_first16"]):
                    self.assertAlmostEqual(logits[i], want, delta=tolerance * spread)

    def test_chat(self):
        ids = self.ok_json("run", GEMMA, "--chat", "-p", " Hi there\n", "-n", 2, "--temp", 0)["prompt_ids"]
        text = "<start_of_turn>user\nHi there<end_of_turn>\n<start_of_turn>model\n"
        self.assertEqual(ids, self.ok_json("tokenize", GEMMA, "--parse-special", "--text", text)["ids"])
        self.assertEqual((ids[:2], ids.count(2), ids[-1]), ([2, 4], 1, 6))

    def test_other_verbs(self):
        self.assertTrue(self.ok_json("validate", GEMMA)["ok"])
        model = self.ok_json("info", GEMMA)["model"]
        self.assertEqual((model["architecture"], model["layers"], model["kv_heads"], model["head_size"]), ("gemma3", 7, 1, 16))
        self.assertTrue(any(step["kernel"] == "attention" for step in self.ok_json("explain", GEMMA)["ranges"][0]["steps"]))
        self.assertGreater(self.ok_json("bench", GEMMA, "-p", 32, "-n", 8, "-r", 1)["decode_tokens_per_s"], 0)
        for flags in ([], ["--precise"], ["--device", "mean"]):
            answer = self.ok_json("verify", GEMMA, *flags)
            self.assertEqual((answer["ok"], len(answer["outputs"])), (True, 8))


if __name__ == "__main__":
    unittest.main()
