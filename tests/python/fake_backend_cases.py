"""The package on the fake backend. backends_test.py runs these with the library that has it."""
import asyncio

import pytest
from conftest import NANO

import cairn

SAMPLING = cairn.Sampling(temperature=0, ignore_end=True, max_tokens=40)


def test_it_is_what_it_says():
    assert [each.name for each in cairn.backends()][:2] == ["cairn", "fake"]
    with cairn.Model(NANO) as model, cairn.Engine(model) as engine:
        facts = engine.facts
        assert facts.backend == "fake" and facts.exactness == "replay"
        assert facts.native_capabilities == {"logits", "rewind", "snapshot"}
        assert facts.capabilities == facts.native_capabilities | {"text"}
        assert engine.memory().budget == 0 and "<svg" in engine._repr_svg_()
        with pytest.raises(cairn.UnsupportedError, match="memory_budget_bytes"):
            cairn.Engine(model, memory="64MiB")


def test_it_goes_back_and_forks():
    with cairn.Model(NANO) as model, cairn.Engine(model, backend="fake") as engine:
        session = engine.session(sampling=SAMPLING)
        session.append("Hello")
        with session.snapshot() as mark:
            first = session.answer()
            assert session.rewind(mark).forward_tokens == 0
            assert session.answer() == first
            plan = session.rewind(mark.position)
            assert not plan.replayed_by_cairn
            assert session.fork(mark).answer() == first
        import numpy

        row = session.logits().numpy()
        assert row.shape == (2048,) and row.dtype == numpy.float32
        logprobs, likeliest = engine.score(session.tokens)
        assert len(logprobs) == len(likeliest) == len(session.tokens) - 1


def test_it_works_in_the_background():
    async def answers(sessions):
        async def one(session):
            return "".join([event.text async for event in session.agenerate()])

        return await asyncio.gather(*[one(session) for session in sessions])

    with cairn.Model(NANO) as model, cairn.Engine(model) as engine:
        sessions = [engine.session(sampling=SAMPLING) for _ in range(4)]
        for number, session in enumerate(sessions):
            session.append("Hello" + " there" * number)
        marks = [session.snapshot() for session in sessions]
        expected = [session.answer() for session in sessions]
        for session, mark in zip(sessions, marks):
            session.rewind(mark)
        assert asyncio.run(answers(sessions)) == expected
