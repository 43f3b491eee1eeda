#!/usr/bin/env python3
"""bench/compare on made-up programs that say what real ones say: who is called when, what is read
of their answers, and the table that comes of it. Nothing is measured.
"""
import importlib.machinery
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = pathlib.Path(__file__).resolve().parents[2] / "bench" / "compare"
LOADER = importlib.machinery.SourceFileLoader("compare", str(PROGRAM))
compare = importlib.util.module_from_spec(importlib.util.spec_from_loader("compare", LOADER))
sys.modules["compare"] = compare
LOADER.exec_module(compare)

FAKE = """#!{python}
import json, sys
arguments = sys.argv[1:]
with open({log!r}, "a") as log:
    log.write(" ".join([{name!r}] + arguments) + "\\n")
def after(option):
    return [int(word) for word in arguments[arguments.index(option) + 1].split(",")]
{body}
"""
CAIRN = """
if arguments[0] == "synth":
    open(arguments[arguments.index("-o") + 1], "w").close()
elif arguments[0] == "bench":
    rows = []
    for depth in after("-d"):
        for prompt in after("-p"):
            if prompt:
                rows.append(dict(n_prompt=prompt, n_gen=0, depth=depth, batch=1,
                                 samples=[300, 100, 1000], limit_tokens_per_second=600))
        for batch in after("--batch"):
            if after("-n")[0]:
                rows.append(dict(n_prompt=0, n_gen=after("-n")[0], depth=depth, batch=batch,
                                 samples=[40 * batch], limit_tokens_per_second=50))
    print(json.dumps(dict(rows=rows)))
"""
PEER = """
rows = []
for prompt in after("-p"):
    if prompt:
        rows.append(dict(n_prompt=prompt, n_gen=0, n_depth=after("-d")[0], samples_ts=[100, 101]))
if after("-n")[0] and "-d" in arguments:
    rows.append(dict(n_prompt=0, n_gen=after("-n")[0], n_depth=after("-d")[0], samples_ts=[20]))
print(json.dumps(rows))
"""
BATCHES = """
print("a line that is no JSON")
for batch in after("-npl"):
    print(json.dumps(dict(pp=after("-npp")[0], pl=batch, speed_tg=25.0)))
"""


class Programs:
    def __init__(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.scratch.name)
        self.log = self.folder / "log"
        for name, body in (("cairn", CAIRN), ("llama-bench", PEER),
                           ("llama-batched-bench", BATCHES)):
            path = self.folder / name
            path.write_text(FAKE.format(python=sys.executable, log=str(self.log), name=name,
                                        body=body), encoding="utf-8")
            os.chmod(path, 0o755)

    def compare(self, *arguments, peer="llama-bench"):
        return subprocess.run(
            [str(PROGRAM), "--cairn", str(self.folder / "cairn"), "--peer",
             str(self.folder / peer), "--models", str(self.folder / "models"), "--threads", "2",
             *arguments], capture_output=True, text=True, check=False)

    def calls(self):
        return self.log.read_text(encoding="utf-8").splitlines()


