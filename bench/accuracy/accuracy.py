#!/usr/bin/env python3
"""How often the program chooses what a double-precision reference chooses.

Each prompt of the reference is forced along the reference's own greedy path, so that every step is an independent
trial. Prints the steps that differ with the reference's margin there, the share of equal steps, the largest deviation
of the first position's top logits relative to the largest of them, and over all steps the root mean square by which
the 200 best logits deviate from those of `--precise` (a common offset apart).
"""
import argparse
import json
import math
import subprocess
import sys


def run(program, model, prompt, options):
    """One object of `tern run --json` per prompt, forced along the reference."""
    greedy = prompt["f64"]["greedy"]
    command = [program, "run", model, "--prompt-ids", ",".join(map(str, prompt["ids"])), "-n", str(len(greedy)),
               "--temp", "0", "--ignore-eos", "--top-logits", "200", "--json",
               "--force-ids", ",".join(map(str, greedy)), *options]
    answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    answer["top_logits"] = [dict(map(tuple, step)) for step in answer["top_logits"]]
    return answer


def mean_square(logits, precise):
    both = logits.keys() & precise.keys()
    apart = [logits[token] - precise[token] for token in both]
    offset = sum(apart) / len(apart)
    return sum((d - offset) ** 2 for d in apart) / len(apart)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter,
                                     epilog="further options go to `tern run`")
    parser.add_argument("model", metavar="MODEL")
    parser.add_argument("reference", metavar="REFERENCE.json")
    parser.add_argument("--tern", metavar="PROGRAM", default="build/release/bin/tern")
    given, options = parser.parse_known_args()
    program, model = given.tern, given.model
    with open(given.reference, encoding="utf-8") as file:
        prompts = json.load(file)["prompts"]
    steps = equal = 0
    widest = deviation = squares = 0.0
    for prompt in prompts:
        answer = run(program, model, prompt, options)
        precise = run(program, model, prompt, ["--precise", *options])
        squares += sum(map(mean_square, answer["top_logits"], precise["top_logits"]))
        for step, (mine, wanted) in enumerate(zip(answer["ids"], prompt["f64"]["greedy"])):
            steps += 1
            equal += mine == wanted
            if mine != wanted:
                margin = prompt["f64"]["margin"][step]
                widest = max(widest, margin)
                print(f"{prompt['name']} step {step}: {mine} instead of {wanted}, margin {margin:.4f}")
        top = dict(map(tuple, prompt["f64"]["top10"]))
        largest = max(map(abs, top.values()))
        first = answer["top_logits"][0]
        deviation = max([deviation] + [abs(first[token] - top[token]) / largest for token in top.keys() & first.keys()])
    print(f"equal {equal} of {steps} steps ({100 * equal / steps:.2f} %), widest margin missed {widest:.4f}, "
          f"first position's top logits within {deviation:.2e} of the largest; "
          f"from --precise {math.sqrt(squares / steps):.4f} (root mean square)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
