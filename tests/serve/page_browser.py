#!/usr/bin/env python3
"""The web page in a real browser, with the built-in model behind it: chat, branches, tokens,
settings, memory, keys, hostile texts (Attack 44), narrow windows. Exits 77 where Chromium or its
driver are not installed (Debian: chromium, chromium-driver).

  page_browser.py CAIRN [FOLDER_FOR_SCREENSHOTS]
"""
import json
import os
import re
import sys
import tempfile

import browser
from browser_page import FRANCE, NORWAY, OSLO, PARIS, Page, hover, hover_until, price, price_at
from page_touch import test_presses, test_touch
from serving import KEY, Server

if not browser.is_installed():
    print("chromium and chromedriver are not installed")
    sys.exit(77)

HOSTILE = """<script>document.title = "taken"</script>
<img src="http://evil.example/a.png" onerror="document.title='taken'">

[a link](javascript:alert(1)) and [another](data:text/html,x)
and ![image](http://evil.example/b.png)

| <b>a</b> | b |
|---|---|
| `<i>` | **bold** |

- one
  - two
> quoted <svg onload=alert(1)>

```html
<script>alert(1)</script>
```
"""


def test_chat(page):
    window = page.window
    window.wait("document.getElementById('model').textContent.includes('cairn-nano')")
    assert page.say(FRANCE) == PARIS
    figures = window.text(".message.assistant .figures")
    assert re.search(r"7 tokens · .* tokens/s · 0 reused · 11 computed", figures), figures
    assert window.text("#title") == FRANCE
    assert page.say(NORWAY) == OSLO
    figures = window.texts(".message.assistant .figures")[-1]
    assert not re.search(r" 0 reused", figures), figures


def test_branches(page):
    window = page.window
    page.act(2, "Edit")
    window.run("document.querySelector('.message textarea').value = ''")
    window.type(".message textarea", FRANCE)
    window.click(".edit-actions .primary")
    assert page.answer() == PARIS
    assert page.messages() == [FRANCE, PARIS, FRANCE, PARIS]
    assert window.texts(".branches")[2] == "‹2 / 2›"
    window.click(".branches button")
    assert page.messages() == [FRANCE, PARIS, NORWAY, OSLO]
    page.act(1, "Regenerate")
    page.answer()
    assert page.messages() == [FRANCE, PARIS]
    # Not the whole question is read again, and the page says why as much of it is.
    figures = window.text(".message.assistant .figures")
    assert re.search(r" [1-9]\d* reused · \d+ computed", figures), figures
    assert "—" in figures or "0 computed" in figures, figures
    # By keys, too: the first branch has the rest of the conversation.
    window.run("document.querySelectorAll('.message')[1].focus()")
    window.press("left")
    assert page.messages() == [FRANCE, PARIS, NORWAY, OSLO]


def test_conversations_stay(page):
    window = page.window
    before = window.run("return location.href")
    # The browser takes its time to write.
    window.wait("""import('/page/store.js').then((store) => store.all()).then((all) => {
        const [{nodes}] = all;
        return nodes[nodes.root.children[0]].picked === 0;
      })""")
    window.open("about:blank")
    window.open(before)
    window.wait("document.querySelectorAll('.message').length === 4")
    assert page.messages() == [FRANCE, PARIS, NORWAY, OSLO]
    assert window.texts(".branches")[1] == "‹1 / 2›"
    window.click("#new-chat")
    assert page.messages() == []
    window.wait("document.querySelectorAll('#conversations li').length === 2")
    window.click("#conversations li:last-child .name")
    assert len(page.messages()) == 4


