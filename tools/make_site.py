#!/usr/bin/env python3
"""The sources of the site: docs/ and the other pages of the clone, and references that are made
here of what the program and its header say.

  make_site.py BUILD OUT

Writes OUT/docs and OUT/mkdocs.yml, for `mkdocs build --strict`, which checks every link. Fails
where a page of docs/ stands nowhere in the navigation.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What people want to do, what they look up, and why it is so.
NAVIGATION = [
    ("Start", "index.md"),
    ("Tasks", ["install.md", "models.md", "chat.md", "serve-an-agent.md", "rewind-and-branch.md",
               "choose-a-quantization.md", "prove-it-yourself.md", "structured-output.md",
               "tools-and-reasoning.md", "embeddings.md", "adapters.md", "converting.md",
               "quantize.md", "operations.md", "programs.md", "adding-an-architecture.md"]),
    ("Inside programs", ["python.md", "python-llama.md", "ray.md", "c.md", "backends.md"]),
    ("Reference", ["reference-options.md", "reference-http.md", "reference-c.md", "server.md",
                   "architectures.md", "sampling.md", "chat-templates.md", "terminal-chat.md",
                   "formats.md", "outputs.md", "glossary.md"]),
    ("How it works", ["tour.md", "numerics.md", "memory.md", "store.md", "tier.md",
                      "routing.md", "scheduling.md", "speculation.md", "receipts.md", "loading.md",
                      "speed.md", "compare.md"]),
    ("Project", ["style.md", "security.md", "reporting.md", "changes.md", "licence.md"]),
]

# Pages that stand beside docs/ in the clone.
BESIDE = {"README.md": "index.md", "TOUR.md": "tour.md", "STYLE.md": "style.md",
          "SECURITY.md": "reporting.md", "CHANGELOG.md": "changes.md", "LICENSE": "licence.md"}

CONFIGURATION = """site_name: cairn
site_description: Language models on your own machine, with an exact memory
docs_dir: docs
use_directory_urls: false
theme:
  name: material
  font: false
  features: [navigation.tabs, navigation.top, search.highlight, content.code.copy, toc.follow]
  palette:
    - media: "(prefers-color-scheme: light)"
      scheme: default
      primary: blue grey
      toggle: {icon: material/weather-night, name: Dark}
    - media: "(prefers-color-scheme: dark)"
      scheme: slate
      primary: blue grey
      toggle: {icon: material/weather-sunny, name: Light}
markdown_extensions: [tables, fenced_code, admonition, {toc: {permalink: true}}]
plugins: [search]
validation:
  nav: {omitted_files: warn, not_found: warn, absolute_links: warn}
  links: {not_found: warn, anchors: warn, absolute_links: warn, unrecognized_links: warn}
