"""`Llama`: generating, choosing, completions and what they are made of."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from llama_models import NANO, model

import cairn
from cairn.llama_cpp_compat import (
    Llama,
    LlamaGrammar,
    LlamaPromptLookupDecoding,
    LogitsProcessorList,
    MinTokensLogitsProcessor,
    StoppingCriteriaList,
)
from cairn.llama_cpp_compat._text import TextReader


@pytest.fixture(scope="module")
def llama() -> Llama:
    return Llama(model("llama"), n_ctx=128, seed=1)


def text(completion: Any) -> str:
    return str(completion["choices"][0]["text"])


def test_tokens_are_those_of_a_session(llama: Llama) -> None:
    tokens = llama.tokenize("The quick brown fox")
    llama.set_seed(11)
    found = list(itertools.islice(llama.generate(tokens, temp=0.9), 12))
    sampling = cairn.Sampling(
        temperature=0.9, top_k=40, top_p=0.95, min_p=0.05, seed=11,
        samplers="penalties;top_k;typ_p;top_p;min_p;temperature",
    )  # fmt: skip
    with llama.session(sampling=sampling) as session:
        session.append(tokens)
        assert found == [event.tokens[0] for event in itertools.islice(session.generate(), 12)]


def test_the_last_token_is_not_read_yet(llama: Llama) -> None:
    tokens = llama.tokenize("The quick")
    found = list(itertools.islice(llama.generate(tokens, temp=0.0), 5))
    assert llama.n_tokens == len(tokens) + 4
    assert llama.input_ids[: llama.n_tokens].tolist() == tokens + found[:-1]
    assert list(llama.eval_tokens) == tokens + found[:-1]


def test_tokens_that_are_sent_go_behind_the_last_one(llama: Llama) -> None:
    tokens = llama.tokenize("The quick")
    stream = llama.generate(tokens, temp=0.0)
    first = next(stream)
    second = stream.send([7, 8])
    assert llama._input_ids.tolist() == [*tokens, first, 7, 8]
    assert second == next(llama.generate([*tokens, first, 7, 8], temp=0.0))


def test_below_zero_nothing_is_filtered(llama: Llama) -> None:
    llama.reset()
    llama.eval(llama.tokenize("The quick"))
    plain = cairn.Sampling(temperature=1.0, samplers="temperature", seed=5)
    llama.set_seed(5)
    found = llama.sample(temp=-1.0, top_k=1)
    with llama.session(sampling=plain) as session:
        session.append(llama._input_ids.tolist())
        assert found == session.sample()


def test_sampling_behind_an_earlier_token(llama: Llama) -> None:
    tokens = llama.tokenize("The quick brown fox")
    llama.reset()
    llama.eval(tokens)
    early = llama.sample(temp=0.0, idx=2)
    assert llama.n_tokens == len(tokens)
    assert early == next(llama.generate(tokens[:3], temp=0.0))
    with pytest.raises(ValueError):
        llama.sample(idx=len(tokens))


def test_processors_change_what_is_chosen(llama: Llama) -> None:
    seen: list[int] = []

    def only(ids: Any, scores: Any) -> Any:
        seen.append(len(ids))
        scores[:] = -np.inf
        scores[68] = 0
        return scores

    found = llama.create_completion("Hello", max_tokens=3, logits_processor=[only])
    assert text(found) == llama.detokenize([68] * 3).decode()
    count = len(llama.tokenize("Hello"))
    assert seen == [count, count + 1, count + 2]


def test_processors_stand_before_a_grammar(llama: Llama) -> None:
    token = {each: llama.tokenize(each, add_bos=False)[0] for each in "ab"}

    def rather_b(ids: Any, scores: Any) -> Any:
        scores[token["b"]] = 1000.0
        scores[68] = 2000.0
        return scores

    grammar = LlamaGrammar.from_string('root ::= [ab] "a"')
    found = llama.create_completion(
        "Hello",
        max_tokens=8,
        grammar=grammar,
        logits_processor=LogitsProcessorList([rather_b]),
    )
    assert text(found) == "ba" and found["choices"][0]["finish_reason"] == "stop"


def test_the_end_comes_after_so_many_tokens(llama: Llama) -> None:
    end = llama.token_eos()

    def wants_end(ids: Any, scores: Any) -> Any:
        scores[end] = 1000.0
        return scores

    options: dict[str, Any] = {"max_tokens": 9, "temperature": 0.0}
    at_once = llama.create_completion("Hi", logits_processor=[wants_end], **options)
    later = [wants_end, MinTokensLogitsProcessor(4, end)]
    found = llama.create_completion("Hi", logits_processor=later, **options)
    assert at_once["usage"]["completion_tokens"] == 0
    assert found["usage"]["completion_tokens"] == 4
    assert found["choices"][0]["finish_reason"] == "stop"


def test_criteria_end_an_answer(llama: Llama) -> None:
    count = len(llama.tokenize("Hello"))
    criteria = StoppingCriteriaList([lambda ids, logits: len(ids) == count + 3])
    found = llama.create_completion("Hello", max_tokens=9, stopping_criteria=criteria)
    assert found["usage"]["completion_tokens"] == 3
    assert found["choices"][0]["finish_reason"] == "stop"


def test_biases_are_added(llama: Llama) -> None:
    found = llama.create_completion("Hello", max_tokens=2, logit_bias={68: 1000.0})
    assert text(found) == llama.detokenize([68, 68]).decode()
    first = next(llama.generate(llama.tokenize("Hello"), temp=0.0))
    never = llama.create_completion(
        "Hello", max_tokens=1, temperature=0.0, logit_bias={first: -np.inf}, logprobs=1
    )
    assert never["choices"][0]["logprobs"]["tokens"] != [llama.detokenize([first]).decode()]


def test_mirostat_is_that_of_a_session(llama: Llama) -> None:
    tokens = llama.tokenize("The quick brown fox")
    llama.set_seed(4)
    options: dict[str, Any] = {"mirostat_mode": 2, "mirostat_tau": 3.0}
    found = list(itertools.islice(llama.generate(tokens, temp=0.5, **options), 12))
    sampling = cairn.Sampling(temperature=1, mirostat=2, mirostat_tau=3.0, seed=4)
    with llama.session(sampling=sampling) as session:
        session.append(tokens)
        assert found == [event.tokens[0] for event in itertools.islice(session.generate(), 12)]


def test_streams_have_the_text_of_whole_answers(llama: Llama) -> None:
    whole = llama.create_completion("Hello", max_tokens=20, seed=3, logprobs=2)
    pieces = list(llama.create_completion("Hello", max_tokens=20, seed=3, logprobs=2, stream=True))
    assert "".join(map(text, pieces)) == text(whole)
    assert pieces[-1]["choices"][0]["finish_reason"] == "length"
    listed = [each["choices"][0]["logprobs"] for each in pieces]
    for name, values in whole["choices"][0]["logprobs"].items():
        assert sum((each[name] for each in listed if each), []) == values


def test_stop_texts_are_left_out(llama: Llama) -> None:
    whole = text(llama.create_completion("Hello", max_tokens=20, seed=3))
    stop = whole[7:10]
    cut = whole[: whole.index(stop)]
    for stream in (False, True):
        found = llama.create_completion("Hello", max_tokens=20, seed=3, stop=stop, stream=stream)
        pieces = list(found) if stream else [found]
        assert "".join(map(text, pieces)) == cut
        assert pieces[-1]["choices"][0]["finish_reason"] == "stop"


def test_text_is_held_back_while_it_may_be_a_stop_text() -> None:
    reader = TextReader(["</end>", "dx"])
    assert [reader.add(each) for each in (b"a<", b"/e", b"b", b"c</en")] == ["a", "", "</eb", "c"]
    assert reader.add(b"d>tail") == "" and reader.has_stopped and reader.rest() == ""
    assert TextReader([]).add("ä".encode()[:1]) == ""
    halves = TextReader([])
    added = [halves.add(each) for each in (b"\xe2\x98", b"\xba", b"\xff", b"x")]
    assert added == ["", "☺", "", "x"]
    open_end = TextReader(["stop"])
    assert open_end.add(b"is st") == "is " and open_end.rest() == "st"


def test_logprobs_are_those_of_the_rows(llama: Llama) -> None:
    every = Llama(model("llama"), n_ctx=128, logits_all=True)
    found = llama.create_completion("The quick", max_tokens=3, temperature=0.0, logprobs=1,
                                    echo=True)
    tokens = every.tokenize("The quick")
    every.eval(tokens)
    expected = every.logits_to_logprobs(every._scores)
    lists = found["choices"][0]["logprobs"]
    assert lists["token_logprobs"][0] is None
    for place in range(1, len(tokens)):
        assert lists["token_logprobs"][place] == float(expected[place - 1, tokens[place]])
    assert lists["tokens"] == [each for each in lists["tokens"] if each]
    whole = text(found)
    assert whole.startswith("The quick")
    assert whole[lists["text_offset"][-1] :] == lists["tokens"][-1]


def test_a_suffix_goes_behind_the_text(llama: Llama) -> None:
    plain = llama.create_completion("Hello", max_tokens=3, temperature=0.0)
    with_suffix = llama.create_completion("Hello", max_tokens=3, temperature=0.0, suffix=" END")
    assert text(with_suffix) == text(plain) + " END"


def test_prompts_have_to_fit(llama: Llama) -> None:
    with pytest.raises(ValueError, match="exceed context window of 128"):
        llama.create_completion([5] * 128)
    found = llama.create_completion([5] * 120, max_tokens=None,
                                    logit_bias={llama.token_eos(): -1e9})
    assert found["usage"]["completion_tokens"] == 8
    with pytest.raises(ValueError):
        llama.create_completion([])
    assert llama.create_completion("", max_tokens=2)["usage"]["prompt_tokens"] == 1
    llama.reset()
    with pytest.raises(cairn.NoRoomError):
        llama.eval([5] * 129)
    assert llama.n_tokens == 0


def test_seeds_repeat_and_answers_without_one_differ(llama: Llama) -> None:
    llama.set_seed(9)
    state = llama.save_state()
    first, second = (text(llama("Hello", max_tokens=12, temperature=2.0)) for _ in range(2))
    llama.load_state(state)
    assert text(llama("Hello", max_tokens=12, temperature=2.0)) == first != second


@pytest.mark.parametrize("seed", [-1, 0xFFFFFFFF])
def test_such_a_seed_is_a_new_one(llama: Llama, seed: int) -> None:
    made = {
        text(llama("Hello", max_tokens=12, temperature=2.0, seed=seed)) for _ in range(3)
    }
    assert len(made) > 1
    llama.set_seed(seed)
    assert 0 <= llama.save_state().seed < 0xFFFFFFFF


def test_vectors(llama: Llama) -> None:
    with pytest.raises(RuntimeError):
        llama.embed("Hello")
    encoder = Llama(model("bert"), embedding=True)
    one, count = encoder.embed("Hello World", return_count=True)
    made = encoder.create_embedding(["Hello World", "Hello"])
    assert made["data"][0]["embedding"] == one and made["usage"]["total_tokens"] > count
    assert len(one) == encoder.n_embd() and abs(sum(each * each for each in one) - 1) < 1e-5


def test_longer_texts_are_cut_off_at_the_context() -> None:
    encoder = Llama(model("bert"), embedding=True, n_ctx=8)
    _, count = encoder.embed("Hello World " * 20, return_count=True)
    assert count == encoder.n_ctx() == 8
    with pytest.raises(ValueError, match="of 8"):
        encoder.embed("Hello World " * 20, truncate=False)


def test_arguments() -> None:
    with pytest.raises(ValueError, match="does not exist"):
        Llama("no such file.gguf")
    with pytest.raises(ValueError, match="rope_freq_base"):
        Llama(NANO, rope_freq_base=10.0)
    with pytest.warns(UserWarning, match="n_gpu_layers, main_gpu"):
        Llama(NANO, n_gpu_layers=-1, main_gpu=1, vocab_only=True)
    with pytest.raises(ValueError, match="type_k"):
        Llama(NANO, type_k=99)


def test_a_vocabulary_needs_no_engine() -> None:
    names = Llama(NANO, vocab_only=True, n_ctx=0)
    assert names._engine is None and names.ctx is not None
    assert names.n_ctx() == int(names.metadata["granitehybrid.context_length"])
    assert names.metadata["general.architecture"] == "granitehybrid"
    assert names.metadata["tokenizer.ggml.add_bos_token"] == "true"
    assert names.metadata["granitehybrid.attention.layer_norm_rms_epsilon"] == "1e-05"
    assert names._is_hybrid and not names._is_recurrent
    assert (names.token_bos(), names.token_eos(), names.n_vocab()) == (0, 1, 2048)
    assert names._model.token_get_text(1) == "<|end|>" and names._model.ends == {1}
    assert names.detokenize([names.token_nl()]) == b"\n"


@pytest.mark.parametrize("temperature", [0.0, 0.9])
@pytest.mark.parametrize("gbnf", [None, 'root ::= "[" ("\\"name\\": 1" ", "?)+ "]"'])
def test_a_draft_model_changes_nothing(temperature: float, gbnf: str | None) -> None:
    prompt = "one two three one two three one two three one two"
    found = []
    for draft_model in (None, LlamaPromptLookupDecoding(num_pred_tokens=4)):
        llama = Llama(model("llama"), n_ctx=128, seed=1, draft_model=draft_model)
        grammar = LlamaGrammar.from_string(gbnf) if gbnf is not None else None
        options: dict[str, Any] = {"temperature": temperature, "grammar": grammar, "seed": 3}
        whole = text(llama(prompt, max_tokens=40, **options))
        stream = llama(prompt, max_tokens=40, stream=True, **options)
        pieces = "".join(text(each) for each in stream)
        assert pieces == whole
        tokens = llama.generate(llama.tokenize(prompt), temp=temperature)
        few = list(itertools.islice(tokens, 5))
        tokens.close()
        again = text(llama(prompt + whole, max_tokens=5, **options))
        found.append((whole, few, again, list(llama.eval_tokens)))
    assert found[0] == found[1]
