#!/usr/bin/env python3
"""Draws the pictures of the documentation, as SVG files:

  house.svg   the modules of src/ and what each may use, by src/CMakeLists.txt
  token.svg   the walk of a token through the code, by the list in TOUR.md
  branch.svg  what memory holds while a conversation branches: measured with the built-in model
  machines.svg  what a thousand machines make of one memory: simulated, of what is kept beside it
               (build/bench/cluster_simulation --nodes 1000 --seconds 3600 --json
               > docs/pictures/machines.json, which takes a quarter of an hour)

  tools/make_pictures.py [FOLDER] [PICTURE…]

FOLDER is docs/pictures where it is not said. branch.svg needs the Python package (python/) and its
library (CAIRN_LIBRARY=build/libcairn.so). The same tree gives the same bytes."""

import json
import pathlib
import re
import sys
from html import escape

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH = 960
INK, PAPER, LINE = "#1f2933", "#ffffff", "#9aa5b1"
STYLE = (
    "<style>"
    f".paper{{fill:{PAPER}}}.ink{{fill:{INK}}}.faint{{fill:#616e7c}}"
    f".line{{stroke:{LINE};fill:none}}"
    "@media(prefers-color-scheme:dark){.paper{fill:#1b2027}.ink{fill:#e4e7eb}.faint{fill:#9aa5b1}"
    ".line{stroke:#616e7c}}"
    "</style>"
)


def document(width, height, title, parts):
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
        f'height="{height}" font-family="sans-serif" font-size="13" role="img" '
        f'aria-label="{escape(title, quote=True)}">\n{STYLE}\n'
        f'<rect class="paper" width="{width}" height="{height}"/>\n'
        + "\n".join(parts) + "\n</svg>\n"
    )


def text(x, y, said, kind="ink", size=13, anchor="start"):
    return (f'<text class="{kind}" x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}">'
            f"{escape(said)}</text>")


def room(x, y, width, height, colour, title):
    return (f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="5" '
            f'fill="{colour}" fill-opacity="0.28" stroke="{colour}">'
            f'<title>{escape(title)}</title></rect>')


# --- The house ---------------------------------------------------------------------------------

FLOOR_COLOURS = ["#7a869a", "#4878a8", "#3d8f8f", "#6a9a58", "#b08a3c", "#c8703c", "#b05070",
                 "#8f6aa8"]


def modules():
    """What each module may use, by name."""
    lines = (ROOT / "src/CMakeLists.txt").read_text()
    found = re.findall(r"^cairn_module\(([^)]*)\)", lines, re.M)
    return {names.split()[0]: names.split()[1:] for names in found}


def floors(uses):
    """The longest way down from each module to one that uses nothing."""
    height = {}
    for name, below in uses.items():  # A module's line is behind those of what it uses.
        height[name] = 1 + max((height[other] for other in below), default=-1)
    return height


def needed_edges(uses):
    """Those that do not follow from others."""
    reach = {}
    for name, below in uses.items():
        reach[name] = set(below).union(*(reach[other] for other in below), set())
    for name, below in uses.items():
        for other in below:
            if not any(other in reach[between] for between in below if between != other):
                yield name, other


def house():
    uses = modules()
    height = floors(uses)
    top_floor = max(height.values())
    step, room_height, left = 66, 32, 16
    places, parts, rooms = {}, [], []
    for floor in range(top_floor + 1):
        names = [name for name in uses if height[name] == floor]
        y = 64 + (top_floor - floor) * step
        width = (WIDTH - 2 * left) / len(names)
        for index, name in enumerate(names):
            room_width = min(width - 10, 190)
            x = left + index * width + (width - room_width) / 2
            places[name] = (x + room_width / 2, y)
            colour = FLOOR_COLOURS[floor % len(FLOOR_COLOURS)]
            said = f"{name} uses {', '.join(uses[name]) or 'nothing'}"
            rooms.append(room(x, y, room_width, room_height, colour, said))
            rooms.append(text(x + room_width / 2, y + 20, name, anchor="middle", size=12))
    for above, below in needed_edges(uses):
        (x1, y1), (x2, y2) = places[above], places[below]
        y1 += room_height
        bend = (y2 - y1) / 2
        parts.append(f'<path class="line" stroke-opacity="0.55" d="M{x1:.1f} {y1:.1f}C{x1:.1f} '
                     f'{y1 + bend:.1f} {x2:.1f} {y2 - bend:.1f} {x2:.1f} {y2:.1f}"/>')
    title = "The house: each module stands on those that it may use"
    parts.insert(0, text(left, 30, title, size=18))
    parts.insert(1, text(left, 48, "Lines lead down to what a module uses; what follows from "
                         "others is left out. tools/tidy.py checks every include.", "faint", 12))
    return document(WIDTH, 64 + (top_floor + 1) * step, title, parts + rooms)


# --- The walk of a token -------------------------------------------------------------------------


