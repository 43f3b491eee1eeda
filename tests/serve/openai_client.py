#!/usr/bin/env python3
"""OpenAI's own client against `cairn serve`: chat, streams, tools, forms, embeddings, errors. Exits
77 where the Python package openai is not installed.

  openai_client.py CAIRN EMBEDDING_MODEL.gguf
"""
import contextlib
import io
import json
import math
import os
import re
import shutil
import subprocess
import sys

try:
    import openai
except ImportError:
    print("the Python package openai is not installed")
    sys.exit(77)

from serving import KEY, PARIS, QUESTION, Server, ToolModel

FRANCE = [{"role": "user", "content": QUESTION}]
WEATHER = {"type": "function", "function": {
    "name": "weather", "description": "The weather.", "strict": True,
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "maxLength": 8},
        "unit": {"type": "string", "enum": ["C", "F"]}},
        "required": ["city", "unit"], "additionalProperties": False}}}


def client_of(server, **options):
    return openai.OpenAI(base_url=server.url + "/v1", **{"api_key": KEY, **options})


def test_models(client):
    models = client.models.list()
    assert [model.id for model in models] == ["cairn-nano"], models
    assert client.models.retrieve("cairn-nano").id == "cairn-nano"


def test_chat(client):
    answer = client.chat.completions.create(model="cairn-nano", messages=FRANCE, seed=1)
    assert answer.choices[0].message.content == PARIS, answer
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.total_tokens > answer.usage.prompt_tokens > 0
    again = client.chat.completions.create(model="cairn-nano", messages=FRANCE, n=2)
    assert again.usage.prompt_tokens_details.cached_tokens == answer.usage.prompt_tokens
    assert [choice.message.content for choice in again.choices] == [PARIS, PARIS]
    told = client.chat.completions.create(
        model="cairn-nano", messages=FRANCE, logprobs=True, top_logprobs=2, max_tokens=3)
    assert len(told.choices[0].logprobs.content) == 3
    assert told.choices[0].finish_reason == "length"


def test_stream(client):
    text, usage = "", None
    for chunk in client.chat.completions.create(
            model="cairn-nano", messages=FRANCE, stream=True,
            stream_options={"include_usage": True}):
        for choice in chunk.choices:
            text += choice.delta.content or ""
        usage = chunk.usage or usage
    assert text == PARIS, text
    assert usage.completion_tokens > 0
    with client.chat.completions.stream(model="cairn-nano", messages=FRANCE) as stream:
        for _ in stream:
            pass
        assert stream.get_final_completion().choices[0].message.content == PARIS


def test_form(client):
    schema = {"name": "city", "strict": True, "schema": {
        "type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
        "required": ["city"], "additionalProperties": False}}
    answer = client.chat.completions.create(
        model="cairn-nano", messages=FRANCE, max_tokens=100,
        response_format={"type": "json_schema", "json_schema": schema})
    assert list(json.loads(answer.choices[0].message.content)) == ["city"], answer


def test_tools(client):
    asked = dict(model="m", messages=FRANCE, tools=[WEATHER], max_tokens=100, temperature=0,
                 parallel_tool_calls=False)
    for choice in ("required", {"type": "function", "function": {"name": "weather"}}):
        answer = client.chat.completions.create(tool_choice=choice, **asked)
        assert answer.choices[0].finish_reason == "tool_calls", answer
        call = answer.choices[0].message.tool_calls[0]
        assert call.function.name == "weather" and call.id
        assert sorted(json.loads(call.function.arguments)) == ["city", "unit"]
        with client.chat.completions.stream(tool_choice=choice, **asked) as stream:
            for _ in stream:
                pass
            streamed = stream.get_final_completion().choices[0].message.tool_calls[0]
        assert streamed.function.arguments == call.function.arguments
        assert streamed.id == call.id
    said = answer.choices[0].message.model_dump(exclude_none=True)
    results = [{"role": "tool", "tool_call_id": call.id, "content": "rain"}
               for call in answer.choices[0].message.tool_calls]
    later = client.chat.completions.create(
        model="m", messages=[*FRANCE, said, *results], tools=[WEATHER], max_tokens=10)
    assert later.choices[0].message.role == "assistant"


def test_completion(client):
    prompt = "<|bos|><|user|>What is the capital of France?<|end|><|assistant|>"
    answer = client.completions.create(model="cairn-nano", prompt=prompt, logprobs=2)
    assert answer.choices[0].text == PARIS, answer
    assert len(answer.choices[0].logprobs.tokens) == len(answer.choices[0].logprobs.top_logprobs)
    measured = client.completions.create(
        model="cairn-nano", prompt=prompt, echo=True, logprobs=1, max_tokens=0).choices[0]
    assert measured.text == prompt, measured
    first, *others = measured.logprobs.token_logprobs
    assert first is None and others and all(value <= 0 for value in others), measured
    text = "".join(chunk.choices[0].text for chunk in client.completions.create(
        model="cairn-nano", prompt=prompt, stream=True))
    assert text == PARIS, text


