"""The program on the first OpenCL device, where there is one: models, verify, and what is said where there is none."""
import json
import os
import unittest

from program import CASES, NO_RESOURCE, SANITIZED, SMALL, ProgramTest, call, path

DEVICE = "opencl:0"


def reason_to_skip():
    if SANITIZED:
        return "drivers are not made for sanitizers"
    if "opencl" in os.environ.get("TERN_TEST_REQUIRE", ""):
        return None  # promised: what is missing is a failure
    done = call("devices", "--json")
    listed = {d["spec"]: d for d in json.loads(done.stdout)["devices"]} if done.returncode == 0 else {}
    if DEVICE in listed and listed[DEVICE]["available"]:
        return None
    return "no OpenCL device: " + "; ".join(d["reason"] for d in listed.values() if d["spec"].startswith("opencl"))


class NoDriver(ProgramTest):
    def test_says_why(self):
        os.environ["OCL_ICD_VENDORS"] = "/nowhere"
        try:
            devices = {d["spec"]: d for d in self.ok_json("devices")["devices"]}
            self.assertFalse(devices["opencl"]["available"])
            self.assertIn("install", devices["opencl"]["reason"])
            self.refused(NO_RESOURCE, "run", path(SMALL), "--device", DEVICE, "-p", "Hi", says="install")
        finally:
            del os.environ["OCL_ICD_VENDORS"]


@unittest.skipIf(reason_to_skip(), reason_to_skip())
class Opencl(ProgramTest):
    def run_on(self, *args, name=SMALL, device=DEVICE):
        ids = ",".join(map(str, CASES[name]["run"]["prompt_ids"]))
        return self.ok_json("run", path(name), "--prompt-ids", ids, "-n", 8, "--ignore-eos", "--top-logits", 100000, "--device", device, *args)

    def test_greedy(self):
        expect = CASES[SMALL]["run"]
        for flags, tolerance in ([], expect["tol_int8"]), (["--precise"], expect["tol_f32"]):
            with self.subTest(flags):
                answer = self.run_on("--temp", 0, *flags)
                self.assertEqual(answer["ids"], expect["greedy"])
                logits = dict(map(tuple, answer["top_logits"][0]))
                worst = max(abs(logits[i] - want) for i, want in enumerate(expect["logits_first16"]))
                self.assertLessEqual(worst, tolerance * expect["logits_std"])

    def test_sampling(self):
        flags = ("--temp", 1, "--top-k", 40, "--top-p", 0.95, "--seed", 7)
        once = self.run_on(*flags)
        self.assertEqual(once["ids"], self.run_on(*flags)["ids"])
        self.assertEqual(once["ids"], self.run_on(*flags, device="cpu")["ids"])

    def test_verify(self):
        self.assertTrue(self.ok_json("verify", path(SMALL), "--device", DEVICE)["ok"])

    def test_no_such_device(self):
        self.refused(NO_RESOURCE, "run", path(SMALL), "--device", "opencl:97", "-p", "Hi", says="opencl:97")


if __name__ == "__main__":
    unittest.main()