def test_tokens(page):
    window = page.window
    page.act(3, "Tokens")
    assert "".join(window.texts(".token")) == OSLO
    page.shoot("tokens")
    # Instead of " Norway".
    window.run("document.querySelectorAll('.token')[3].click()")
    others = window.texts(".alternative code")
    other = next(text for text in others if text.strip().isalpha() and text != " Norway")
    window.run("[...document.querySelectorAll('.alternative')].find((each) => "
               "each.firstChild.textContent === arguments[0]).click()", other)
    begun = "The capital of" + other
    assert page.answer().startswith(begun), (page.answer(), begun)
    assert page.answer() != begun, "the model goes on"
    assert window.texts(".branches")[3] == "‹2 / 2›"
    page.act(3, "Tokens")
    assert "".join(window.texts(".token")).startswith(begun)
    window.run("document.querySelectorAll('.branches button')[2].click()")


def test_settings_and_stop(page):
    window = page.window
    window.press("\ue00a", "s")
    defaults = window.run("""return fetch('/openapi.json').then((reply) => reply.json())
        .then((api) => api.paths['/v1/chat/completions'].post.requestBody.content
        ['application/json'].schema.properties)""")
    for name in ("temperature", "top_k", "min_p", "mirostat_tau"):
        shown = window.run("return document.getElementById('field-' + arguments[0]).placeholder",
                           name)
        assert float(shown) == defaults[name]["default"], (name, shown)
    page.shoot("settings")
    window.run("const input = document.getElementById('field-top_p'); input.value = '3';"
               "input.dispatchEvent(new Event('change'));")
    assert window.run("return document.querySelector('#field-top_p[aria-invalid=true]') !== null")
    window.click("#field-ignore_eos")
    window.click("#new-chat")
    window.type("#input", FRANCE, "enter")
    window.wait("document.querySelector('.live .body')?.textContent.length > 40")
    window.press("escape")
    window.wait("!document.querySelector('.live')")
    assert "stopped" in window.texts(".message.assistant .figures")[-1]
    kept = page.messages()[-1]
    page.act(-1, "Continue")
    window.wait("document.querySelector('.live .body')?.textContent.length > arguments[0] + 20",
                len(kept))
    window.click("#stop")
    window.wait("!document.querySelector('.live')")
    assert page.messages()[-1].startswith(kept)
    window.click("#field-ignore_eos")
    window.click("#open-settings")


def test_hostile_texts(page):
    window = page.window
    window.run("""const [hostile, long] = arguments;
        return Promise.all([import('/page/chat.js'), import('/page/tree.js')])
        .then(([chat, tree]) => {
          const made = tree.newConversation();
          const asked = tree.addNode(made, tree.root(made), {role: 'user', text: hostile});
          const said = tree.addNode(made, asked, {role: 'assistant', text: hostile,
            reasoning: hostile});
          const more = tree.addNode(made, said, {role: 'user', text: long});
          tree.addNode(made, more, {role: 'assistant', text: long + '\\n' + '*_`['.repeat(50000)});
          chat.open(made);
        })""", HOSTILE, "x" * 1000000)
    forbidden = window.run("return document.querySelectorAll('#messages :is(script, img, svg, "
                           "iframe, object, style, link, form)').length")
    assert forbidden == 0, forbidden
    links = window.run("return [...document.querySelectorAll('#messages a')].map((a) => a.href)")
    assert links and all(link.startswith("http://evil.example/") for link in links), links
    assert window.run("return document.title") == "cairn"
    said = ".message.assistant .text.body"
    assert "<script>" in window.text(said) and "onerror=" in window.text(said)
    counts = window.run("""return ['table td', 'li li, li', 'blockquote', 'pre code', 'strong']
        .map((each) => document.querySelector(arguments[0] + ' :is(' + each + ')') !== null)""",
                        said)
    assert all(counts), counts
    assert len(page.messages()[2]) == 1000000
    asked = window.run("return performance.getEntriesByType('resource').map((each) => each.name)"
                       ".filter((name) => !name.startsWith(location.origin))")
    assert asked == [], asked
    page.shoot("hostile")


