"""Sessions: what is reused has the bits of a fresh run, and every way to an answer gives one."""
import asyncio
import json
import subprocess
import threading
import time

import numpy
import pytest

import cairn
from conftest import BUILD, GREEDY, NANO, PARIS, golden


def bits_of(session):
    return session.logits().numpy().tobytes()


def some_tokens(count):
    tokens, value = [], 1
    for _ in range(count):
        value = (value * 1664525 + 1013904223) & 0xFFFFFFFF
        tokens.append((value >> 16) % 50)
    return tokens


@pytest.mark.parametrize("name", ["llama", "gemma3", "falcon_mamba", "jamba"])
def test_rewound_forked_and_cut_is_fresh(name):
    text = some_tokens(60)
    with cairn.Model(golden(name)) as model, cairn.Engine(model, memory="64MiB") as engine:
        fresh = engine.session()
        fresh.become(text[:40])
        wanted = bits_of(fresh)
        fresh.close()
        with engine.session() as session:
            for begin in range(0, 40, 7):
                session.append(text[begin : min(begin + 7, 40)])
            assert bits_of(session) == wanted
            with session.snapshot() as mark:
                assert mark.position == 40
                session.append(text[40:])
                longer = bits_of(session)
                branch = session.fork(mark)
                assert branch.tokens == text[:40] and bits_of(branch) == wanted
                plan = session.rewind(mark)
                assert plan.forward_tokens == 0 and bits_of(session) == wanted
            session.become(text)
            assert bits_of(session) == longer
            price = session.plan_rewind(40)
            plan = session.rewind(40)
            assert (plan.target, plan.forward_tokens) == (40, price.forward_tokens)
            assert bits_of(session) == wanted
            session.reset()
            assert session.tokens == [] and session.position == 0
            session.become(text[:40])
            assert bits_of(session) == wanted


def test_an_answer_by_every_way(engine, session):
    plan = session.chat(PARIS)
    assert plan.target == session.position and plan == session.last_plan
    assert str(plan) == session.explain()
    wanted = "The capital of France is Paris."
    prompt = session.tokens
    events = list(session.generate())
    assert "".join(event.text for event in events) == wanted
    assert [event.finish for event in events[:-1]] == ["none"] * (len(events) - 1)
    assert events[-1].finish == "stop" and events[-1].position == session.position
    assert prompt + [token for event in events for token in event.tokens] == session.tokens
    assert session.text.endswith(wanted)
    session.rewind(len(prompt))
    assert session.answer() == wanted

    async def streamed():
        with engine.session(sampling=GREEDY) as other:
            other.become(prompt)
            return "".join([event.text async for event in other.agenerate()])

    assert asyncio.run(streamed()) == wanted
    session.rewind(len(prompt))
    by_hand = []
    while (token := session.sample()) != engine.model.info.eos and len(by_hand) < 32:
        row = session.logits().numpy()
        assert token == int(row.argmax())
        by_hand.append(token)
        session.append([token])
    assert engine.model.detokenize(by_hand, whole=False) == wanted


def test_forms_stops_biases_and_probabilities(session):
    session.chat(PARIS)
    with session.snapshot() as mark:
        session.sampling = {"temperature": 0, "json_schema": {"enum": ["red", "blue"]}}
        assert json.loads(session.answer()) in ("red", "blue")
        session.rewind(mark)
        session.sampling = cairn.Sampling(temperature=0, grammar="root ::= [0-9]{3}")
        assert session.answer().isdigit()
        session.rewind(mark)
        session.sampling = cairn.Sampling(temperature=0, stop="France", logprobs=True)
        events = list(session.generate())
        assert "".join(event.text for event in events) == "The capital of "
        assert all(value <= 0 for event in events for value in event.logprobs or [])
        assert any(event.logprobs for event in events)
        session.rewind(mark)
        first = session.sample()
        session.sampling = cairn.Sampling(temperature=0, max_tokens=1, logit_bias={first: False})
        assert next(session.generate()).tokens != [first]
        session.rewind(mark)
        with pytest.raises(cairn.InvalidError, match="temp.*-1"):
            session.sampling = cairn.Sampling(temperature=-1)


def test_seeds_choose_alike(session):
    session.chat(PARIS)
    with session.snapshot() as mark:
        texts = []
        for seed in (1, 1, 2, 3, 4, 5):
            session.rewind(mark)
            session.sampling = cairn.Sampling(temperature=8, seed=seed, max_tokens=16,
                                              samplers="temperature")
            texts.append(session.answer())
    assert texts[0] == texts[1] and len(set(texts)) > 2


