#!/usr/bin/env python3
"""Anonymous memory of a run beside what it may take: 1.1 x weights + KV + 60 MB.

Runs `tern run MODEL --ctx 2048` over a prompt that fills the whole context, so that every page of the KV states is
touched, and samples RssAnon of /proc/PID/status all the while (the kernel keeps no high-water mark of it alone; VmHWM,
which counts pages of mapped files too, is printed beside it). Weights and KV are `tern explain`'s numbers: packed bytes
and the bytes of all states. Prints one JSON object; exit code 4 where the run takes more.
"""
import argparse
import json
import subprocess
import sys
import time

CONTEXT = 2048
ALLOWANCE = 60_000_000  # bytes
FIELDS = ("RssAnon", "RssFile", "VmHWM")


def sample(command):
    """Largest value of each field, in bytes, and the number of samples."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    peak = dict.fromkeys(FIELDS, 0)
    samples = 0
    while process.poll() is None:
        try:
            with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                for line in status:
                    key, _, value = line.partition(":")
                    if key in peak:
                        peak[key] = max(peak[key], int(value.split()[0]) * 1024)
        except (FileNotFoundError, ProcessLookupError):
            break
        samples += 1
        time.sleep(0.001)
    if process.wait() != 0:
        raise SystemExit(f"{' '.join(command[:4])} ... failed: {process.stderr.read().strip()}")
    return peak, samples


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="further options go to `tern run`")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("--tern", metavar="PROGRAM", default="build/release/bin/tern")
    given, options = parser.parse_known_args()
    program, model = given.tern, given.model
    explain = [program, "explain", model, "--ctx", str(CONTEXT), "--json", *options]
    need = json.loads(subprocess.run(explain, check=True, capture_output=True, text=True).stdout)["memory"]
    generated = 16
    prompt = ",".join(str(1000 + i) for i in range(CONTEXT - generated))
    command = [program, "run", model, "--ctx", str(CONTEXT), "--prompt-ids", prompt, "-n", str(generated), "--temp", "0",
               "--ignore-eos", *options]
    peak, samples = sample(command)
    allowed = int(1.1 * need["weights"]) + need["state"] + ALLOWANCE
    print(json.dumps({"context": CONTEXT, "weights_bytes": need["weights"], "kv_bytes": need["state"],
                      "allowed_bytes": allowed, "anonymous_bytes": peak["RssAnon"], "file_bytes": peak["RssFile"],
                      "high_water_bytes": peak["VmHWM"], "samples": samples,
                      "holds": peak["RssAnon"] <= allowed}, indent=1))
    return 0 if peak["RssAnon"] <= allowed else 4


if __name__ == "__main__":
    sys.exit(main())