def stations():
    """The parts of TOUR.md's walk: what stands above a list, and the list's entries."""
    parts, lines = [], (ROOT / "TOUR.md").read_text().split("\n")
    for index, line in enumerate(lines):
        if entry := re.match(r"(\d+)\. (.*)", line):
            if entry[1] in ("1", "7", "15"):
                parts.append((lines[index - 2].rstrip(":"), []))
            parts[-1][1].append(entry[2])
        elif parts and line.startswith("   "):
            parts[-1][1][-1] += " " + line.strip()
        elif parts and len(parts) == 3 and not line.strip():
            break
    return parts


def wrapped(said, width):
    rows = [""]
    for word in said.split():
        if len(rows[-1]) + len(word) + 1 > width:
            rows.append("")
        rows[-1] = f"{rows[-1]} {word}".strip()
    return rows


def token():
    parts, y, number = [], 72, 0
    title = "The walk of a token"
    parts.append(text(16, 30, title, size=18))
    parts.append(text(16, 48, "From a line of text to an answer's next token: the files of "
                      "TOUR.md.", "faint", 12))
    colours = ["#4878a8", "#c8703c", "#6a9a58"]
    headings = ["Down: from text to an answer that is begun", "Round, once for each step",
                "Up: from logits to text"]
    for (_, entries), colour, heading in zip(stations(), colours, headings):
        parts.append(text(16, y + 4, heading, size=14))
        y += 16
        first = y
        for entry in entries:
            number += 1
            files = re.findall(r"`src/([^`]+)`", entry)
            said = re.sub(r"`(?:src/)?([^`]*)`", r"\1", entry.split(": ", 1)[1])
            rows = wrapped(said[:1].upper() + said[1:], 96)
            height = 14 + 15 * len(rows)
            parts.append(room(40, y, 250, height, colour, files[0]))
            parts.append(text(50, y + height / 2 + 4, f"{number}  {files[0]}", size=11))
            for index, row in enumerate(rows):
                parts.append(text(304, y + 18 + 15 * index, row, "faint", 12))
            y += height + 8
        if colour == colours[1]:
            parts.append(f'<path class="line" stroke-width="2" d="M36 {y - 20}H24V{first + 14}H36'
                         f'M31 {first + 9}L37 {first + 14}L31 {first + 19}"/>')
        y += 22
    return document(WIDTH, y, title, parts)


# --- Pages and states while a conversation branches -----------------------------------------------


class Moments:
    """A conversation with the built-in model, and what memory holds at each step of it."""

    def __init__(self, cairn):
        self.found = []
        with cairn.Model(str(ROOT / "assets/nano.gguf")) as model, cairn.Engine(
                model, threads=1, memory="64MiB") as engine:
            self.engine = engine
            # Whether drafts are checked, and what their states hold, depends on the time of steps.
            self.one = engine.session(
                sampling=cairn.Sampling(temperature=0, max_tokens=64, draft="off"))
            self.other, self.mark = None, None
            told = [{"role": "user", "content": "My name is Ada. My dog is called Rex."}]
            plan = self.one.chat(told)
            self.note("A prompt is read", plan)
            told.append({"role": "assistant", "content": self.one.answer()})
            plan = self.one.chat([*told, {"role": "user", "content": "What is my name?"}])
            self.mark = self.one.snapshot()
            self.one.answer()
            self.note("Answered; the next question read, a snapshot kept, answered", plan)
            self.other = self.one.fork()
            self.other.rewind(self.mark)
            self.shared = self.mark.position
            self.note("A fork, at the snapshot: nothing is copied", self.other.last_plan)
            plan = self.other.chat([*told, {"role": "user", "content": "What is my dog called?"}])
            self.other.answer()
            self.shared = self.other.position - plan.forward_tokens
            self.shared = min(self.shared, plan.resume)
            self.note("The fork is asked something else", plan)
            plan = self.one.rewind(self.mark)
            self.note("The conversation goes back to the snapshot: nothing is computed", plan)
            self.one.answer()
            self.note("And answers again, with the same bits", None)

    def note(self, title, plan):
        memory = self.engine.memory()
        self.found.append({
            "title": title,
            "computed": None if plan is None else plan.forward_tokens,
            "one": self.one.position,
            "other": None if self.other is None else self.other.position,
            "shared": self.shared if self.other is not None else 0,
            "mark": None if self.mark is None else self.mark.position,
            "pages": memory.pages, "states": memory.states, "logs": memory.logs + memory.hidden})


