#!/usr/bin/env python3
"""Ollama's own client against `cairn serve`: chat, streams, forms, tools, what the model is,
embeddings, errors. Exits 77 where the Python package ollama is not installed.

  ollama_client.py CAIRN EMBEDDING_MODEL.gguf
"""
import json
import sys

try:
    import ollama
except ImportError:
    print("the Python package ollama is not installed")
    sys.exit(77)

from serving import KEY, PARIS, QUESTION, Server, ToolModel

FRANCE = [{"role": "user", "content": QUESTION}]


def client_of(server):
    return ollama.Client(host=server.url, headers={"Authorization": f"Bearer {KEY}"})


def test_model(client):
    assert [model.model for model in client.list().models] == ["cairn-nano:latest"]
    assert client.ps().models[0].expires_at is not None
    shown = client.show("cairn-nano")
    assert shown.capabilities == ["completion"], shown.capabilities
    assert shown.details.format == "gguf"


def test_chat(client):
    answer = client.chat(model="m", messages=FRANCE, options={"temperature": 0})
    assert answer.message.content == PARIS, answer
    assert answer.done and answer.done_reason == "stop" and answer.eval_count > 0
    parts = list(client.chat(model="m", messages=FRANCE, stream=True))
    assert "".join(part.message.content for part in parts) == PARIS, parts
    assert [part.done for part in parts] == [False] * (len(parts) - 1) + [True]
    short = client.chat(model="m", messages=FRANCE, options={"num_predict": 2})
    assert short.done_reason == "length" and short.eval_count == 2
    schema = {"type": "object", "properties": {"city": {"type": "string", "maxLength": 8}},
              "required": ["city"], "additionalProperties": False}
    formed = client.chat(model="m", messages=FRANCE, format=schema)
    assert list(json.loads(formed.message.content)) == ["city"], formed
    told = client.chat(model="m", messages=FRANCE, logprobs=True, top_logprobs=2)
    assert len(told.logprobs) == told.eval_count and len(told.logprobs[0].top_logprobs) == 2


def test_generate(client):
    answer = client.generate(model="m", prompt=QUESTION)
    assert answer.response == PARIS, answer
    assert len(answer.context) == answer.prompt_eval_count + answer.eval_count
    raw = client.generate(model="m", raw=True, stream=True,
                          prompt=f"<|user|>{QUESTION}<|end|><|assistant|>")
    assert "".join(part.response for part in raw) == PARIS
    assert client.generate(model="m", prompt="", keep_alive=0).done_reason == "unload"


def test_errors(client):
    try:
        client.chat(model="m", messages=FRANCE, options={"temperature": -1})
    except ollama.ResponseError as error:
        assert error.status_code == 400 and error.error.startswith("options.temperature"), error
    else:
        raise AssertionError("expected an error, found an answer")


def test_tools(client):
    def weather(city: str) -> str:
        """The weather of a city.

        Args:
          city: its name
        """
        return city

    assert client.show("m").capabilities == ["completion", "tools"]
    said = [*FRANCE, {"role": "assistant", "content": "", "tool_calls": [
        {"function": {"name": "weather", "arguments": {"city": "Oslo"}}}]},
            {"role": "tool", "content": "rain", "tool_name": "weather"}]
    answer = client.chat(model="m", messages=said, tools=[weather], options={"num_predict": 4})
    assert answer.message.role == "assistant"


def test_embeddings(client):
    made = client.embed(model="m", input=["weather", "way"])
    assert len(made.embeddings) == 2 and made.prompt_eval_count == 6, made
    assert list(client.embeddings(model="m", prompt="way").embedding) == list(made.embeddings[1])


def main():
    program, embedding_model = sys.argv[1:]
    with Server(program, "-c", "1024") as server:
        client = client_of(server)
        for test in (test_model, test_chat, test_generate, test_errors):
            test(client)
    with ToolModel() as model, Server(program, model) as server:
        test_tools(client_of(server))
    with Server(program, embedding_model, "--pooling", "mean") as server:
        test_embeddings(client_of(server))


if __name__ == "__main__":
    main()
