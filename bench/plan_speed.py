#!/usr/bin/env python3
"""What `cairn plan` foretells of a model's speed, beside what `cairn bench` measures right after.

  bench/plan_speed.py build/cairn MODEL.gguf…

Prints a row of a table for each model: tokens per second of an answer 4,096 tokens deep, and of a
prompt; foretold, measured, and the first over the second."""
import json
import pathlib
import subprocess
import sys

DEPTH, PROMPT, ANSWER, ROUNDS = 4096, 512, 64, 3


def asked(*command):
    told = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    return json.loads(told.stdout)


def measured(cairn, model, **figures):
    """Of the first row that has these."""
    told = asked(cairn, "bench", model, "-p", PROMPT, "-n", ANSWER, "-d", f"0,{DEPTH}", "-r",
                 ROUNDS, "--json")
    return [next(row["tokens_per_second"] for row in told["rows"]
                 if all(row[name] == value for name, value in wanted.items()))
            for wanted in figures.values()]


def main(cairn, *models):
    print("| model | answer, foretold | measured | ratio | prompt, foretold | measured | ratio |\n"
          "|---|---|---|---|---|---|---|")
    for model in models:
        plan = asked(cairn, "plan", model, "-c", DEPTH, "--json")
        answer = next(length["tokens_per_second"] for length in plan["lengths"]
                      if length["tokens"] == DEPTH)
        prompt = plan["prompt_tokens_per_second"]
        found_answer, found_prompt = measured(
            cairn, model, answer={"n_gen": ANSWER, "n_prompt": 0, "depth": DEPTH},
            prompt={"n_prompt": PROMPT, "n_gen": 0, "depth": 0})
        print(f"| {pathlib.Path(model).stem} | {answer:.1f} | {found_answer:.1f} | "
              f"{answer / found_answer:.2f} | {prompt:.0f} | {found_prompt:.0f} | "
              f"{prompt / found_prompt:.2f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
