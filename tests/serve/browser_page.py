"""The web page as a person uses it, in a browser that tests drive."""
import os
import time

import browser

FRANCE, PARIS = "What is the capital of France?", "The capital of France is Paris."
NORWAY, OSLO = "What is the capital of Norway?", "The capital of Norway is Oslo."


class Page:
    """The page as a person uses it."""

    def __init__(self, window, shots):
        self.window, self.shots = window, shots

    def say(self, text):
        self.window.type("#input", text, "enter")
        return self.answer()

    def answer(self):
        """The last answer, when it is whole."""
        self.window.wait("!document.querySelector('.live') && document.querySelector("
                         "'.message.assistant:last-child .figures')?.textContent.includes('·')")
        return self.messages()[-1]

    def messages(self):
        return self.window.texts(".message .text.body")

    def act(self, index, name):
        """Presses the button of this name under a message."""
        self.window.wait("""(() => {
            const message = [...document.querySelectorAll('.message')].at(arguments[0]);
            const button = [...message.querySelectorAll('.actions button')]
              .find((each) => each.textContent === arguments[1]);
            button?.click();
            return Boolean(button);
        })()""", index, name)

    def shoot(self, name):
        if self.shots:
            self.window.screenshot(os.path.join(self.shots, name + ".png"))


def price(window):
    return window.wait("""(() => {
        const said = document.querySelector('.tree + .note').textContent;
        return said.includes('From here') && said;
      })()""")


def price_at(window, index):
    window.run("document.querySelectorAll('.tree button')[arguments[0] - 1].focus()", index)
    return price(window)


def hover(window, row, at=None):
    """What is said of a place in the first row of this kind; the place: by default its middle."""
    window.run("""const [name, at] = arguments;
        return import('/page/memory.js').then((memory) => {
          const map = memory.theMap();
          map.draw();
          const rows = map.rows();
          const kinds = {'full attention': 'full'};
          const found = rows.find((each) => each.group.kind === (kinds[name] ?? name));
          const box = map.canvas.getBoundingClientRect();
          const x = map.x(at ?? Math.floor(map.sequence.length / 2)) + 2;
          map.canvas.dispatchEvent(new PointerEvent('pointermove', {clientX: box.left + x,
            clientY: box.top + found.y + 2, bubbles: true}));
        })""", row, at)
    return window.text(".tip")


def hover_until(window, at, text):
    """Until what is said of this place has the text: the server is asked meanwhile."""
    end = time.monotonic() + browser.PATIENCE
    while text not in (said := hover(window, "full attention", at=at)):
        assert time.monotonic() < end, (text, said)
        time.sleep(0.05)
