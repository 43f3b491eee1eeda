#!/usr/bin/env python3
"""Anthropic's own client against `cairn serve`: messages, streams, tools, counting, errors. Exits
77 where the Python package anthropic is not installed.

  anthropic_client.py CAIRN
"""
import sys

try:
    import anthropic
except ImportError:
    print("the Python package anthropic is not installed")
    sys.exit(77)

from serving import KEY, PARIS, QUESTION, Server, ToolModel

FRANCE = [{"role": "user", "content": QUESTION}]
WEATHER = {"name": "weather", "description": "The weather.", "input_schema": {
    "type": "object", "properties": {
        "city": {"type": "string", "maxLength": 8},
        "unit": {"type": "string", "enum": ["C", "F"]}},
    "required": ["city", "unit"], "additionalProperties": False}}


def client_of(server, **options):
    return anthropic.Anthropic(base_url=server.url, **{"api_key": KEY, **options})


def test_messages(client):
    answer = client.messages.create(model="m", max_tokens=50, messages=FRANCE)
    assert answer.content[0].text == PARIS, answer
    assert answer.stop_reason == "end_turn" and answer.usage.output_tokens > 0
    cached = {"type": "ephemeral"}
    system = [{"type": "text", "text": "Be brief.", "cache_control": cached}]
    counted = client.messages.count_tokens(model="m", system=system, messages=FRANCE)
    told = client.messages.create(model="m", max_tokens=1, system=system, messages=FRANCE)
    usage = told.usage
    assert counted.input_tokens == usage.input_tokens + usage.cache_read_input_tokens
    with client.messages.stream(model="m", max_tokens=50, messages=FRANCE) as stream:
        assert "".join(stream.text_stream) == PARIS
        final = stream.get_final_message()
    assert final.content[0].text == PARIS and final.usage.cache_read_input_tokens > 0
    cut = client.messages.create(
        model="m", max_tokens=50, messages=FRANCE, stop_sequences=["France"])
    assert cut.stop_reason == "stop_sequence" and cut.stop_sequence == "France", cut


def test_tools(client):
    asked = dict(model="m", max_tokens=100, messages=FRANCE, tools=[WEATHER],
                 tool_choice={"type": "any", "disable_parallel_tool_use": True},
                 extra_body={"temperature": 0})
    answer = client.messages.create(**asked)
    assert answer.stop_reason == "tool_use", answer
    call = answer.content[-1]
    assert call.name == "weather" and sorted(call.input) == ["city", "unit"], call
    with client.messages.stream(**asked) as stream:
        streamed = stream.get_final_message().content[-1]
    assert streamed.input == call.input and streamed.id == call.id
    results = [{"type": "tool_result", "tool_use_id": call.id, "content": "rain"}]
    later = client.messages.create(model="m", max_tokens=5, tools=[WEATHER], messages=[
        *FRANCE, {"role": "assistant", "content": answer.content},
        {"role": "user", "content": results}])
    assert later.role == "assistant"


def test_errors(server):
    for kind, options, asked in (
            (anthropic.BadRequestError, {}, {"extra_body": {"temperature": 500}}),
            (anthropic.AuthenticationError, {"api_key": "a-key-that-nobody-knows"}, {})):
        try:
            client_of(server, max_retries=0, **options).messages.create(
                model="m", max_tokens=5, messages=FRANCE, **asked)
        except kind as error:
            assert error.body["type"] == "error" and error.body["error"]["message"], error.body
        else:
            raise AssertionError(f"expected {kind}, found an answer")


def main():
    program, = sys.argv[1:]
    with Server(program, "-c", "1024") as server:
        test_messages(client_of(server))
        test_errors(server)
    with ToolModel() as model, Server(program, model) as server:
        test_tools(client_of(server))


if __name__ == "__main__":
    main()
