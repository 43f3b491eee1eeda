"""Chats by cairn.Llama: whole, in pieces, in a form, as objects of openai."""
import json

import pytest

from cairn import Llama
from cairn.llama_cpp_compat import LlamaGrammar, llama_chat_format
from conftest import NANO, PARIS

ANSWER = "The capital of France is Paris."


@pytest.fixture(scope="module")
def llama():
    made = Llama(NANO, n_ctx=512, n_threads=1, verbose=False)
    yield made
    made.close()


def test_an_answer_whole_and_in_pieces(llama):
    made = llama.create_chat_completion(PARIS, temperature=0)
    choice, = made["choices"]
    assert choice["message"] == {"role": "assistant", "content": ANSWER}
    assert choice["finish_reason"] == "stop" and made["object"] == "chat.completion"
    usage = made["usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    pieces = list(llama.create_chat_completion(PARIS, temperature=0, stream=True))
    assert pieces[0]["choices"][0]["delta"]["role"] == "assistant"
    assert "".join(piece["choices"][0]["delta"].get("content") or "" for piece in pieces) == ANSWER
    assert pieces[-1]["choices"][0]["finish_reason"] == "stop"
    assert {piece["object"] for piece in pieces} == {"chat.completion.chunk"}


def test_limits_and_stops(llama):
    short = llama.create_chat_completion(PARIS, temperature=0, max_tokens=3)["choices"][0]
    assert short["finish_reason"] == "length" and ANSWER.startswith(short["message"]["content"])
    cut = llama.create_chat_completion(PARIS, temperature=0, stop=["France"])["choices"][0]
    assert cut["message"]["content"] == "The capital of " and cut["finish_reason"] == "stop"


def test_forms(llama):
    schema = {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}},
              "required": ["city"], "additionalProperties": False}
    for form in ({"type": "json_object", "schema": schema},
                 {"type": "json_schema", "json_schema": {"name": "city", "schema": schema}}):
        made = llama.create_chat_completion(PARIS, temperature=0, response_format=form)
        assert json.loads(made["choices"][0]["message"]["content"])["city"] in ("Paris", "Rome")
    grammar = LlamaGrammar.from_string('root ::= "yes" | "no"')
    made = llama.create_chat_completion(PARIS, temperature=0, grammar=grammar)
    assert made["choices"][0]["message"]["content"] in ("yes", "no")


def test_a_function_that_has_to_be_called(llama):
    tool = {"type": "function", "function": {"name": "find", "description": "Finds a city.",
            "parameters": {"type": "object", "properties": {"city": {"enum": ["Paris", "Rome"]}},
                           "required": ["city"], "additionalProperties": False}}}
    caller = Llama(NANO, n_ctx=512, n_threads=1, verbose=False,
                   chat_format="chatml-function-calling")
    made = caller.create_chat_completion(
        PARIS, tools=[tool], temperature=0,
        tool_choice={"type": "function", "function": {"name": "find"}})
    call, = made["choices"][0]["message"]["tool_calls"]
    assert call["function"]["name"] == "find"
    assert json.loads(call["function"]["arguments"])["city"] in ("Paris", "Rome")
    caller.close()


def test_objects_of_openai(llama):
    pytest.importorskip("openai")
    made = llama.create_chat_completion_openai_v1(PARIS, temperature=0)
    assert made.choices[0].message.content == ANSWER
    pieces = llama.create_chat_completion_openai_v1(PARIS, temperature=0, stream=True)
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == ANSWER


def test_formats_and_handlers_of_ones_own(llama):
    @llama_chat_format.register_chat_format("upper-case")
    def shout(messages, **_):
        text = "".join(message["content"].upper() for message in messages)
        return llama_chat_format.ChatFormatterResponse(prompt=text, stop="Z")

    named = Llama(NANO, n_ctx=512, n_threads=1, verbose=False, chat_format="upper-case")
    made = named.create_chat_completion(PARIS, temperature=0, max_tokens=4)
    tokens = named.tokenize(PARIS[0]["content"].upper().encode(), special=True)
    assert made["usage"]["prompt_tokens"] == len(tokens)
    named.close()
    with pytest.raises(Exception, match="no-such-format"):
        other = Llama(NANO, n_ctx=512, verbose=False, chat_format="no-such-format")
        other.create_chat_completion(PARIS)