class CompareTest(unittest.TestCase):
    def setUp(self):
        self.programs = Programs()

    def tearDown(self):
        self.programs.scratch.cleanup()

    def test_programs_take_turns_and_the_table_shows_medians(self):
        done = self.programs.compare("--only", "llama-1b-Q4_K", "--groups", "prompt", "--rounds",
                                     "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(
            [call.split()[:2] for call in self.programs.calls()],
            [["cairn", "synth"]] + 2 * [["cairn", "bench"], ["llama-bench", "-m"]])
        self.assertEqual(done.stdout.splitlines()[2:4], [
            "| llama-1b-Q4_K | prompt of 512 | 300.0 | 100.5 | 2.99× | 2× | holds | 50 % |",
            "| llama-1b-Q4_K | decode | 40.0 | 20.0 | 2.00× | 1.7× | holds | 80 % |"])

    def test_models_are_kept_and_results_add_up(self):
        results = str(self.programs.folder / "results")
        for _ in range(2):
            self.programs.compare("--only", "llama-1b-Q5_0", "--groups", "prompt", "--rounds", "1",
                                  "--results", results)
        self.assertEqual(sum("synth" in call for call in self.programs.calls()), 1)
        shown = self.programs.compare("--show", "--results", results, "--json")
        rows = json.loads(shown.stdout)
        self.assertEqual([row["cairn_samples"] for row in rows], [6, 2])
        self.assertEqual([row["peer_samples"] for row in rows], [4, 2])
        # Q5_0 has no good path there: three times, four are the aim.
        self.assertEqual([(row["bar"], row["aim"], row["holds"]) for row in rows],
                         [(3, 4, False), (1.7, None, True)])
        self.assertIn("| 2.99× | 3× | MISSED |",
                      self.programs.compare("--show", "--results", results).stdout)

    def test_batches_loading_and_a_busy_core(self):
        done = self.programs.compare("--only", "mamba-130m-Q4_K", "--groups",
                                     "together,load,busy", "--rounds", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {(row["what"], row["batch"]): row for row in json.loads(done.stdout)}
        self.assertEqual(rows["together", 8]["ratio"], 320 / 25)
        self.assertEqual((rows["together", 8]["bar"], rows["together", 2]["bar"]), (1.5, None))
        self.assertGreater(rows["load", 1]["peer_resident_bytes"], 1 << 20)
        self.assertEqual(rows["busy", 1]["of_one_thread"], 1)
        self.assertTrue(rows["busy", 1]["holds"])
        calls = "\n".join(self.programs.calls())
        self.assertIn("--separate-prompts", calls)
        self.assertIn("-t 1", calls)

    def test_what_fails_is_told_and_the_rest_goes_on(self):
        done = self.programs.compare("--only", "llama-1b-Q4_K", "--groups", "prompt", "--rounds",
                                     "1", peer="no-such-program")
        self.assertEqual(done.returncode, 1)
        self.assertIn("no-such-program", done.stderr)
        self.assertIn("| llama-1b-Q4_K | decode | 40.0 |  |", done.stdout)
        for options, message in ((["--only", "abacus"], "--only: expected some of llama-1b-Q4_0"),
                                 (["--groups", "x"], "--groups: expected some of prompt")):
            done = self.programs.compare(*options)
            self.assertEqual(done.returncode, 1)
            self.assertIn(message, done.stderr)

    def test_samples_of_a_busy_machine_are_told_or_left_out(self):
        lines = [{"model": "llama-1b-Q4_0", "side": side, "what": "decode", "rows": 1, "depth": 0,
                  "batch": 1, "samples": [speed], "others": others}
                 for side, speed, others in (("cairn", 30, 0.1), ("cairn", 10, 1.4),
                                             ("peer", 20, 0.0), ("cairn", 31, 0.0))]
        path = self.programs.folder / "results"
        compare.append(path, lines)
        shown = self.programs.compare("--show", "--results", str(path)).stdout
        self.assertIn("| 30.0 | 20.0 |", shown)
        self.assertIn("of 1 of 4 figures other programs used more than 0.15 cores, up to 1.4",
                      shown)
        shown = self.programs.compare("--show", "--results", str(path), "--quiet-only").stdout
        self.assertIn("| 30.5 | 20.0 |", shown)
        self.assertIn("these are left out", shown)
        self.assertEqual(compare.note_of([lines[0], lines[2]], True), "")

    def test_others_are_seen(self):
        watch = compare.Watch()
        with compare.Spinner():
            time.sleep(0.6)  # It counts for another program's until it has ended.
            while_it_runs = watch.cores_of_others()
        self.assertGreater(while_it_runs, 0.1)
        self.assertLessEqual(while_it_runs, os.cpu_count() + 0.5)

    def test_bars_of_the_kinds(self):
        def bar(name, what, depth=0, batch=1):
            model = next(model for model in compare.MODELS if model.name == name)
            return compare.bars(model, {"what": what, "depth": depth, "batch": batch})[0]
        self.assertEqual(bar("llama-1b-Q4_0", "decode"), 1.25)
        self.assertEqual(bar("llama-1b-Q8_0", "decode"), 1.05)
        self.assertEqual(bar("llama-1b-Q4_0", "decode", 4096), 3.5)
        self.assertEqual(bar("llama-1b-Q4_0", "decode", 16384), 5)
        self.assertEqual(bar("llama-1b-Q4_0", "prompt", 4096), 3)
        self.assertEqual(bar("llama-1b-IQ2_S", "prompt"), 2)
        self.assertEqual(bar("gemma3-1b-Q4_K", "prompt"), 3)
        self.assertEqual(bar("granite-h-1b-Q4_K", "decode", 4096), 1.7)
        self.assertEqual(bar("mamba-130m-Q4_K", "decode"), 2)
        self.assertEqual(bar("llama-1b-Q4_0", "few"), 2)
        self.assertIsNone(bar("llama-1b-Q4_0", "together", 64, 4))


if __name__ == "__main__":
    unittest.main()
