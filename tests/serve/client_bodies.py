#!/usr/bin/env python3
"""Requests of the kind that Open WebUI, Continue, llama.vscode, Zed and Claude Code send, with the
fields that they are documented to send: each is answered, in the form that the program reads.

  client_bodies.py CAIRN
"""
import json
import sys
import urllib.error
import urllib.request

from serving import KEY, PARIS, QUESTION, Server

FRANCE = [{"role": "user", "content": QUESTION}]
BEARER = {"Authorization": f"Bearer {KEY}"}


def ask(url, path, body=None, headers=BEARER):
    """The reply's text; body None: GET."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(
        url + path, data, {"Content-Type": "application/json", **headers})
    with urllib.request.urlopen(request, timeout=60) as reply:
        return reply.read().decode()


def events(text):
    """The JSON of a stream's lines "data: …", which have exactly one blank."""
    lines = [line for line in text.split("\n") if line.startswith("data:")]
    assert all(line.startswith("data: ") and line[6] != " " for line in lines), lines
    return [json.loads(line[6:]) for line in lines if line != "data: [DONE]"]


def deltas(text):
    return "".join(choice["delta"].get("content") or ""
                   for event in events(text) for choice in event["choices"])


def test_open_webui(url):
    assert json.loads(ask(url, "/v1/models"))["data"][0]["id"] == "cairn-nano"
    said = ask(url, "/v1/chat/completions", {
        "stream": True, "model": "cairn-nano", "messages": FRANCE, "temperature": 0,
        "stream_options": {"include_usage": True}, "max_tokens": 100, "top_p": 0.9, "seed": 1})
    assert deltas(said) == PARIS, said
    # Names of small tasks that it has models do.
    title = ask(url, "/v1/chat/completions", {
        "model": "cairn-nano", "messages": FRANCE, "stream": False, "max_completion_tokens": 10,
        "metadata": {"task": "title_generation"}})
    assert json.loads(title)["choices"][0]["message"]["content"]
    # Its connection to Ollama: every part of the version is a number, every name has a tag.
    version = json.loads(ask(url, "/api/version"))["version"]
    assert [int(part) for part in version.split(".")], version
    tags = json.loads(ask(url, "/api/tags"))["models"]
    assert tags[0]["name"] == tags[0]["model"] == "cairn-nano:latest", tags
    assert json.loads(ask(url, "/api/ps"))["models"][0]["expires_at"]
    unloaded = json.loads(ask(url, "/api/generate", {
        "model": "cairn-nano:latest", "keep_alive": 0, "prompt": "", "stream": False}))
    assert unloaded["done_reason"] == "unload", unloaded


def test_continue(url):
    said = ask(url, "/completion", {
        "prompt": f"<|user|>{QUESTION}<|end|><|assistant|>", "stream": True, "n_predict": 50,
        "frequency_penalty": 0, "presence_penalty": 0, "min_p": 0.05, "mirostat": 0,
        "stop": ["<|end|>"], "top_k": 40, "top_p": 0.9, "temperature": 0})
    assert "".join(event["content"] for event in events(said)) == PARIS, said
    # Where it speaks Ollama's words: the older name of "model".
    shown = json.loads(ask(url, "/api/show", {"name": "cairn-nano"}))
    assert "template" in shown and not shown.get("parameters", "").endswith("\n"), shown
    lines = ask(url, "/api/chat", {
        "model": "cairn-nano", "messages": FRANCE, "stream": True, "keep_alive": 1800,
        "options": {"temperature": 0, "num_predict": 50, "num_ctx": 512, "top_k": 40,
                    "stop": ["<|end|>"], "mirostat": 0}})
    parts = [json.loads(line) for line in lines.splitlines()]
    assert "".join(part["message"]["content"] for part in parts) == PARIS, parts
    made = json.loads(ask(url, "/api/generate", {
        "model": "cairn-nano", "raw": True, "stream": False, "keep_alive": 1800,
        "prompt": f"<|user|>{QUESTION}<|end|><|assistant|>", "options": {"temperature": 0}}))
    assert made["response"] == PARIS, made


