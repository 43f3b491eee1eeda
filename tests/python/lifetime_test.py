"""Whatever is closed, interrupted or ended, at whatever moment: nothing crashes, hangs or leaks."""
import asyncio
import gc
import logging
import os
import signal
import threading
import time

import pytest

import cairn
from conftest import NANO, PARIS
from package_test import SCRIPT, run

ENDLESS = cairn.Sampling(temperature=0, ignore_end=True, max_tokens=100000)
# Within a handler of the library's first message.
IN_A_HANDLER = """
import cairn, logging
told = []
class Handler(logging.Handler):
    def emit(self, record):
        try:
            %s
        except cairn.InvalidError:
            told.append(record)
logger = logging.getLogger("x")
logger.setLevel(1)
logger.addHandler(Handler())
logger.propagate = False
cairn.set_log(logger, logging.DEBUG)
"""


@pytest.fixture
def endless(engine):
    with engine.session(sampling=ENDLESS) as session:
        session.chat(PARIS)
        yield session


@pytest.fixture
def alarm():
    """Has a function called by a signal handler soon, whatever runs."""
    before = signal.getsignal(signal.SIGALRM)

    def ring(function, seconds=0.1):
        signal.signal(signal.SIGALRM, lambda *_: function())
        signal.setitimer(signal.ITIMER_REAL, seconds)

    yield ring
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupt():
    raise KeyboardInterrupt


def ends(function, seconds=30):
    """Whether it returns, on another thread."""
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    thread.join(seconds)
    return not thread.is_alive()


def test_views_outlive_the_row_that_was_closed():
    told = run(SCRIPT + """
with session.logits() as row:
    view, whole = row.view(), row.numpy()
    before = whole.tolist()
for index in range(50):
    session.append([index + 5])
    session.logits().close()
assert whole.tolist() == before == list(view) and len(row) == len(before)
del engine, session, model
assert whole.tolist() == before
""")
    assert (told.returncode, told.stderr) == (0, ""), told


def test_a_row_that_was_closed_is_refused():
    told = run(SCRIPT + """
row = session.logits()
row.close()
row.close()
for call in (session.sample, session.set_logits, lambda row: row.view()):
    try:
        call(row)
    except cairn.InvalidError as error:
        assert "closed" in str(error)
    else:
        raise SystemExit(call)
""")
    assert (told.returncode, told.stderr) == (0, ""), told


@pytest.mark.parametrize("call", ["cairn.set_log(None)", "cairn.set_log(logging.getLogger('y'))"])
def test_a_log_handler_cannot_take_the_log_away(call):
    told = run(IN_A_HANDLER % call + f"""
model = cairn.Model({NANO!r})
for _ in range(5):
    cairn.Engine(model, memory="64MiB", threads=1).close()
assert len(told) >= 5
""")
    assert (told.returncode, told.stderr) == (0, ""), told


def test_a_function_for_progress_cannot_take_the_log_away(model):
    with pytest.raises(cairn.InvalidError, match="set_log"):
        cairn.Engine(model, memory="64MiB", progress=lambda done: cairn.set_log(None))
    cairn.set_log(None)


@pytest.mark.parametrize("loading", [
    "cairn.Engine(model, memory='64MiB', threads=1, progress=progress)",
    # One that the program's end does not wait for.
    "cairn._callbacks._END_SECONDS_MAX = 0\n"
    "    cairn.Engine(model, memory='64MiB', threads=1, progress=progress)",
    "cairn.set_log(logger, logging.DEBUG)\n"
    "    while True: cairn.Engine(model, memory='64MiB', threads=1, progress=progress)",
])
def test_a_program_may_end_while_an_engine_opens(loading):
    for _ in range(3):
        told = run(f"""
import cairn, logging, threading, time
logger = logging.getLogger("x")
logger.setLevel(1)
logger.addHandler(logging.NullHandler())
model, started = cairn.Model({NANO!r}), threading.Event()
def progress(done):
    started.set()
    time.sleep(0.01)
def load():
    {loading}
threading.Thread(target=load, daemon=True).start()
started.wait()
""")
        assert (told.returncode, told.stdout, told.stderr) == (0, "", ""), told


def test_what_becomes_garbage_in_a_callback_is_closed_afterwards(model):
    def threads():
        return len(os.listdir("/proc/self/task"))

    def make_garbage():
        node = {"engine": cairn.Engine(model, memory="64MiB", threads=3)}
        node["node"] = node

    gc.collect()
    before = threads()
    for _ in range(4):
        gc.disable()
        try:
            make_garbage()
            cairn.Engine(model, memory="64MiB", threads=1,
                         progress=lambda done: gc.collect() and None).close()
        finally:
            gc.enable()
    assert threads() <= before


