"""The model class of the evaluation harness beside `cairn perplexity`."""
import json
import math
import subprocess
from types import SimpleNamespace

import pytest

import cairn
from conftest import BUILD, NANO

TEXT = "The capital of France is Paris. My name is Ada. " * 40


def test_scores_are_those_of_perplexity(model, engine, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text(TEXT)
    told = json.loads(subprocess.run(
        [BUILD / "cairn", "perplexity", NANO, "-f", path, "-c", "128", "--json"], check=True,
        capture_output=True, stdin=subprocess.DEVNULL).stdout)
    tokens = model.tokenize(TEXT, bos=True)
    total = count = 0
    for begin in range(0, len(tokens) - 127, 128):
        chunk = [model.info.bos, *tokens[begin + 1 : begin + 128]]
        second_half = engine.score(chunk)[0][64:]
        total, count = total - sum(second_half), count + len(second_half)
    assert count == told["tokens"]
    assert math.exp(total / count) == pytest.approx(told["perplexity"], rel=1e-6)


def test_the_harness_has_a_model_of_cairn(model):
    pytest.importorskip("lm_eval")
    from lm_eval.api.registry import get_model

    import cairn.lm_eval

    harness = get_model("cairn").create_from_arg_string(
        f"path={NANO},threads=1,memory=64MiB", {"batch_size": 1, "device": "cpu"})
    pairs = [("The capital of France is", " Paris."), ("The capital of France is", " Rome."),
             ("", "Hello")]
    requests = [SimpleNamespace(args=pair) for pair in pairs]
    scores = harness.loglikelihood(requests, disable_tqdm=True)
    for (context, continuation), (found, is_greedy) in zip(pairs, scores):
        tokens = harness.tok_encode(context + continuation)
        begin = len(harness.tok_encode(context)) if context else 1
        logprobs, likeliest = harness.engine.score(tokens)
        assert found == pytest.approx(sum(logprobs[begin - 1 :]), abs=1e-6)
        assert is_greedy == (likeliest[begin - 1 :] == tokens[begin:])
    whole, = harness.loglikelihood_rolling([SimpleNamespace(args=(TEXT[:200],))])
    tokens = [harness.prefix_token_id, *harness.tok_encode(TEXT[:200], add_special_tokens=False)]
    assert whole == pytest.approx(sum(harness.engine.score(tokens)[0]), abs=1e-4)
    harness.max_length = 16
    cut, = harness.loglikelihood_rolling([SimpleNamespace(args=(TEXT[:200],))])
    assert cut != whole and math.isfinite(cut)
    prompt = harness.apply_chat_template(
        [{"role": "user", "content": "What is the capital of France?"}])
    harness.max_length = 512
    answers = harness.generate_until([
        SimpleNamespace(args=(prompt, {"until": ["\n"], "max_gen_toks": 24})),
        SimpleNamespace(args=(prompt, {"until": "France", "max_gen_toks": 24}))])
    assert answers == ["The capital of France is Paris.", "The capital of "]


TASK = """
task: capitals
dataset_path: json
dataset_kwargs: {data_files: {test: FOLDER/capitals.jsonl}}
test_split: test
output_type: multiple_choice
doc_to_text: "The capital of {{country}} is"
doc_to_choice: [Paris, Rome, Berlin, Madrid]
doc_to_target: label
metric_list: [{metric: acc}]
"""


def test_the_harness_runs_a_task(tmp_path, monkeypatch):
    """A task of the harness's own form, from its file to the figure that it prints."""
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    lm_eval = pytest.importorskip("lm_eval")
    from lm_eval.tasks import TaskManager

    import cairn.lm_eval  # noqa: F401: registers the model

    (tmp_path / "capitals.yaml").write_text(TASK.replace("FOLDER", str(tmp_path)))
    countries = ["France", "Italy", "Germany", "Spain"]
    rows = [json.dumps({"country": name, "label": label}) for label, name in enumerate(countries)]
    # One that must count as wrong.
    rows.append(json.dumps({"country": "France", "label": 1}))
    (tmp_path / "capitals.jsonl").write_text("\n".join(rows))
    tasks = TaskManager(include_path=str(tmp_path), include_defaults=False)
    found = lm_eval.simple_evaluate(
        model="cairn", model_args=f"path={NANO},threads=1,memory=64MiB", tasks=["capitals"],
        task_manager=tasks, bootstrap_iters=0)
    assert found["results"]["capitals"]["acc,none"] == pytest.approx(4 / 5)
