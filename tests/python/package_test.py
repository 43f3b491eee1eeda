"""The package from outside: errors, lifetimes, processes, drawings, documentation, types."""
import copy
import doctest
import importlib
import json
import logging
import os
import pickle
import pkgutil
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

import pytest

import cairn
from cairn import _c, _figures, _memory_map
from conftest import BUILD, GREEDY, NANO, PARIS, SOURCE, golden

SCRIPT = f"""
import cairn
model = cairn.Model({NANO!r})
engine = cairn.Engine(model, memory="64MiB", threads=1)
session = engine.session(sampling=cairn.Sampling(temperature=0, ignore_end=True))
session.chat([{{"role": "user", "content": "Hello"}}])
"""


def run(script, **environment):
    return subprocess.run([sys.executable, "-c", script], capture_output=True, text=True,
                          env={**os.environ, **environment}, stdin=subprocess.DEVNULL, timeout=120)


def test_models_tell_of_themselves_and_read_text(model):
    assert model.info.architecture == "granitehybrid" and model.info.vocabulary_count == 2048
    assert model.info.file_bytes == os.path.getsize(NANO) and model.info.has_chat_template
    for text in ("", "Hello, world!", "日本語 👩‍🚀 \n\t", "x" * 5000):
        assert model.detokenize(model.tokenize(text)) == text
        assert model.detokenize_bytes(model.tokenize(text.encode())) == text.encode()
    # What people write is text, whatever it looks like.
    special = model.detokenize([model.info.eos], special=True)
    assert model.tokenize(special, special=True) == [model.info.eos]
    assert model.info.eos not in model.tokenize(special)
    assert model.info.eos not in model.render([{"role": "user", "content": special}])[3:-3]
    assert len(model.render(PARIS, add_generation_prompt=False)) < len(model.render(PARIS))


def test_errors_name_what_is_wrong(model, engine, session, tmp_path):
    with pytest.raises(cairn.StorageError, match="nowhere.gguf"):
        cairn.Model("nowhere.gguf")
    (tmp_path / "bad.gguf").write_bytes(b"FUGG" + b"\xff" * 40)
    with pytest.raises(cairn.FormatError, match="bad.gguf"):
        cairn.Model(tmp_path / "bad.gguf")
    with pytest.raises(cairn.UnsupportedError):
        engine.embed("Hello")
    with pytest.raises(cairn.InvalidError, match="2048"):
        session.append([1, 5000])
    with pytest.raises(cairn.InvalidError, match="whole numbers"):
        session.append([1, "a"])
    with pytest.raises(cairn.InvalidError, match="read"):
        session.next()
    with pytest.raises(cairn.UnsupportedError, match="role"):
        session.chat([{"content": "no role"}])
    with pytest.raises(cairn.InvalidError, match="context"):
        cairn.Engine(model, context=-1)
    with pytest.raises(cairn.InvalidError, match="type_k.*q8_0.*q5_1"):
        cairn.Engine(model, type_k="q5_1")
    with pytest.raises(cairn.InvalidError, match="nonsense"):
        cairn.Engine(model, nonsense=True)
    with pytest.raises(cairn.InvalidError, match="2GiB"):
        cairn.Engine(model, memory="two")
    with cairn.Engine(model, memory="64MiB", context=64) as small, small.session() as other:
        with pytest.raises(cairn.NoRoomError, match="64"):
            other.append([1] * 65)
        other.append([1] * 60)
        assert other.position == 60
    with pytest.raises(cairn.MismatchError), cairn.Engine(model, memory="64MiB") as elsewhere:
        session.append("Hello")
        with session.snapshot() as mark:
            elsewhere.session().rewind(mark)