def test_import(page):
    window = page.window
    found = window.run("return import('/page/store.js').then((store) => store.all())")[-1]
    texts = [node["text"] for node in found["nodes"].values()]
    assert PARIS in texts and OSLO in texts
    whole = {**found, "id": "imported", "title": "From a file"}
    loop = {**found, "id": "loop", "nodes": {"root": {**found["nodes"]["root"],
                                                      "children": ["root"]}}}
    with tempfile.TemporaryDirectory() as folder:
        for name, content in (("good", {"conversations": [whole, loop, 7, None]}), ("bad", [1])):
            path = os.path.join(folder, name + ".json")
            with open(path, "w", encoding="utf-8") as file:
                json.dump(content, file)
            window.type("#import-file", path)
            window.wait("document.getElementById('status').textContent.includes(arguments[0])",
                        "1 imported" if name == "good" else "no conversations")
    names = window.texts("#conversations .name")
    assert names[0] == "From a file" and len(names) == 3, names
    window.click("#conversations li:first-child .name")
    assert PARIS in page.messages()
    window.click("#conversations li:first-child .icon")
    window.click("#dialog .primary")
    window.wait("document.querySelectorAll('#conversations li').length === 2")


def test_policy(page):
    """The browser itself refuses what the page does not do."""
    window = page.window
    assert window.complaints() == []
    problem = window.run("try { document.createElement('p').innerHTML = '<b>x</b>'; return ''; }"
                         "catch (refused) { return refused.name; }")
    assert problem == "TypeError", problem
    window.run("const made = document.createElement('img'); made.src = 'http://evil.example/x.png';"
               "document.body.append(made);")
    window.wait("performance.now() > 0")
    window.run("document.querySelector('body > img').remove()")
    complaints = " ".join(window.complaints())
    assert "TrustedHTML" in complaints and "img-src" in complaints, complaints


def test_memory(page):
    window = page.window
    window.click("#conversations li:last-child .name")
    window.press("\ue00a", "m")
    window.wait("document.querySelectorAll('.sequences button').length > 1")
    window.wait("document.querySelector('.sequences em')?.textContent === ' this conversation'")
    sizes = window.texts(".parts .number")
    assert len(sizes) == 6 and all(re.search(r"\d (B|KiB|MiB|GiB)$", size) for size in sizes), sizes
    units = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
    numbers = [float(size.replace("−", "-").split()[0]) * units[size.split()[1]] for size in sizes]
    assert abs(sum(numbers[:5]) - numbers[5]) < 0.02 * numbers[5] + 2**20, sizes
    assert "full attention" in hover(window, "full attention")
    assert "live" in hover(window, "full attention")
    said = hover(window, "full attention", at=0)
    assert re.search(r"shared with \d+ other", said), said
    window.run("document.getElementById('memory').scrollTop = 0")
    page.shoot("memory")