def test_errors(server):
    client = client_of(server, max_retries=0)

    def error_of(kind, **asked):
        try:
            client.chat.completions.create(**{"model": "m", "messages": FRANCE, **asked})
        except kind as error:
            return error
        raise AssertionError(f"expected {kind}, found an answer to {asked}")
    assert error_of(openai.BadRequestError, temperature=-1).param == "temperature"
    long = [{"role": "user", "content": "word " * 2000}]
    too_long = error_of(openai.BadRequestError, messages=long)
    assert too_long.code == "context_length_exceeded", too_long
    stranger = client_of(
        server, api_key="a-key-that-nobody-knows", max_retries=0)
    try:
        stranger.models.list()
    except openai.AuthenticationError as error:
        assert error.code == "invalid_api_key"
    else:
        raise AssertionError("expected an error, found a list")
    # A client that closes a stream is not waited for.
    stream = client.chat.completions.create(
        model="m", messages=FRANCE, stream=True, extra_body={"ignore_eos": True})
    next(iter(stream))
    stream.close()


def test_embeddings(client):
    for encoding in ("float", "base64", openai.NOT_GIVEN):
        made = client.embeddings.create(
            model="m", input=[[5, 6, 7], [8, 9]], encoding_format=encoding)
        assert [one.index for one in made.data] == [0, 1]
        for one in made.data:
            values = one.embedding
            if encoding == "base64":
                assert isinstance(values, str)
                continue
            assert abs(math.fsum(value * value for value in values) - 1) < 1e-4
    assert made.usage.prompt_tokens == 5


def test_responses(client):
    first = client.responses.create(model="m", input=QUESTION, temperature=0)
    assert first.output_text == PARIS, first
    assert first.usage.output_tokens > 0
    second = client.responses.create(
        model="m", input="And of Norway?", previous_response_id=first.id, max_output_tokens=8)
    cached = second.usage.input_tokens_details.cached_tokens
    assert cached >= first.usage.total_tokens - 1, second.usage
    kept = client.responses.retrieve(second.id)
    assert kept.output_text == second.output_text and kept.previous_response_id == first.id, kept
    items = list(client.responses.input_items.list(second.id, limit=1))
    assert [item.content[0].text for item in items] == ["And of Norway?"], items
    client.responses.delete(second.id)
    try:
        client.responses.retrieve(second.id)
    except openai.NotFoundError as error:
        assert error.code == "response_not_found"
    else:
        raise AssertionError("expected an error, found an answer")
    with client.responses.stream(model="m", input=QUESTION, temperature=0) as stream:
        for _ in stream:
            pass
        assert stream.get_final_response().output_text == PARIS
    try:
        client.responses.create(model="m", input="x", previous_response_id="resp_unknown")
    except openai.NotFoundError as error:
        assert error.code == "previous_response_not_found"
    else:
        raise AssertionError("expected an error, found an answer")


def test_response_tools(client):
    tool = {"type": "function", **WEATHER["function"]}
    asked = dict(model="m", input=QUESTION, tools=[tool], tool_choice="required", temperature=0)
    call = client.responses.create(**asked).output[0]
    assert call.type == "function_call" and call.name == "weather", call
    with client.responses.stream(**asked) as stream:
        for _ in stream:
            pass
        streamed = stream.get_final_response().output[0]
    assert streamed.arguments == call.arguments
    assert sorted(json.loads(call.arguments)) == ["city", "unit"]


def test_readme(server):
    """Its examples, as they stand there, but for the port."""
    with open(os.path.join(os.path.dirname(__file__), "..", "..", "README.md"),
              encoding="utf-8") as file:
        text = file.read().replace("http://localhost:8080", server.url)
    text = text.replace("localhost:8080", server.url)
    curl = re.search(r"```sh\n(curl .*?)```", text, re.DOTALL)[1]
    if shutil.which("curl"):
        reply = subprocess.run(["sh", "-c", curl], check=True, capture_output=True, text=True)
        assert json.loads(reply.stdout)["choices"][0]["message"]["content"], reply.stdout
    python = re.search(r"```python\n(from openai .*?)```", text, re.DOTALL)[1]
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(python, {})
    assert printed.getvalue().strip() not in ("", "None"), printed.getvalue()


def main():
    program, embedding_model = sys.argv[1:]
    with Server(program, "-c", "1024") as server:
        client = client_of(server)
        for test in (test_models, test_chat, test_stream, test_form, test_completion,
                     test_responses):
            test(client)
        test_errors(server)
    with Server(program, key=None) as server:
        test_readme(server)
    with ToolModel() as model, Server(program, model) as server:
        test_tools(client_of(server))
        test_response_tools(client_of(server))
    with Server(program, embedding_model, "--pooling", "mean") as server:
        test_embeddings(client_of(server))


if __name__ == "__main__":
    main()
