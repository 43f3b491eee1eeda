"""The web page with fingers alone, and presses while it is drawn anew."""
from browser_page import FRANCE, NORWAY, OSLO, PARIS, hover_until, price


class Fingers:
    """A telephone, with nothing but fingers."""

    def __init__(self, window):
        self.window = window

    def __enter__(self):
        self.window.devtools("Emulation.setDeviceMetricsOverride", width=390, height=844,
                             deviceScaleFactor=1, mobile=True)
        self.window.devtools("Emulation.setTouchEmulationEnabled", enabled=True)
        return self

    def __exit__(self, *_):
        self.window.devtools("Emulation.setTouchEmulationEnabled", enabled=False)
        self.window.devtools("Emulation.clearDeviceMetricsOverride")

    def open_view(self, selector):
        """By the list at the side."""
        self.window.finger("#side-open")
        self.window.wait("document.getElementById('side').getBoundingClientRect().left === 0")
        self.window.finger(selector)
        self.window.wait("!document.getElementById('side').classList.contains('open')"
                         " && document.getElementById('side').getBoundingClientRect().right <= 0")

    def begin(self, page):
        """A conversation of two turns."""
        self.open_view("#new-chat")
        for question, answer in ((FRANCE, PARIS), (NORWAY, OSLO)):
            self.window.finger("#input")
            self.window.type("#input", question)
            self.window.finger("#send")
            assert page.answer() == answer
        return page.messages()

    def open_memory(self):
        self.open_view("#show-memory")
        self.window.wait(OWN)


OWN = "document.querySelector('.sequences em')?.textContent === ' this conversation'"
FIRST = ".tree li:nth-child(2) button"
LISTED = "return document.querySelectorAll('#conversations .name').length"


def test_touch(page):
    """What lies under a finger is shown first, and goes back when it is tapped again; a swipe
    scrolls, and lifts nothing; branches, forks and menus have their buttons."""
    window = page.window
    with Fingers(window) as fingers:
        whole = fingers.begin(page)
        count = window.run(LISTED)
        fingers.open_memory()
        window.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", FIRST)
        before = window.run("return document.getElementById('memory').scrollTop")
        window.finger(FIRST, down=-160)
        window.wait("document.getElementById('memory').scrollTop !== arguments[0]", before)
        assert window.run("return document.querySelector('.lifted')") is None
        assert (window.run(LISTED), page.messages()) == (count, whole)
        window.finger(FIRST)
        assert "From here" in price(window)
        assert page.messages() == whole, "the first tap shows the price"
        page.shoot("touch-price")
        window.finger(FIRST)
        window.wait("document.querySelectorAll('.message').length === 2")
        assert page.messages() == whole[:2]
        # The map likewise.
        window.wait(OWN)
        window.finger(".map")
        assert page.messages() == whole[:2]
        # And the button that stands for dragging.
        window.finger(FIRST)
        window.wait("!document.querySelector('button.drop').disabled")
        window.finger("button.drop")
        window.wait("document.querySelectorAll('#conversations .name').length === arguments[0]",
                    count + 1)
        assert page.messages() == whole[:2]
        # A branch, and from one to the other.
        fingers.open_view("#show-chat")
        window.finger(".message.user .actions button:nth-child(2)")
        window.run("document.querySelector('.message textarea').value = ''")
        window.type(".message textarea", NORWAY)
        window.finger(".edit-actions .primary")
        assert page.answer() == OSLO
        window.finger(".message.user .branches button")
        window.wait("document.querySelector('.message .body').textContent === arguments[0]", FRANCE)
        # Menus: settings, and the list, whose buttons no pointer has to find first.
        window.finger("#open-settings")
        window.wait("!document.getElementById('settings').hidden")
        window.finger("#settings-close")
        window.wait("document.getElementById('settings').hidden")
        window.finger("#side-open")
        window.wait("document.getElementById('side').getBoundingClientRect().left === 0")
        assert window.run("return getComputedStyle(document.querySelector("
                          "'#conversations .icon')).opacity") == "1"
        window.finger("#conversations li:first-child .icon")
        window.wait("document.getElementById('dialog').open")
        window.finger("#dialog .primary")
        window.wait("document.querySelectorAll('#conversations .name').length === arguments[0]",
                    count)
        window.finger("#side-close")


def test_presses(page):
    """What is drawn anew while a finger, or a button of the mouse, is down takes no press away."""
    window = page.window

    def press(tap, selector, drawn, *arguments):
        """Has the page drawn anew between the press and the click."""
        window.run("""const given = arguments;
            window.pressed = 0;
            return import('/page/memory.js').then((memory) => {
              window.addEventListener('pointerdown', () => {
                ++window.pressed;
                """ + drawn + """
              }, {once: true});
            })""", *arguments)
        tap(selector)
        assert window.run("return window.pressed") == 1

    with Fingers(window) as fingers:
        fingers.open_view("#new-chat")
        page.say(NORWAY)
        whole = fingers.begin(page)
        fingers.open_memory()
        report = window.run("""return fetch('/v1/memory').then((reply) => reply.json())""")
        tree = "memory.conversationChanged()"
        for tap in (window.finger, window.click):
            press(tap, FIRST, tree)
            if tap == window.finger:
                press(tap, FIRST, tree)
            window.wait("document.querySelectorAll('.message').length === 2")
            window.run("[...document.querySelectorAll('.tree button')].at(-1).click()")
            window.wait("document.querySelectorAll('.message').length === 4")
            assert page.messages() == whole
        # A sequence of the list, while the server reports.
        shown = """return [...document.querySelectorAll('.sequences button')]
            .findIndex((each) => each.ariaPressed === 'true')"""
        for tap in (window.finger, window.click):
            before = window.run(shown)
            press(tap, ".sequences button[aria-pressed=false]", "memory.take(given[0])",
                  report)
            assert window.run(shown) not in (before, -1)
        window.run("document.querySelector('.sequences button:has(em)').click()")
        # A place of the map, while nobody knows where its turns are.
        hover_until(window, 4, "turn 1, “You: " + FRANCE)
        window.run("document.getElementById('memory').scrollTop = 0")
        width = window.run("return document.querySelector('.map').getBoundingClientRect().width")
        press(lambda selector: window.point(selector, int(130 - width / 2), 0, clicks=True), ".map",
              """const hooks = memory.theMap().hooks, turnAt = hooks.turnAt;
              hooks.turnAt = () => null;
              window.addEventListener('pointerup', () => { hooks.turnAt = turnAt; }, {once: true});
              """)
        window.wait("document.querySelectorAll('.message').length === 2")
        # A button of a message, when an answer begins.
        fingers.open_view("#show-chat")
        window.run("""window.copied = null;
            navigator.clipboard.writeText = (text) => { window.copied = text; };""")
        for tap in (window.finger, window.click):
            asked = """document.getElementById('input').value = given[0];
                document.getElementById('composer').requestSubmit();"""
            press(tap, ".message.assistant .actions button", asked, NORWAY)
            assert page.answer() == OSLO
            assert window.run("const said = window.copied; window.copied = null; return said") \
                == PARIS
        # The list of conversations.
        window.finger("#side-open")
        window.wait("document.getElementById('side').getBoundingClientRect().left === 0")
        drawn = "document.getElementById('search').dispatchEvent(new Event('input'))"
        press(window.finger, "#conversations li:last-child .name", drawn)
        window.wait("document.querySelector('#conversations li:last-child [aria-current]')")