def test_going_back(page):
    """By a click, whose price is shown before."""
    window = page.window
    whole = page.messages()
    assert len(whole) == 4
    # The end of the first question is a snapshot.
    window.run("document.querySelector('.tree button').focus()")
    said = price(window)
    assert "11 of 11 tokens are in memory, 0 would be read" in said, said
    assert page.messages() == whole, page.messages()
    window.click(".tree li:nth-child(2) button")
    window.wait("document.querySelectorAll('.message').length === 2")
    assert page.messages() == whole[:2]
    said = price(window)
    assert re.search(r"From here: [1-9]\d* of \d+ tokens are in memory", said), said
    assert window.text(".tree .last") == "Model: " + PARIS
    window.click("#show-chat")
    window.click(".gone-back button")
    assert page.messages() == whole, page.messages()
    window.click("#show-memory")
    # A column of the map: its turn stays, and what comes behind it does not.
    window.wait("document.querySelector('.sequences em')?.textContent === ' this conversation'")
    hover_until(window, 4, "turn 1, “You: " + FRANCE)
    hover_until(window, 24, "turn 2, “You: " + NORWAY)
    page.shoot("memory-turn")
    window.run("""const map = arguments[0], box = map.getBoundingClientRect();
        const at = {clientX: box.left + 130, clientY: box.top + 30, bubbles: true, pointerId: 1};
        map.setPointerCapture = () => {};
        map.dispatchEvent(new PointerEvent('pointermove', at));
        map.dispatchEvent(new PointerEvent('pointerdown', at));
        map.dispatchEvent(new PointerEvent('pointerup', at));
        delete map.setPointerCapture;""", {browser.ELEMENT: window.find(".map")})
    window.wait("document.querySelectorAll('.message').length === 2")
    assert page.messages() == whole[:2]
    # And by keys: from a place in the second turn to one in the first.
    window.run("[...document.querySelectorAll('.tree button')]"
               ".find((each) => each.textContent === arguments[0]).click()", "Model: " + whole[3])
    window.wait("document.querySelectorAll('.message').length === 4")
    hover_until(window, 24, "turn 2, “You: " + NORWAY)
    window.run("document.querySelector('.map').focus()")
    window.press("enter")
    assert page.messages() == whole, page.messages()
    hover_until(window, 24, "turn 2, “You: " + NORWAY)
    for _ in range(20):
        window.press("left")
    window.press("enter")
    window.wait("document.querySelectorAll('.message').length === 2")
    # What is said now is a branch beside the old one.
    window.click("#show-chat")
    assert page.say(NORWAY) == OSLO
    assert window.texts(".branches")[2] == "‹3 / 3›"
    window.click("#show-memory")


def test_forks(page):
    """What is dragged to an empty place is the end of a new conversation."""
    window = page.window
    names = ".map(each => each.textContent)"
    listed = "return [...document.querySelectorAll('#conversations .name')]" + names
    before = window.run(listed)
    whole = page.messages()
    first = ".tree li:nth-child(2) button"
    window.run("document.querySelector(arguments[0]).focus()", first)
    first_price = price(window)
    window.run("document.querySelector('.tree button').scrollIntoView({block: 'center'})")
    # To where things can be lifted, or given up: nothing happens.
    window.drag(first, ".tree li:nth-child(1) button")
    window.drag(first, "#title", escapes=True)
    assert window.run(listed) == before, (before, window.run(listed))
    assert page.messages() == whole, (whole, page.messages())
    # A tap on what still rolls would only stop it.
    window.wait("""new Promise((resolve) => {
        const memory = document.getElementById('memory'), top = memory.scrollTop;
        setTimeout(() => resolve(memory.scrollTop === top), 300);
      })""")
    assert window.run("return document.querySelector('.lifted')") is None
    window.drag(first, "#title")
    window.wait("document.querySelectorAll('#conversations li').length === arguments[0]",
                len(before) + 1)
    assert window.run(listed)[0] == "Fork of " + FRANCE
    assert page.messages() == whole[:2]
    # It has what the other one has computed.
    window.run("document.querySelector(arguments[0]).focus()", first)
    assert price(window) == first_price
    window.run("[...document.querySelectorAll('#conversations .name')].at(-1).click()")
    assert page.messages() == whole, page.messages()
    window.click("#show-memory")
    hover_until(window, 4, "turn 1, “You: " + FRANCE)
    # Out of the map: down from the first turn, to the list of conversations.
    window.run("document.getElementById('memory').scrollTop = 0")
    width = window.run("return document.querySelector('.map').getBoundingClientRect().width")
    window.point(".map", int(130 - width / 2), 0)
    window.drag(".map", "#side footer", begin=(int(130 - width / 2), 0))
    window.wait("document.querySelectorAll('#conversations li').length === arguments[0]",
                len(before) + 2)
    assert page.messages() == whole[:2]
    # By the keyboard, and by the button for those who have no mouse.
    window.run("document.querySelector('.tree button').focus()")
    window.press("f")
    window.wait("document.querySelectorAll('#conversations li').length === arguments[0]",
                len(before) + 3)
    assert page.messages() == whole[:1]
    window.run("document.querySelector('.tree button').focus()")
    window.click(".drop")
    window.wait("document.querySelectorAll('#conversations li').length === arguments[0]",
                len(before) + 4)
    window.run("[...document.querySelectorAll('#conversations .name')].at(-1).click()")
    window.click("#show-memory")


