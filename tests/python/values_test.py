"""Values at the borders of what the C interface has: they are refused, never cut off or wrapped."""
import pathlib

import numpy
import pytest

import cairn
from cairn import _figures, _tokens
from conftest import BUILD, NANO, PARIS


def seed_of(model, seed):
    params = cairn.Sampling(seed=seed).to_c(model)
    return params.seed if params.flags & cairn._c.SAMPLING_SEED else None


@pytest.mark.parametrize("tokens", [[(1 << 32) + 428], [-1 << 40], [1, 1 << 31]])
def test_tokens_do_not_wrap_around(engine, session, tokens):
    for call in (session.append, session.become, engine.plan, engine.model.detokenize):
        with pytest.raises(cairn.InvalidError, match="tokens"):
            call(tokens)
    for same in ([1, 2], (1, 2), numpy.array([1, 2]), b"\1\2", (each for each in (1, 2))):
        assert list(_tokens.array_of(same)) == [1, 2]


@pytest.mark.parametrize("size", ["-1GiB", (1 << 64) + (1 << 20), "1e30", "-0.5k", -1])
def test_sizes_do_not_wrap_around(size):
    with pytest.raises(cairn.InvalidError, match="size"):
        _figures.bytes_of(size)


@pytest.mark.parametrize("values", [{"max_tokens": (1 << 32) + 1}, {"top_k": 1 << 32},
                                    {"seed": 1 << 64}, {"seed": -2}, {"mirostat": -1 << 32}])
def test_numbers_of_sampling_do_not_wrap_around(session, values):
    name, = values
    with pytest.raises(cairn.InvalidError, match=name):
        session.sampling = values
    with pytest.raises(cairn.InvalidError, match="max_tokens"):
        session.append("Hello")
        session.answer(max_tokens=(1 << 32) + 1)


def test_a_seed_of_minus_one_is_a_new_one(model):
    assert seed_of(model, -1) is None and seed_of(model, None) is None
    assert seed_of(model, (1 << 64) - 1) == (1 << 64) - 1 and seed_of(model, 0) == 0


def test_texts_are_not_cut_off_at_a_zero_byte(model, engine, tmp_path):
    with pytest.raises(cairn.InvalidError, match="path.*zero"):
        cairn.Model(NANO + "\0.other")
    with pytest.raises(cairn.InvalidError, match="store.*zero"):
        cairn.Engine(model, memory="64MiB", store=f"{tmp_path}/a\0b")
    for name in ("grammar", "json_schema", "samplers", "draft"):
        with pytest.raises(cairn.InvalidError, match=f"{name}.*zero"):
            engine.session(sampling={name: 'root ::= "a"\0'})


def test_max_tokens_of_an_answer_are_its_own(session):
    session.sampling = cairn.Sampling(temperature=0, ignore_end=True, max_tokens=7)
    session.chat(PARIS)
    prompt = session.position

    def count(answer):
        session.rewind(prompt)
        answer()
        return session.position - prompt

    assert count(session.answer) == 7
    for limited in (lambda: session.answer(max_tokens=3),
                    lambda: list(session.generate(max_tokens=3))):
        assert count(limited) == 3 and session.sampling.max_tokens == 7
        assert count(session.answer) == 7
        assert count(limited) == 3 and count(lambda: list(session.generate())) == 7
    # One that was left in the middle counts for itself alone, too.
    session.rewind(prompt)
    next(session.generate(max_tokens=2))
    with session.fork() as other:
        begin = other.position
        other.answer()
        assert other.position - begin == 7


def test_an_answer_that_was_left_goes_on(session):
    session.sampling = cairn.Sampling(temperature=0, ignore_end=True, max_tokens=6)
    session.chat(PARIS)
    first = [event.tokens for _, event in zip(range(4), session.generate())]
    rest = [event.tokens for event in session.generate() if event.tokens]
    assert len(first) + len(rest) == 6


def test_adapters_may_be_paths(model):
    for adapter in (pathlib.Path("nowhere.gguf"), (pathlib.Path("nowhere.gguf"), 0.5)):
        with pytest.raises(cairn.StorageError, match="nowhere.gguf"):
            cairn.Engine(model, memory="64MiB", adapters=[adapter])


def test_rows_become_other_numbers_by_a_copy_alone(session):
    session.chat(PARIS)
    row = session.logits()
    assert numpy.array(row, dtype="f8").dtype == numpy.float64
    with pytest.raises(ValueError, match="copy"):
        row.__array__(numpy.dtype("f8"), copy=False)
    assert row.__array__(copy=False).ctypes.data == row.numpy().ctypes.data


def test_vectors_of_all_tokens():
    path = BUILD / "fixtures" / "golden_embeddings" / "bert.gguf"
    with cairn.Model(path) as model, cairn.Engine(model, pooling="none") as engine:
        count = engine.facts.vector_floats
        assert len(engine.embed([1, 5, 7, 2])) == 4 * count
        assert len(engine.embed([1])) == count
