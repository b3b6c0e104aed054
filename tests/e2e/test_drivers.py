"""The program on the first device of each driver, where there is one: models, verify, and what is said where there is none."""
import json
import os
import pathlib
import unittest

from program import CASES, NO_RESOURCE, SANITIZED, SMALL, ProgramTest, call, path

# Where a loader finds no driver.
NOWHERE = {"opencl": {"OCL_ICD_VENDORS": "/nowhere"}, "vulkan": {"VK_DRIVER_FILES": "/nowhere", "VK_ICD_FILENAMES": "/nowhere"}}
LAYERS = pathlib.Path("/usr/share/vulkan/explicit_layer.d")
SWIFTSHADER = pathlib.Path("/usr/lib/chromium/vk_swiftshader_icd.json")


def reason_to_skip(backend):
    if SANITIZED:
        return "drivers are not made for sanitizers"
    if backend in os.environ.get("TERN_TEST_REQUIRE", ""):
        return None  # promised: what is missing is a failure
    done = call("devices", "--json")
    listed = {d["spec"]: d for d in json.loads(done.stdout)["devices"]} if done.returncode == 0 else {}
    if listed.get(f"{backend}:0", {}).get("available"):
        return None
    return f"no {backend} device: " + "; ".join(d["reason"] for d in listed.values() if d["spec"].startswith(backend))


class Surroundings:
    """Environment variables for the programs that are started within."""

    def __init__(self, **variables):
        self.variables = variables

    def __enter__(self):
        self.before = {name: os.environ.get(name) for name in self.variables}
        os.environ.update(self.variables)

    def __exit__(self, *_):
        for name, value in self.before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


class NoDriver(ProgramTest):
    def test_says_why(self):
        for backend, nowhere in NOWHERE.items():
            with self.subTest(backend), Surroundings(**nowhere):
                devices = {d["spec"]: d for d in self.ok_json("devices")["devices"]}
                self.assertFalse(devices[backend]["available"])
                self.assertIn("install", devices[backend]["reason"])
                self.refused(NO_RESOURCE, "run", path(SMALL), "--device", f"{backend}:0", "-p", "Hi", says="install")


class Driver:
    """What holds for every one of them; `backend` names it."""

    def run_on(self, *args, name=SMALL, device=None):
        ids = ",".join(map(str, CASES[name]["run"]["prompt_ids"]))
        return self.ok_json(
            "run", path(name), "--prompt-ids", ids, "-n", 8, "--ignore-eos", "--top-logits", 100000, "--device", device or f"{self.backend}:0", *args
        )

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
        self.assertTrue(self.ok_json("verify", path(SMALL), "--device", f"{self.backend}:0")["ok"])

    def test_bench_claims_no_share_of_memory_it_did_not_measure(self):
        figures = self.ok_json("bench", path(SMALL), "-p", 0, "-n", 2, "-r", 1, "--device", f"{self.backend}:0")
        self.assertEqual(figures["device"], f"{self.backend}:0")
        self.assertGreater(figures["decode_tokens_per_s"], 0)
        for unknown in ("threads", "decode_roof_share", "read_bytes_per_s"):
            self.assertIsNone(figures[unknown], unknown)

    def test_no_such_device(self):
        self.refused(NO_RESOURCE, "run", path(SMALL), "--device", f"{self.backend}:97", "-p", "Hi", says=f"{self.backend}:97")


@unittest.skipIf(reason_to_skip("opencl"), reason_to_skip("opencl"))
class Opencl(Driver, ProgramTest):
    backend = "opencl"


@unittest.skipIf(reason_to_skip("vulkan"), reason_to_skip("vulkan"))
class Vulkan(Driver, ProgramTest):
    backend = "vulkan"

    @unittest.skipIf(not list(LAYERS.glob("*validation*")), "no validation layers: install vulkan-validationlayers")
    def test_validation_layers_have_nothing_to_say(self):
        with Surroundings(VK_INSTANCE_LAYERS="VK_LAYER_KHRONOS_validation"):
            self.test_greedy()  # what they say would stand in the answer

    @unittest.skipIf(not SWIFTSHADER.exists(), "no second driver: install chromium")
    def test_a_poor_driver(self):
        with Surroundings(VK_ICD_FILENAMES=str(SWIFTSHADER)):
            self.test_greedy()


if __name__ == "__main__":
    unittest.main()