def test_long_context(page):
    """A map of 131,072 tokens in 48 layers of four kinds, with all the runs that there may be."""
    window = page.window
    times = window.run("""const length = 131072, layers = (first, step) =>
            Array.from({length: 12}, (_, index) => first + index * step);
        const runs = (from, count) => Array.from({length: count}, (_, index) => {
          const span = Math.floor((length - from) / count);
          return [from + index * span, from + (index + 1) * span, index % 3];
        }).flat();
        const group = (kind, window, page_tokens, first) =>
          ({kind, window, page_tokens, block_bytes: 32768, layers: layers(first, 4)});
        const held = (list) => ({blocks: 1, shared: 0, bytes: 1 << 20, whole: true, runs: list,
          stored: list.filter((_, at) => at % 3 < 2)});
        const states = Array.from({length: 512}, (_, at) => [at * 256, at * 256, 0]).flat();
        const sequences = Array.from({length: 32}, (_, index) => ({
          id: 'kept-' + index, use: 'kept', length, common: index * 1000, stored: true,
          marks: Array.from({length: 256}, (_, mark) => [mark * 512, 'message_start']),
          groups: [held(runs(0, 512)), held(runs(90000, 512)), held(runs(length - 8192, 512)),
            held(states)]}));
        return import('/page/memory.js').then(async (memory) => {
          memory.hide();  // What the server says would come between.
          memory.take({process: {resident: 1e9, files: 1e8, weights: 2e8, steps: 1e8,
              conversations: 5e8, rest: 1e8},
            conversations: {pages: 1e8, states: 1e8, logs: 0, rows: 0, warm: 0, budget: 1e9},
            engine: {running: 0, waiting: 0, steps: 0, decode_rows: 0, prompt_rows: 0}, store: null,
            groups: [group('full', 0, 32, 0), group('window', 1024, 32, 1),
              group('chunked', 8192, 32, 2), group('recurrent', 0, 0, 3)],
            left_out: 0, order: sequences.map((each) => each.id), sequences});
          const map = memory.theMap();
          map.frameTimes.length = 0;
          const pen = map.canvas.getContext('2d'), fill = pen.fillRect;
          let calls = 0, callsMax = 0;
          pen.fillRect = (...place) => { ++calls; fill.apply(pen, place); };
          let last = performance.now();
          const frames = [];
          for (let frame = 0; frame < 60; ++frame) {
            map.zoom(frame < 30 ? 0.8 : 1.25, 100000);
            map.move(map.from + 500, map.span);
            await new Promise((resolve) => requestAnimationFrame(resolve));
            const now = performance.now();
            frames.push(now - last);
            last = now;
            callsMax = Math.max(callsMax, calls);
            calls = 0;
          }
          delete pen.fillRect;
          return {calls: callsMax, drawn: map.frameTimes.length, draw: Math.max(...map.frameTimes),
            frame: Math.max(...frames), rows: map.rows().length, length: map.sequence.length};
        })""")
    print("a map of 131,072 tokens: frames of at most {frame:.0f} ms, drawn in {draw:.1f} ms, "
          "{calls} rectangles".format(**times))
    # The time of a frame is that of what is drawn, which is bounded by the runs that there may be:
    # of four groups 512 that are held (each is cleared, drawn and underlined), and as many on disk.
    assert times["calls"] < 4 * 512 * 6, times
    assert times["rows"] == 48 and times["length"] == 131072 and times["drawn"] >= 30, times
    page.shoot("memory-long")


