#!/usr/bin/env python3
"""How often the program chooses what a double-precision reference chooses.

usage: accuracy.py MODEL REFERENCE.json [--tern PROGRAM] [--precise] [further options of `tern run`]

Each prompt of the reference is forced along the reference's own greedy path, so that every step is an independent
trial. Prints the steps that differ with the reference's margin there, the share of equal steps, and the largest
deviation of the first position's top logits relative to the largest of them.
"""
import json
import subprocess
import sys


def main() -> int:
    arguments = sys.argv[1:]
    program = "build/release/bin/tern"
    if "--tern" in arguments:
        at = arguments.index("--tern")
        program = arguments[at + 1]
        del arguments[at:at + 2]
    if len(arguments) < 2:
        print(__doc__, file=sys.stderr)
        return 1
    model, reference, *options = arguments
    with open(reference, encoding="utf-8") as file:
        prompts = json.load(file)["prompts"]
    steps = equal = 0
    widest = deviation = 0.0
    for prompt in prompts:
        greedy = prompt["f64"]["greedy"]
        command = [program, "run", model, "--prompt-ids", ",".join(map(str, prompt["ids"])), "-n", str(len(greedy)),
                   "--temp", "0", "--ignore-eos", "--top-logits", "10", "--json",
                   "--force-ids", ",".join(map(str, greedy)), *options]
        answer = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        for step, (mine, wanted) in enumerate(zip(answer["ids"], greedy)):
            steps += 1
            equal += mine == wanted
            if mine != wanted:
                margin = prompt["f64"]["margin"][step]
                widest = max(widest, margin)
                print(f"{prompt['name']} step {step}: {mine} instead of {wanted}, margin {margin:.4f}")
        top = dict(map(tuple, prompt["f64"]["top10"]))
        mine = dict(map(tuple, answer["top_logits"][0]))
        largest = max(abs(v) for v in top.values())
        for token in top.keys() & mine.keys():
            deviation = max(deviation, abs(mine[token] - top[token]) / largest)
    print(f"equal {equal} of {steps} steps ({100 * equal / steps:.2f} %), widest margin missed {widest:.4f}, "
          f"first position's top logits within {deviation:.2e}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
