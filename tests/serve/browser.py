"""A browser that tests drive: Chromium by its driver's own protocol (W3C WebDriver), so that no
package is needed."""
import json
import shutil
import subprocess
import time
import urllib.error
import urllib.request

PATIENCE = 60  # Seconds: then something hangs.
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # The name that the protocol gives references.
KEYS = {"enter": "\ue007", "escape": "\ue00c", "left": "\ue012", "up": "\ue013", "right": "\ue014"}


def is_installed():
    return shutil.which("chromedriver") is not None and shutil.which("chromium") is not None


class Browser:
    def __init__(self):
        self.process = subprocess.Popen(["chromedriver", "--port=0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)
        port = None
        for line in self.process.stdout:
            if "started successfully on port" in line:
                port = line.rsplit(" ", 1)[1].strip(" .\n")
                break
        self.base = f"http://127.0.0.1:{port}"
        arguments = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                     "--window-size=1280,900", "--no-first-run", "--disable-extensions",
                     "--disable-background-networking", "--disable-component-update"]
        session = self.call("/session", {"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": {"args": arguments, "binary": shutil.which("chromium")},
            "goog:loggingPrefs": {"browser": "ALL"}}}})
        self.base += f"/session/{session['sessionId']}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            request = urllib.request.Request(self.base, method="DELETE")
            urllib.request.urlopen(request, timeout=PATIENCE).close()
        finally:
            self.process.terminate()
            self.process.wait(timeout=PATIENCE)
            self.process.stdout.close()

    def call(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.base + path, data,
                                         {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as reply:
                return json.load(reply)["value"]
        except urllib.error.HTTPError as problem:
            raise AssertionError(json.load(problem)["value"]["message"]) from problem

    def open(self, url):
        self.call("/url", {"url": url})

    def run(self, script, *arguments):
        """The script's result; it may be a promise."""
        return self.call("/execute/sync", {"script": script, "args": list(arguments)})

    def find(self, selector):
        return self.call("/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.call(f"/element/{self.find(selector)}/click", {})

    def type(self, selector, text, key=""):
        self.call(f"/element/{self.find(selector)}/value", {"text": text + KEYS.get(key, key)})

    def press(self, *keys):
        """All of them at a time, to whatever has the focus."""
        held = [KEYS.get(key, key) for key in keys]
        actions = [{"type": "keyDown", "value": key} for key in held]
        actions += [{"type": "keyUp", "value": key} for key in reversed(held)]
        self.call("/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def point(self, selector, x, y, clicks=False):
        """The pointer goes to this place, counted from the element's middle."""
        origin = {ELEMENT: self.find(selector)}
        click = [{"type": "pointerDown", "button": 0}, {"type": "pointerUp", "button": 0}]
        self.call("/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": [
            {"type": "pointerMove", "origin": origin, "x": x, "y": y, "duration": 0},
            *(click if clicks else [])]}]})

    def finger(self, selector, right=0, down=0):
        """A tap on the middle of an element, which is scrolled to; or a swipe from there."""
        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        place = {"type": "pointerMove", "origin": {ELEMENT: self.find(selector)}, "x": 0, "y": 0,
                 "duration": 0}
        steps = [] if (right, down) == (0, 0) else [
            {"type": "pointerMove", "origin": "pointer", "x": right // 8, "y": down // 8,
             "duration": 30}] * 8
        # What was let go of in motion would roll on, and the next tap only stop it.
        rest = [{"type": "pause", "duration": 200}] if steps else []
        self.call("/actions", {"actions": [
            {"type": "pointer", "id": "finger", "parameters": {"pointerType": "touch"},
             "actions": [place, {"type": "pointerDown", "button": 0}, *steps, *rest,
                         {"type": "pointerUp", "button": 0}]}]})

    def drag(self, selector, to, begin=(0, 0), escapes=False):
        """From the middle of an element, or a place beside it, to the middle of another one."""
        def move(place, x=0, y=0):
            return {"type": "pointerMove", "origin": {ELEMENT: self.find(place)}, "x": x, "y": y,
                    "duration": 20}
        keys = [{"type": "pause"}] * 4
        if escapes:
            keys += [{"type": "keyDown", "value": KEYS["escape"]},
                     {"type": "keyUp", "value": KEYS["escape"]}]
        pause = [{"type": "pause"}] * (2 if escapes else 0)
        self.call("/actions", {"actions": [
            {"type": "pointer", "id": "mouse", "actions": [
                move(selector, *begin), {"type": "pointerDown", "button": 0},
                move(selector, begin[0] + 2, begin[1] + 12), move(to), *pause,
                {"type": "pointerUp", "button": 0}]},
            {"type": "key", "id": "keys", "actions": keys}]})

    def wait(self, script, *arguments):
        """Until the script's result is true; that is the result."""
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            result = self.run("return " + script, *arguments)
            if result:
                return result
            time.sleep(0.02)
        raise AssertionError("this did not become true: " + script + "; the page: "
                             + self.run("return document.body.innerText.slice(0, 2000)"))

    def text(self, selector):
        return self.run("return document.querySelector(arguments[0]).textContent", selector)

    def texts(self, selector):
        return self.run("return [...document.querySelectorAll(arguments[0])]"
                        ".map((each) => each.textContent)", selector)

    def devtools(self, command, **parameters):
        return self.call("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def complaints(self):
        """What the browser has logged of errors since it was asked last."""
        return [entry["message"] for entry in self.call("/se/log", {"type": "browser"})
                if entry["level"] == "SEVERE"]

    def screenshot(self, path):
        import base64
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("/screenshot")))