def test_long_conversation(page):
    """Scrolling through the text of 131,072 tokens."""
    window = page.window
    window.click("#show-chat")
    times = window.run("""return Promise.all([import('/page/chat.js'), import('/page/tree.js')])
        .then(async ([chat, tree]) => {
          const before = chat.current(), made = tree.newConversation();
          let last = tree.root(made);
          const text = '# A title\\n\\nSome *words* and `code`.\\n\\n- one\\n- two\\n\\n'
            + 'And a paragraph of words that goes on. '.repeat(60);
          for (let turn = 0; turn < 120; ++turn) {
            last = tree.addNode(made, last, {role: 'user', text: text.slice(0, 300)});
            last = tree.addNode(made, last, {role: 'assistant', text: text + text});
          }
          chat.open(made);
          const list = document.getElementById('messages'), frames = [];
          let before_frame = performance.now();
          for (let frame = 0; frame < 60; ++frame) {
            list.scrollTop = frame / 60 * list.scrollHeight;
            await new Promise((resolve) => requestAnimationFrame(resolve));
            const now = performance.now();
            frames.push(now - before_frame);
            before_frame = now;
          }
          const length = list.textContent.length;
          chat.open(before);
          return {frame: Math.max(...frames.slice(1)), length};
        })""")
    print("a conversation of {length:,} characters: frames of at most {frame:.0f} ms"
          .format(**times))
    assert times["length"] > 4 * 131072 and times["frame"] < 10000, times