def branch():
    sys.path.insert(0, str(ROOT / "python"))
    import cairn

    moments = Moments(cairn).found
    left, scale, y = 30, 20, 92
    title = "What memory holds while a conversation branches"
    parts = [text(16, 30, title, size=18),
             text(16, 48, "Measured with the built-in model: two layers of attention (pages of "
                          "keys and values), two recurrent ones (states).", "faint", 12),
             text(16, 64, "Squares are tokens; dark ones belong to both sequences and lie in "
                          "memory once. The flag is a snapshot.", "faint", 12)]

    def tokens(begin, end, top, colour, opacity):
        return [f'<rect x="{left + at * scale:.1f}" y="{top}" width="{scale - 1.2:.1f}" '
                f'height="14" fill="{colour}"'
                f' fill-opacity="{opacity}"/>' for at in range(begin, end)]

    for moment in moments:
        parts.append(text(16, y + 6, moment["title"], size=14))
        held = [f"{kind} {moment[kind] / 1024:.0f} KiB" for kind in ("pages", "states", "logs")]
        if moment["computed"] is not None:
            held.insert(0, f"{moment['computed']} tokens read")
        parts.append(text(WIDTH - 16, y + 6, " · ".join(held), "faint", 12, "end"))
        shared = moment["shared"]
        parts += tokens(0, shared, y + 18, "#4878a8", 1)
        parts += tokens(shared, moment["one"], y + 18, "#4878a8", 0.45)
        if moment["other"] is not None:
            parts += tokens(shared, moment["other"], y + 36, "#c8703c", 0.55)
            x = left + shared * scale - 0.6
            parts.append(f'<path class="line" stroke-width="1.5" d="M{x:.1f} {y + 30}V{y + 42}"/>')
        if moment["mark"] is not None:
            x = left + moment["mark"] * scale - 0.6
            parts.append(f'<path d="M{x:.1f} {y + 32}V{y + 12}l9 4l-9 4" fill="#b05070" '
                         'stroke="#b05070"/>')
        y += 74 if moment["other"] is not None else 56
    return document(WIDTH, y - 6, title, parts)


# --- Many machines that share what they have read -------------------------------------------------

WAYS = {"none": "Each for itself", "second use": "Tier, 64 GB for four machines",
        "lent": "Machines lend each other", "lent, second use": "They lend, and the tier",
        "lent, 200 GB folders": "They lend, folders of 200 GB"}


def bars(x, y, width, shares):
    """From left to right, each of a part of the width, with what is said of it."""
    parts = []
    for share, colour, said in shares:
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{share * width:.1f}" height="16" '
                     f'fill="{colour}"><title>{escape(said)}</title></rect>')
        x += share * width
    return parts


def machines():
    told = json.loads((ROOT / "docs/pictures/machines.json").read_text())
    ways, one = told["ways"], told["one"]
    title = f"One memory of {told['nodes']:,} machines"
    parts = [text(16, 30, title, size=18),
             text(16, 48, f"Simulated: {told['prompts']:,} prompts in {told['seconds'] / 60:.0f} "
                          "minutes, with the decisions of the router, the tier and the machines "
                          "themselves.", "faint", 12)]
    y, row, left, width = 76, 26, 250, 480

    def panel(heading, entries, marks):
        nonlocal y
        parts.append(text(16, y + 4, heading, size=14))
        top = y + 12
        for way, shares, said in entries:
            y += row
            parts.append(text(left - 10, y + 5, WAYS[way["name"]], size=12, anchor="end"))
            parts.extend(bars(left, y - 8, width, shares))
            parts.append(text(left + width + 14, y + 5, said, "faint", 12))
        for at, said in marks:
            x = left + at * width
            parts.append(f'<path class="line" stroke-width="1.5" stroke-dasharray="4 3" '
                         f'd="M{x:.1f} {top}V{y + 12}"/>')
            parts.append(text(x, y + 26, said, "faint", 11, "middle"))
        y += 58

    panel("What is not computed again, of what one machine that forgets nothing would reuse",
          [(way, [(min(way["of_one"], 1), "#4878a8", "reused")], f"{100 * way['of_one']:.1f} %")
           for way in ways], [(0.95, "95 %")])
    longest = max(way["p99"] for way in ways) or 1
    panel("How long the last hundredth of prompts waits, and how many begin within five seconds",
          [(way, [(way["p99"] / longest, "#6a9a58", "waited")],
            f"{way['p99']:.1f} s; {100 * way['good']:.1f} %") for way in ways], [])
    kinds = [("written", "#c8703c", "written to the tier"), ("read", "#b08a3c", "read from it"),
             ("lent", "#3d8f8f", "lent"), ("told", "#8f6aa8", "said of who has what")]
    most = max(sum(way[kind] for kind, _, _ in kinds) for way in ways) or 1
    panel("What is sent, of all machines together",
          [(way, [(way[kind] / most, colour, said) for kind, colour, said in kinds],
            f"{sum(way[kind] for kind, _, _ in kinds) / 1000:.1f} GB/s") for way in ways], [])
    x = left
    for _, colour, said in kinds:
        parts.append(f'<rect x="{x}" y="{y - 42}" width="12" height="12" fill="{colour}"/>')
        parts.append(text(x + 17, y - 32, said, "faint", 11))
        x += 40 + 6.2 * len(said)
    parts.append(text(16, y - 4, f"One machine as fast as all of them reuses {one['reuse']:.3f} of "
                      f"all tokens; the last hundredth waits {one['p99']:.1f} s there.",
                      "faint", 12))
    return document(WIDTH, y + 14, title, parts)


def main(arguments):
    folder = pathlib.Path(arguments.pop(0)) if arguments else ROOT / "docs/pictures"
    pictures = {"house": house, "token": token, "branch": branch, "machines": machines}
    for name in arguments or pictures:
        (folder / f"{name}.svg").write_text(pictures[name]())


if __name__ == "__main__":
    main(sys.argv[1:])