def test_logits_are_views_that_hold_what_they_show(session):
    session.chat(PARIS)
    row = session.logits()
    array = numpy.asarray(row)
    assert array.dtype == numpy.float32 and array.shape == (2048,)
    assert array.ctypes.data == numpy.asarray(row).ctypes.data
    before = array.copy()
    with pytest.raises(ValueError, match="read-only"):
        array[0] = 1
    del row
    session.answer()
    numpy.testing.assert_array_equal(array, before)
    with pytest.raises(cairn.InvalidError, match="2048"):
        session.sample([1.0, 2.0])
    wanted = before.copy()
    wanted[700] = 1000
    assert session.sample(wanted) == 700 and session.sample(wanted.tolist()) == 700
    session.set_logits(wanted)
    assert session.next().tokens == [700]


def test_receipts_are_computed_again(session, tmp_path):
    session.sampling = cairn.Sampling(seed=7, max_tokens=12, receipt=True)
    session.chat(PARIS)
    session.answer()
    path = tmp_path / "receipt.json"
    path.write_text(json.dumps(session.receipt()))
    replay = subprocess.run([BUILD / "cairn", "replay", path, "--model", NANO],
                            capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert replay.returncode == 0 and "equal" in replay.stdout + replay.stderr, replay


def test_the_store_outlives_the_engine(model, tmp_path):
    with cairn.Engine(model, memory="64MiB", store=tmp_path / "store") as engine:
        session = engine.session()
        session.chat(PARIS)
        wanted, tokens = bits_of(session), session.tokens
        session.save("paris")
        with pytest.raises(cairn.InvalidError, match="name"):
            session.save("a/b")
    with cairn.Engine(model, memory="64MiB", store=tmp_path / "store") as engine:
        session = engine.session()
        with pytest.raises(cairn.StorageError):
            session.load("rome")
        plan = session.load("paris")
        assert plan.forward_tokens == 0 and session.tokens == tokens
        assert bits_of(session) == wanted


def test_texts_are_scored(engine):
    tokens = engine.model.tokenize("The capital of France is Paris.")
    logprobs, likeliest = engine.score(tokens)
    assert len(logprobs) == len(likeliest) == len(tokens) - 1
    with engine.session() as session:
        for index, token in enumerate(tokens[:-1]):
            session.append([token])
            row = session.logits().numpy().astype(numpy.float64)
            total = numpy.log(numpy.exp(row - row.max()).sum()) + row.max()
            assert logprobs[index] == pytest.approx(row[tokens[index + 1]] - total, abs=1e-5)
            assert likeliest[index] == int(row.argmax())


def test_a_second_call_is_told_so_and_a_cancelled_one_leaves_no_trace(engine):
    session = engine.session(sampling=GREEDY)
    session.chat(PARIS)
    before, wanted = session.tokens, bits_of(session)
    ended = []

    def read():
        try:
            while True:
                session.append(some_tokens(2000))
                session.rewind(len(before))
        except cairn.Cancelled:
            ended.append(session.tokens)

    thread = threading.Thread(target=read)
    thread.start()
    refused = 0
    while not refused and thread.is_alive():
        try:
            session.plan_rewind(0)
        except cairn.BusyError:
            refused += 1
    while thread.is_alive():
        session.cancel()
        thread.join(0.01)
    assert refused and ended[0][: len(before)] == before
    try:
        session.rewind(len(before))
    except cairn.Cancelled:  # That which came too late for the thread.
        session.rewind(len(before))
    assert bits_of(session) == wanted
    # One that is closed while it computes ends, too.
    thread = threading.Thread(target=lambda: pytest.raises(
        cairn.CairnError, lambda: [session.append(some_tokens(2000)) for _ in range(100)]))
    thread.start()
    time.sleep(0.05)
    session.close()
    thread.join(30)
    assert not thread.is_alive() and session.closed


def test_asyncio_shares_steps_and_cancels(engine):
    async def work():
        sessions = [engine.session(sampling=cairn.Sampling(
            temperature=0, ignore_end=True, max_tokens=40)) for _ in range(4)]
        for session in sessions:
            session.chat(PARIS)

        async def texts(session):
            return "".join([event.text async for event in session.agenerate()])

        done = await asyncio.gather(*map(texts, sessions))
        assert len(set(done)) == 1 and done[0].startswith("The capital of France is Paris.")
        endless = sessions[0]
        endless.sampling = cairn.Sampling(temperature=0, ignore_end=True, max_tokens=100000)
        task = asyncio.ensure_future(texts(endless))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        # It is free again, as it stands.
        assert endless.rewind(3).target == 3
        for session in sessions:
            session.close()

    asyncio.run(work())


def test_threads_wait_without_the_interpreters_lock(engine):
    sessions = [engine.session(sampling=GREEDY) for _ in range(8)]
    texts, ticks, done = [], 0, threading.Event()

    def count():
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.0005)

    def answer(session):
        session.chat(PARIS)
        texts.append(session.answer())

    counter = threading.Thread(target=count)
    counter.start()
    threads = [threading.Thread(target=answer, args=(session,)) for session in sessions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    done.set()
    counter.join()
    assert texts == ["The capital of France is Paris."] * 8 and ticks > 0
    for session in sessions:
        session.close()