"""


def call(*command):
    return subprocess.run([str(word) for word in command], check=True, text=True,
                          stdout=subprocess.PIPE).stdout


def relinked(text, from_docs):
    """Links between docs/ and the pages beside it, as they are in the site."""
    def link(match):
        target, anchor = match.group(1), match.group(2) or ""
        name = target.removeprefix("../" if from_docs else "docs/")
        if name == target and from_docs:
            return match.group(0)
        return f"]({BESIDE.get(name, name)}{anchor})"
    return re.sub(r"\]\((?!https?:|#)([^)#\s]+)(#[^)]*)?\)", link, text)


def copy_pages(out):
    for path in sorted((ROOT / "docs").rglob("*")):
        target = out / path.relative_to(ROOT / "docs")
        if path.is_dir():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".md":
            target.write_text(relinked(path.read_text(encoding="utf-8"), True), encoding="utf-8")
        else:
            shutil.copyfile(path, target)
    for name, target in BESIDE.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        if name == "LICENSE":
            text = "# Licence\n\n" + text
        (out / target).write_text(relinked(text, False), encoding="utf-8")


def cell(text):
    """Text in a table: one line, and nothing of it is markup."""
    text = " ".join(str(text).split())
    return re.sub(r"([|<>*_`\[\]\\])", r"\\\1", text)


# ---- Options: of the manual page, which the program makes of its tables ----

def plain(troff):
    text = re.sub(r"\\f[BIRP]", "", troff)
    return text.replace("\\-", "-").replace("\\&", "").replace("\\e", "\\")


def options_page(program):
    lines = call(program, "--man-page").splitlines()
    out = ["# Options", "", "All commands and options, made of the tables that the program reads "
           "them with. An option is also an environment variable; what is typed comes before it.",
           ""]
    is_in_table = False
    started = False
    at = 0
    while at < len(lines):
        line = lines[at]
        at += 1
        if line.startswith(".SH "):
            name = plain(line[4:]).strip('"')
            started = started or name not in ("NAME", "SYNOPSIS", "DESCRIPTION")
            if started:
                out += ["", f"## {name.capitalize() if name.isupper() else name}", ""]
            is_in_table = False
        elif line.startswith(".SS ") and started:
            out += ["", f"### {cell(plain(line[4:]).strip(chr(34)))}", ""]
            is_in_table = False
        elif line == ".TP" and started and at < len(lines):
            head = plain(lines[at])
            at += 1
            body = []
            while at < len(lines) and not lines[at].startswith("."):
                body.append(plain(lines[at]))
                at += 1
            if not is_in_table:
                out += ["", "| option | |", "|---|---|"]
                is_in_table = True
            out.append(f"| `{head.replace('|', chr(92) + '|')}` | {cell(' '.join(body))} |")
        elif line.startswith(".I ") and started:
            out += ["", f"**{cell(plain(line[3:]))}**", ""]
            is_in_table = False
        elif line == ".nf" and started:
            end = lines.index(".fi", at)
            out += ["", "```", *(plain(one) for one in lines[at:end]
                                 if one not in (".RS", ".RE")), "```", ""]
            at = end + 1
            is_in_table = False
        elif started and not line.startswith("."):
            if is_in_table:
                out.append("")
            is_in_table = False
            out.append(cell(plain(line)))
        elif started and line == ".PP":
            out.append("")
            is_in_table = False
    return "\n".join(out) + "\n"


# ---- HTTP: of the document that a server gives ----

def openapi_of(program):
    with subprocess.Popen([str(program), "serve", "--port", "0", "--request-log", "none"],
                          stderr=subprocess.PIPE, text=True) as server:
        try:
            said = ""
            for line in server.stderr:
                said += line
                if found := re.search(r"http://\S+", line):
                    with urllib.request.urlopen(found[0] + "/openapi.json", timeout=60) as reply:
                        return json.load(reply)
            sys.exit(f"site: expected a server, found one that ended:\n{said}")
        finally:
            server.kill()


def type_of(schema):
    if "$ref" in schema:
        return schema["$ref"].rsplit("/", 1)[-1]
    for joined in ("oneOf", "anyOf"):
        if joined in schema:
            return " or ".join(type_of(one) for one in schema[joined])
    kind = schema.get("type", "any")
    kind = " or ".join(kind) if isinstance(kind, list) else kind
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        kind += f", {low} to {high}"
    return kind


def http_page(document):
    out = ["# HTTP fields", "", "All routes with the fields of their requests, made of the "
           "document that a server gives under `/openapi.json`. [The server](server.md) explains "
           "them.", ""]
    schemas = document.get("components", {}).get("schemas", {})
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            if method not in ("get", "post", "delete", "put", "head"):
                continue
            out += ["", f"## {method.upper()} {cell(path)}", "",
                    cell(operation.get("description") or operation.get("summary", "")), ""]
            content = operation.get("requestBody", {}).get("content", {})
            for body in list(content.values())[:1]:
                schema = body.get("schema", {})
                if "$ref" in schema:
                    schema = schemas[schema["$ref"].rsplit("/", 1)[-1]]
                required = schema.get("required", [])
                properties = schema.get("properties", {})
                if properties:
                    out += ["| field | type | default | |", "|---|---|---|---|"]
                for name, field in properties.items():
                    default = json.dumps(field["default"]) if "default" in field else ""
                    mark = " (required)" if name in required else ""
                    out.append(f"| `{name}`{mark} | {cell(type_of(field))} | {cell(default)} | "
                               f"{cell(field.get('description', ''))} |")
    return "\n".join(out) + "\n"


# ---- C: of the header, whose comments stand before what they are about ----

def c_page(header):
    out = ["# C functions", "", "Made of `include/cairn.h`. [The library](c.md) introduces it.", ""]
    comment, code = [], []

    def flush():
        if code:
            if comment:
                out.extend(["", " ".join(comment).replace("<", "&lt;").replace("{", "&#123;")])
            out.extend(["", "```c", *code, "```"])
        elif comment:
            out.extend(["", " ".join(comment).replace("<", "&lt;").replace("{", "&#123;")])
        comment.clear()
        code.clear()

    depth = 0
    for line in header.splitlines():
        heading = re.match(r"// --- (.*?) -+$", line)
        if heading:
            flush()
            out.extend(["", f"## {heading.group(1)}"])
        elif line.startswith("//") and depth == 0:
            if code:
                flush()
            text = line[2:].strip()
            if text:
                comment.append(text)
            else:
                flush()
        elif line.startswith("#") and not line.startswith("#define CAIRN_HEADER"):
            flush()
        elif not line.strip() and depth == 0:
            flush()
        elif line.strip() not in ('extern "C" {', "}") or depth > 0:
            code.append(line)
            depth += line.count("{") - line.count("}")
    flush()
    return "\n".join(out) + "\n"


def navigation(out):
    listed = []
    lines = ["nav:"]
    for title, pages in NAVIGATION:
        if isinstance(pages, str):
            lines.append(f"  - {title}: {pages}")
            listed.append(pages)
            continue
        lines.append(f"  - {title}:")
        for page in pages:
            lines.append(f"      - {page}")
            listed.append(page)
    there = {str(path.relative_to(out)) for path in out.rglob("*.md")}
    for page in sorted(there - set(listed)):
        sys.exit(f"site: expected {page} in the navigation, found it nowhere")
    for page in sorted(set(listed) - there):
        sys.exit(f"site: expected {page}, which the navigation has, found none")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    arguments = parser.parse_args()
    program = arguments.build.resolve() / "cairn"
    out = arguments.out.resolve() / "docs"
    shutil.rmtree(arguments.out, ignore_errors=True)
    out.mkdir(parents=True)
    copy_pages(out)
    (out / "reference-options.md").write_text(options_page(program), encoding="utf-8")
    (out / "reference-http.md").write_text(http_page(openapi_of(program)), encoding="utf-8")
    header = (ROOT / "include/cairn.h").read_text(encoding="utf-8")
    (out / "reference-c.md").write_text(c_page(header), encoding="utf-8")
    (out.parent / "mkdocs.yml").write_text(CONFIGURATION + navigation(out), encoding="utf-8")


if __name__ == "__main__":
    main()