@pytest.mark.parametrize("close_on_a_thread", [False, True])
def test_close_ends_a_task_that_waits(engine, close_on_a_thread):
    async def work():
        # Two at a time: the second one waits for steps.
        sessions = [engine.session(sampling=ENDLESS) for _ in range(2)]
        for session in sessions:
            session.chat(PARIS)
        other, session = sessions
        other.start()

        async def listen():
            async for _ in session.agenerate():
                pass

        task = asyncio.ensure_future(listen())
        await asyncio.sleep(0.2)
        if close_on_a_thread:
            await asyncio.to_thread(session.close)
        else:
            session.close()
        done, _ = await asyncio.wait([task], timeout=10)
        other.close()
        assert done and isinstance(task.exception(), cairn.InvalidError)

    asyncio.run(work())


def test_a_signal_handler_may_close_the_session_that_computes(endless, alarm):
    alarm(endless.close)
    with pytest.raises(cairn.CairnError):
        for _ in endless.generate():
            pass
    assert endless.closed and not endless._finalizer.alive


def test_close_in_a_log_handler_does_not_wait(endless):
    # The call of another thread may itself wait for the handler that closes.
    from cairn._callbacks import inside

    def close():
        with inside():
            endless.close()

    with endless._lock:
        assert ends(close, 10)
        assert endless.closed and endless._finalizer.alive
    with pytest.raises(cairn.InvalidError, match="closed"):
        endless.next()
    assert not endless._finalizer.alive


def test_a_forked_child_closes_what_another_thread_used():
    told = run(SCRIPT + """
import os, sys, threading, time
thread = threading.Thread(target=lambda: session.append([7] * 6000))
thread.start()
time.sleep(0.1)
child = os.fork()
if child == 0:
    try:
        session.rewind(0)
    except cairn.InvalidError:
        session.close()
        os._exit(7)
    os._exit(1)
for _ in range(500):
    ended, status = os.waitpid(child, os.WNOHANG)
    if ended:
        break
    time.sleep(0.02)
else:
    os.kill(child, 9)
session.cancel()
thread.join()
assert os.waitstatus_to_exitcode(status) == 7
""")
    assert told.returncode == 0 and "AssertionError" not in told.stderr, told


def test_an_interrupted_answer_leaves_its_session_free(endless, alarm):
    prompt = endless.position
    alarm(interrupt, 0.2)
    with pytest.raises(KeyboardInterrupt):
        endless.answer()
    assert endless.position > prompt and endless.rewind(prompt).target == prompt
    assert endless.answer(max_tokens=2) and endless.rewind(prompt).target == prompt


def test_interrupts_never_leave_a_session_busy(engine, alarm):
    session = engine.session()
    session.append("Hello")
    end, count = time.monotonic() + 4, 0
    while time.monotonic() < end:
        try:
            alarm(interrupt, 0.0005 + count % 50 * 0.00001)
            while True:
                session.plan_rewind(0)
        except KeyboardInterrupt:
            count += 1
        except cairn.BusyError:
            signal.setitimer(signal.ITIMER_REAL, 0)
            raise
    assert count > 100 and session.plan_rewind(0).target == 0
    session.close()


def test_a_task_that_is_cancelled_stops_the_reading_of_its_prompt(engine):
    async def work():
        with engine.session(sampling=ENDLESS) as session:
            task = asyncio.ensure_future(anext_of(session.agenerate([7] * 8000)))
            await asyncio.sleep(0.1)
            began = time.monotonic()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert session.position == 0 and session.append("Hello").target > 0
            return time.monotonic() - began

    assert asyncio.run(work()) < 5


async def anext_of(answer):
    async for event in answer:
        return event


def test_leaving_the_loop_frees_the_session(endless):
    async def work():
        prompt = endless.position
        for _ in range(20):
            async for _ in endless.agenerate():
                break
            assert endless.rewind(prompt).target == prompt
        answer = endless.agenerate()
        await answer.__anext__()
        await answer.aclose()
        await answer.aclose()
        with pytest.raises(StopAsyncIteration):
            await answer.__anext__()
        assert endless.rewind(prompt).target == prompt
        # One that another answer keeps busy is told so, and leaves that one alone.
        first = endless.agenerate()
        await first.__anext__()
        with pytest.raises(cairn.BusyError):
            await endless.agenerate().__anext__()
        assert (await first.__anext__()).tokens
        await first.aclose()

    asyncio.run(work())


def test_other_calls_are_told_that_one_computes(engine):
    with engine.session() as session, engine.session() as other:
        session.append([7] * 10)
        other.append([7] * 20)
        thread = threading.Thread(target=lambda: pytest.raises(
            cairn.Cancelled, session.append, [7] * 8000))
        thread.start()
        while not session._lock.locked():
            time.sleep(0.001)
        with pytest.raises(cairn.BusyError):
            _ = session.position
        drawn = engine._repr_svg_()
        session.cancel()
        thread.join()
        assert "20 tokens" in drawn and f"session {session.number}<" not in drawn
        assert session.position == 10 and f"session {session.number}<" in engine._repr_svg_()