def test_narrow_and_dark(page):
    window = page.window
    light = window.run("return getComputedStyle(document.body).backgroundColor")
    window.devtools("Emulation.setDeviceMetricsOverride", width=390, height=844,
                    deviceScaleFactor=1, mobile=True)
    for view in ("chat", "memory"):
        window.run("document.getElementById('show-' + arguments[0]).click()", view)
        wide = window.run("return [...document.querySelectorAll('body, #main, #messages, #memory')]"
                          ".filter((each) => each.scrollWidth > each.clientWidth + 1)"
                          ".map((each) => each.id)")
        assert wide == [], (view, wide)
        page.shoot("narrow-" + view)
    window.click("#side-open")
    window.wait("document.getElementById('side').getBoundingClientRect().left === 0")
    page.shoot("narrow-side")
    window.click("#conversations li:last-child .name")
    window.wait("!document.getElementById('side').classList.contains('open')")
    window.devtools("Emulation.clearDeviceMetricsOverride")
    window.devtools("Emulation.setEmulatedMedia",
                    features=[{"name": "prefers-color-scheme", "value": "dark"}])
    dark = window.run("return getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page.shoot("dark-chat")
    window.click("#show-memory")
    window.wait("document.querySelectorAll('.sequences button').length > 1")
    page.shoot("dark-memory")
    window.click("#show-chat")
    # Chosen by hand, light stays light.
    window.click("#theme")
    assert window.run("return getComputedStyle(document.body).backgroundColor") == light
    # And dark stays dark.
    window.devtools("Emulation.setEmulatedMedia", features=[])
    window.click("#theme")
    assert window.run("return getComputedStyle(document.body).backgroundColor") == dark
    window.click("#theme")
    assert window.run("return getComputedStyle(document.body).backgroundColor") == light


def test_names_of_controls(page):
    """What a screen reader says of them."""
    nameless = page.window.run("""return [...document.querySelectorAll('button, input, textarea')]
        .filter((each) => each.type !== 'file' && !(each.textContent.trim() || each.ariaLabel ||
          each.title || each.labels?.length > 0)).map((each) => each.id || each.className)""")
    assert nameless == [], nameless


def test_models(page, url):
    """Two models: the one that is picked answers, and its memory is shown."""
    window = page.window
    window.open(url)
    window.wait("document.getElementById('pick-model').options.length === 2")
    assert page.say(FRANCE) == PARIS
    window.run("const pick = document.getElementById('pick-model'); pick.value = 'second';"
               "pick.dispatchEvent(new Event('change'))")
    window.wait("document.getElementById('model').textContent.includes('second')")
    assert page.say(NORWAY) == OSLO
    states = json.loads(window.run(
        "const ask = new XMLHttpRequest(); ask.open('GET', '/v1/models', false); ask.send();"
        "return ask.responseText"))
    assert [model["state"] for model in states["data"]] == ["loaded", "loaded"], states
    window.click("#show-memory")
    window.wait("document.querySelectorAll('.sequences li').length === 1")
    window.click("#show-chat")
    window.complaints()


def test_disk(page, program):
    """What is on the disk, beside what is in memory; and alone, after a restart."""
    window = page.window
    texts = [FRANCE, PARIS, NORWAY, OSLO, FRANCE]
    with tempfile.TemporaryDirectory() as folder:
        for run in ("first", "second"):
            with Server(program, "--temp", "0", "--cache-dir", folder, key=None) as server:
                window.open(server.url)
                window.wait("document.getElementById('model').textContent.includes('nano')")
                window.run("""return Promise.all([import('/page/chat.js'), import('/page/tree.js')])
                    .then(([chat, tree]) => {
                      const made = tree.newConversation();
                      arguments[0].reduce((last, text, index) => tree.addNode(made, last,
                        {role: index % 2 ? 'assistant' : 'user', text}), tree.root(made));
                      chat.open(made);
                    })""", texts)
                window.click("#show-memory")
                if run == "second":
                    window.wait("document.querySelector('.about')?.textContent.includes("
                                "'on disk, and not in memory')")
                    hover_until(window, 10, "on disk: read from there, not computed")
                    assert "32 on disk" in price_at(window, 5)
                    page.shoot("memory-disk-alone")
                window.click("#show-chat")
                page.act(-1, "Answer")
                assert page.answer() == PARIS
                figures = window.texts(".message.assistant .figures")[-1]
                assert ("from disk" in figures) == (run == "second"), figures
                window.click("#show-memory")
                # It is written behind the answer.
                window.wait("document.querySelector('.about')?.textContent.includes('disk too')")
                hover_until(window, 10, "; on disk too")
                page.shoot("memory-disk")
    window.complaints()


def test_keys(page, url):
    window = page.window
    window.open(url)
    window.wait("document.getElementById('dialog').open")
    window.type("#key", KEY)
    window.click("#dialog .primary")
    window.wait("document.getElementById('model').textContent.includes('cairn-nano')")
    # A focus that a dialog has given back has no keyboard in a window without a screen.
    window.click("#title")
    assert page.say(FRANCE) == PARIS
    kept = window.run("return JSON.stringify([{...localStorage}, {...sessionStorage}])")
    assert KEY not in kept
    window.open("about:blank")
    window.open(url)
    window.wait("document.getElementById('dialog').open")
    window.complaints()


def main():
    program, shots = sys.argv[1], (sys.argv[2:] or [None])[0]
    with browser.Browser() as window, Server(program, key=None) as server:
        page = Page(window, shots)
        window.open(server.url)
        for test in (test_chat, test_branches, test_conversations_stay, test_tokens,
                     test_settings_and_stop, test_hostile_texts, test_import, test_policy,
                     test_memory, test_going_back, test_forks, test_long_context,
                     test_long_conversation, test_narrow_and_dark, test_touch, test_presses,
                     test_names_of_controls):
            test(page)
            print(test.__name__, "passed", flush=True)
        with Server(program) as guarded:
            test_keys(page, guarded.url)
            print("test_keys passed")
        source = os.path.join(os.path.dirname(__file__), "..", "..", "assets", "nano.gguf")
        with Server(program, "--alias", "second=" + source, "--memory-budget", "64M", "--temp", "0",
                    key=None) as several:
            test_models(page, several.url)
            print("test_models passed")
        test_disk(page, program)
        print("test_disk passed")
        # Whoever watches memory does not keep the server from stopping.
        window.open(server.url)
        window.click("#show-memory")
        window.wait("document.querySelectorAll('.sequences button').length > 0")


if __name__ == "__main__":
    main()
