"""`Llama` reuses what memory has, and the bits are those of a fresh instance."""

from __future__ import annotations

import itertools
import pickle
import threading
from pathlib import Path

import numpy as np
import pytest
from llama_models import FAMILIES, model

import cairn
from cairn.llama_cpp_compat import Llama, LlamaDiskCache, LlamaGrammar, LlamaRAMCache

TEXT = "The quick brown fox jumps over the lazy dog, and the dog sleeps. " * 3


def opened(like: str, **options: object) -> Llama:
    return Llama(model(like), n_ctx=512, verbose=False, **options)  # type: ignore[arg-type]


def row(llama: Llama) -> bytes:
    return np.ascontiguousarray(llama.scores[llama.n_tokens - 1]).tobytes()


@pytest.mark.parametrize("like", FAMILIES)
def test_turns_equal_fresh_instances(like: str) -> None:
    # The window of the small gemma3 is 64 tokens: the text leaves it behind.
    kept = opened(like)
    prompt = TEXT
    for turn in range(6):
        found = kept.create_completion(prompt, max_tokens=6, temperature=0.9, seed=turn)
        with_kept = row(kept)
        fresh = opened(like)
        expected = fresh.create_completion(prompt, max_tokens=6, temperature=0.9, seed=turn)
        assert found["choices"] == expected["choices"]
        assert with_kept == row(fresh)
        assert fresh.n_tokens == kept.n_tokens
        fresh.close()
        prompt += found["choices"][0]["text"] + f" Turn {turn}."
    assert kept._prompt_plan is not None and kept._prompt_plan.resume > 0


@pytest.mark.parametrize("like", FAMILIES)
def test_a_second_call_equals_the_first(like: str) -> None:
    llama = opened(like)
    first = llama.create_completion(TEXT, max_tokens=8, temperature=0.0)
    second = llama.create_completion(TEXT, max_tokens=8, temperature=0.0)
    assert second["choices"] == first["choices"]
    assert second["memory"]["forward_tokens"] <= 1


@pytest.mark.parametrize("like", FAMILIES)
def test_reset_empties(like: str) -> None:
    llama, fresh = opened(like), opened(like)
    llama.eval(llama.tokenize(TEXT))
    llama.reset()
    assert llama.n_tokens == 0 and llama._session is not None and llama._session.position == 0
    other = llama.tokenize("Something else.")
    llama.eval(other)
    fresh.eval(other)
    assert row(llama) == row(fresh)


def test_all_rows_have_the_bits_of_one_go() -> None:
    llama, plain = opened("llama", logits_all=True), opened("llama")
    tokens = llama.tokenize("The quick brown fox")
    llama.eval(tokens)
    for count in range(1, len(tokens) + 1):
        plain.reset()
        plain.eval(tokens[:count])
        assert np.ascontiguousarray(llama.scores[count - 1]).tobytes() == row(plain)
    assert len(llama.eval_logits) == len(tokens) and len(plain.eval_logits) == 1


@pytest.mark.parametrize("like", FAMILIES)
def test_states_travel(like: str) -> None:
    source, other = opened(like), opened(like)
    source.eval(source.tokenize(TEXT))
    state = pickle.loads(pickle.dumps(source.save_state()))
    other.eval(other.tokenize("Something else."))
    other.load_state(state)
    assert other.n_tokens == source.n_tokens and row(other) == row(source)
    assert other._seed == source._seed


def test_states_of_another_model_are_refused() -> None:
    state = opened("mamba").save_state()
    with pytest.raises(cairn.MismatchError):
        opened("llama").load_state(state)


def test_rows_travel_with_logits_all() -> None:
    source, other = opened("llama", logits_all=True), opened("llama", logits_all=True)
    source.eval(source.tokenize("The quick"))
    other.load_state(source.save_state())
    assert other._scores.tobytes() == source._scores.tobytes()


def test_an_instance_is_pickled_by_its_arguments() -> None:
    llama = opened("llama", seed=7)
    other = pickle.loads(pickle.dumps(llama))
    assert other.n_ctx() == 512 and other._seed == 7
    assert other("Hello", temperature=0)["choices"] == llama("Hello", temperature=0)["choices"]


def test_a_disk_cache_serves_another_instance(tmp_path: Path) -> None:
    first, second = opened("llama"), opened("llama")
    first.set_cache(LlamaDiskCache(tmp_path))
    expected = first(TEXT, max_tokens=4, temperature=0.0)
    loads = []
    second.set_cache(LlamaDiskCache(tmp_path))
    load = second.load_state
    second.load_state = lambda state: loads.append(1) or load(state)  # type: ignore
    assert second(TEXT, max_tokens=4, temperature=0.0)["choices"] == expected["choices"]
    assert loads == [1]


def test_a_damaged_file_of_a_cache_counts_as_none(tmp_path: Path) -> None:
    llama = opened("llama")
    cache = LlamaDiskCache(tmp_path)
    llama.eval(llama.tokenize("Hello"))
    cache[[1, 2, 3]] = llama.save_state()
    assert [1, 2] in cache and cache[[1, 2]].n_tokens == llama.n_tokens
    (path,) = tmp_path.glob("*.state")
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(KeyError):
        cache[[1, 2]]
    path.write_bytes(data[:9])
    assert [1, 2] not in cache


def test_caches_stay_within_their_capacity(tmp_path: Path) -> None:
    llama = opened("llama")
    llama.eval(llama.tokenize(TEXT))
    state = llama.save_state()
    cache = LlamaRAMCache(2 * state.llama_state_size)
    for first in range(3):
        cache[[first, 1]] = state
    assert [0, 1] not in cache and [1, 1] in cache and [2, 1] in cache
    disk = LlamaDiskCache(tmp_path, capacity_bytes=1)
    disk[[5]] = state
    assert disk.cache_size == 0


def test_threads_wait_for_each_other() -> None:
    llama = opened("llama")
    prompts = ["The quick", "A slow", "Some other text"]
    expected = {each: opened("llama")(each, max_tokens=12, seed=3)["choices"] for each in prompts}
    found: dict[str, object] = {}

    def ask(prompt: str) -> None:
        for _ in range(5):
            found[prompt] = llama(prompt, max_tokens=12, seed=3)["choices"]

    threads = [threading.Thread(target=ask, args=(each,)) for each in prompts]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert found == expected


@pytest.mark.parametrize("grammar", [None, LlamaGrammar.from_string('root ::= [a-z ]+')])
def test_streams_take_turns(grammar: LlamaGrammar | None) -> None:
    llama = opened("falcon-h1")
    options = {"max_tokens": 10, "seed": 5, "grammar": grammar}
    expected = [
        opened("falcon-h1")(prompt, **options)["choices"][0]["text"]  # type: ignore
        for prompt in ("The quick", "A slow")
    ]
    streams = [llama(prompt, stream=True, **options) for prompt in ("The quick", "A slow")]
    texts = ["", ""]
    for pieces in itertools.zip_longest(*streams):
        for place, piece in enumerate(pieces):
            texts[place] += piece["choices"][0]["text"] if piece else ""
    assert texts == expected