def test_progress_may_give_up_and_may_fail(model):
    told = []
    cairn.Engine(model, memory="64MiB", progress=told.append).close()
    assert told and told == sorted(told) and 0 <= told[0] and told[-1] <= 1
    with pytest.raises(cairn.Cancelled):
        cairn.Engine(model, memory="64MiB", progress=lambda done: False)
    with pytest.raises(ZeroDivisionError):
        cairn.Engine(model, memory="64MiB", progress=lambda done: bool(1 // 0))


def test_what_is_closed_says_so(engine):
    session = engine.session()
    session.append("Hello")
    mark, row = session.snapshot(), session.logits()
    view = row.numpy()
    with session:
        pass
    assert session.closed
    session.close()
    for call in (session.next, session.reset, session.snapshot, lambda: session.tokens):
        with pytest.raises(cairn.InvalidError, match="closed"):
            call()
    # What stood on it stays.
    assert mark.position > 0 and float(view.max()) > float(view.min())
    with engine.session() as other:
        assert other.rewind(mark).forward_tokens == 0
    mark.close()
    with pytest.raises(cairn.InvalidError, match="closed"):
        row.close()
        row.view()


def test_handles_belong_to_their_process(model, engine, session):
    for handle in (model, engine, session):
        with pytest.raises(TypeError, match="process"):
            pickle.dumps(handle)
        with pytest.raises(TypeError, match="process"):
            copy.copy(handle)
    told = run(SCRIPT + """
import os, sys
child = os.fork()
if child == 0:
    try:
        session.next()
    except cairn.InvalidError:
        again = cairn.Engine(cairn.Model(model.path), memory="64MiB", threads=1).session()
        again.append("Hello")
        sys.exit(7)
    sys.exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
session.next()
""")
    assert (told.returncode, told.stderr) == (0, ""), told


@pytest.mark.parametrize("ending", [
    "session.next()",
    "threading.Thread(target=lambda: [None for _ in session.generate()], daemon=True).start(); "
    "time.sleep(0.1)",
    "events = session.generate(); next(events)",
    "model.close(); engine.close(); session.next(); del model, engine",
    "threading.Thread(target=lambda: [None for _ in session.generate(max_tokens=200)]).start()",
])
def test_a_program_may_end_at_any_time(ending):
    ended = run(SCRIPT + "import threading, time\n" + ending)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", ""), ended


def test_engines_tell_what_they_hold(model):
    with cairn.Engine(model, memory="64 MiB", threads=1) as engine:
        assert engine.facts.capabilities == {"text", "logits", "rewind", "snapshot"}
        assert engine.memory().budget == 64 << 20 and engine.facts.vocabulary_count == 2048
        with engine.session() as session:
            plan = engine.plan(model.render(PARIS))
            assert plan.forward_tokens == plan.target > 0 and plan.new_bytes > 0
            session.chat(PARIS)
            assert engine.plan(model.render(PARIS)).resume > 0
            with session.snapshot() as mark:
                held = engine.memory()
                assert held.snapshots == 1 and 0 < held.used <= held.budget
                assert str(held).startswith(_figures.text_of_bytes(held.used))
                drawn = engine._repr_svg_()
                root = xml.etree.ElementTree.fromstring(drawn)
                assert root.tag.endswith("svg") and "snapshot at" in drawn
                assert f"{mark.position} tokens" in drawn and "<script" not in drawn
        assert engine.memory().snapshots == 0
        assert "session" not in _memory_map.memory_map(engine.memory(), [])


def test_sizes_are_read_as_people_write_them():
    for text, count in (("1", 1), ("2k", 2048), ("2 KiB", 2048), ("1.5GB", 3 << 29),
                        ("512mb", 512 << 20), (77, 77), (None, 0), ("3B", 3)):
        assert _figures.bytes_of(text) == count
    for wrong in ("", "GiB", "1XiB", "nan", "inf", "-1q", -1):
        with pytest.raises(cairn.InvalidError, match="size"):
            _figures.bytes_of(wrong)


def test_embeddings_have_length_one():
    path = BUILD / "fixtures" / "golden_embeddings" / "bert.gguf"
    with cairn.Model(path) as model, cairn.Engine(model, pooling="mean") as engine:
        vector = engine.embed([1, 5, 7, 2])
        assert len(vector) == engine.facts.vector_floats
        assert sum(value * value for value in vector) == pytest.approx(1, abs=1e-5)
        with pytest.raises(cairn.UnsupportedError):
            engine.session()


def test_messages_go_to_a_logger(caplog, model):
    cairn.set_log(logging.getLogger("cairn"), logging.DEBUG)
    try:
        with caplog.at_level(logging.DEBUG, "cairn"):
            cairn.Engine(model, memory="64MiB", threads=1).close()
        assert caplog.records
        count = len(caplog.records)
    finally:
        cairn.set_log(None)
    cairn.Engine(model, memory="64MiB", threads=1).close()
    assert len(caplog.records) == count


def test_another_layout_is_refused():
    layout = json.loads(_c.lib.cairn_layout_json())
    _c.check_layout(layout)
    layout["cairn_event"]["tokens"] += 4
    with pytest.raises(ImportError, match="cairn_event.*expected.*found"):
        _c.check_layout(layout)
    refused = run("import cairn", CAIRN_LIBRARY="/nowhere/libcairn.so")
    assert refused.returncode == 1 and "CAIRN_LIBRARY" in refused.stderr


def test_examples_of_the_documentation():
    for found in pkgutil.iter_modules(cairn.__path__, "cairn."):
        if found.name in ("cairn.__main__", "cairn.lm_eval"):  # Runs; wants the harness.
            continue
        module = importlib.import_module(found.name)
        globs = {**vars(cairn), "NANO": NANO, **vars(module)}
        failed, _ = doctest.testmod(module, extraglobs=globs)
        assert failed == 0, found.name
    failed, ran = doctest.testmod(cairn, extraglobs={"NANO": NANO})
    assert failed == 0 and ran > 0


def test_the_example_makes_three_answers_of_one_reading():
    made = subprocess.run([sys.executable, SOURCE / "examples" / "python" / "branches.py", NANO,
                           PARIS[0]["content"]], capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=120)
    assert made.returncode == 0 and len(made.stdout.splitlines()) == 3, made
    assert "11 are read" in made.stderr, made


def test_the_readme_shows_what_runs():
    readme = (SOURCE / "README.md").read_text()
    block = next(part for part in readme.split("```python\n")[1:] if "import cairn\n" in part)
    shown = run(block.split("```")[0].replace("MODEL.gguf", NANO))
    assert shown.returncode == 0 and len(shown.stdout.splitlines()) == 2, shown


def test_the_page_can_be_typed():
    page = (SOURCE / "docs" / "python.md").read_text()
    whole, *parts = [part.split("```")[0] for part in page.split("```python\n")[1:]]
    assert len(parts) == 3  # The last one is of other packages.
    shown = run(whole.replace("MODEL.gguf", NANO) + SCRIPT + "".join(parts[:2]))
    assert (shown.returncode, shown.stderr) == (0, "") and "are read" in shown.stdout, shown


def test_nothing_heavy_is_imported():
    told = run("import sys, cairn; print(sorted({'numpy', 'jinja2', 'ssl'} & set(sys.modules)))")
    assert told.stdout.strip() in ("[]", "['ssl']"), told


@pytest.mark.parametrize("checker", [["mypy", "--strict"],
                                     ["pyright", "--pythonpath", sys.executable]])
def test_types(checker):
    pytest.importorskip(checker[0])
    # One of them has parts of its own to fetch when it is first started.
    if subprocess.run([sys.executable, "-m", checker[0], "--version"], capture_output=True,
                      stdin=subprocess.DEVNULL).returncode != 0:
        pytest.skip(f"{checker[0]} cannot be started")
    package = Path(cairn.__file__).parent
    checked = subprocess.run([sys.executable, "-m", *checker, str(package)], cwd=SOURCE,
                             capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_the_wheel_stands_alone(tmp_path):
    pytest.importorskip("scikit_build_core")
    pytest.importorskip("ensurepip")
    made = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
         "-w", tmp_path, SOURCE, f"-Ccmake.define.CAIRN_PREBUILT={BUILD}",
         f"-Cbuild-dir={tmp_path / 'build'}"],
        capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert made.returncode == 0, made.stderr
    wheel, = tmp_path.glob("*.whl")
    assert "-py3-none-" in wheel.name and wheel.stat().st_size <= 12_000_000
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", wheel], check=True)
    environment = {name: value for name, value in os.environ.items()
                   if name not in ("PYTHONPATH", "CAIRN_LIBRARY")}
    script = SCRIPT + "print(cairn.__file__); print(session.answer(max_tokens=3))"
    told = subprocess.run([python, "-c", script], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert told.returncode == 0 and str(tmp_path) in told.stdout, told
    told = subprocess.run([python, "-m", "cairn", "--version"], cwd=tmp_path, env=environment,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert told.stdout.startswith(f"cairn {cairn.__version__}"), told