def test_llama_vscode(url):
    assert json.loads(ask(url, "/health", headers={}))["status"] == "ok"
    said = json.loads(ask(url, "/v1/chat/completions", {
        "messages": FRANCE, "stream": False, "temperature": 0, "samplers": "edkypmxt",
        "dry_penalty_last_n": -1, "cache_prompt": True, "dynatemp_range": 0,
        "dynatemp_exponent": 1, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "typical_p": 1,
        "xtc_probability": 0, "xtc_threshold": 0.1, "repeat_last_n": 64, "repeat_penalty": 1,
        "presence_penalty": 0, "frequency_penalty": 0, "dry_multiplier": 0, "dry_base": 1.75,
        "dry_allowed_length": 2, "max_tokens": -1, "timings_per_token": False}))
    assert said["choices"][0]["message"]["content"] == PARIS, said
    for name in ("prompt_n", "prompt_ms", "prompt_per_second", "predicted_n", "predicted_ms",
                 "predicted_per_second"):
        assert name in said["timings"], said
    # A model without tokens for gaps says so.
    try:
        ask(url, "/infill", {
            "input_prefix": "def f():\n", "input_suffix": "\n", "prompt": "", "n_predict": 0,
            "input_extra": [{"text": "x = 1", "filename": "a.py"}], "top_k": 40, "top_p": 0.99,
            "stream": False, "samplers": [], "cache_prompt": True, "t_max_prompt_ms": 500,
            "t_max_predict_ms": 1})
    except urllib.error.HTTPError as error:
        assert error.code == 501, error
        assert json.load(error)["error"]["message"]
    else:
        raise AssertionError("expected an error, found an answer")


def test_zed(url):
    details = json.loads(ask(url, "/api/tags"))["models"][0]
    assert isinstance(details["size"], int) and details["digest"], details
    assert set(details["details"]) >= {
        "format", "family", "parameter_size", "quantization_level"}, details
    assert "completion" in json.loads(ask(url, "/api/show", {"model": "cairn-nano:latest"}))[
        "capabilities"]
    lines = ask(url, "/api/chat", {
        "model": "cairn-nano:latest", "messages": FRANCE, "stream": True, "keep_alive": -1,
        "options": {"num_ctx": 1024, "temperature": 0, "stop": []}, "tools": []})
    for line in lines.splitlines():
        message = json.loads(line)["message"]
        assert message["role"] == "assistant" and isinstance(message["content"], str), line
    studio = json.loads(ask(url, "/api/v0/models"))["data"][0]
    assert studio["state"] == "loaded" and studio["type"] == "llm", studio


def test_claude_code(url):
    headers = {"x-api-key": KEY, "anthropic-version": "2023-06-01",
               "anthropic-beta": "interleaved-thinking-2025-05-14"}
    cached = {"type": "ephemeral"}
    body = {"model": "claude-sonnet-4", "max_tokens": 50, "stream": True, "temperature": 0,
            "metadata": {"user_id": "user_0"}, "messages": [
                {"role": "user", "content": [
                    {"type": "text", "text": QUESTION, "cache_control": cached}]}]}
    said = events(ask(url, "/v1/messages?beta=true", body, headers))
    assert [said[0]["type"], said[-1]["type"]] == ["message_start", "message_stop"], said
    text = "".join(event["delta"]["text"] for event in said
                   if event["type"] == "content_block_delta")
    assert text == PARIS, said
    counted = json.loads(ask(url, "/v1/messages/count_tokens?beta=true", {
        "model": "claude-sonnet-4", "messages": body["messages"],
        "system": [{"type": "text", "text": "Be brief.", "cache_control": cached}]}, headers))
    assert counted["input_tokens"] > 0


def main():
    program, = sys.argv[1:]
    with Server(program, "-c", "1024") as server:
        for test in (test_open_webui, test_continue, test_llama_vscode, test_zed,
                     test_claude_code):
            test(server.url)


if __name__ == "__main__":
    main()
