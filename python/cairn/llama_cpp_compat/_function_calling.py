"""The chat format "chatml-function-calling": tools for models that were trained on none.

The model writes "message:" or "functions.NAME:", by a grammar; behind a function's name the
grammar is its arguments' schema.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from . import _chat_replies as replies
from ._chat_formats import _text
from ._chat_request import (
    ChatRequest,
    Reply,
    complete,
    grammar_of_format,
    grammar_of_tool,
)
from .llama_chat_format import register_chat_completion_handler
from .llama_grammar import LlamaGrammar

if TYPE_CHECKING:
    from ._llama import Llama

_END = "<|im_end|>"
_CALLS_MAX = 16


def _offer(tools: list[Any]) -> str:
    """What the model is told of tools."""
    lines = ["You have access to these functions:"]
    for tool in tools:
        function = tool["function"]
        lines.append(f"\nfunctions.{function['name']}:")
        if function.get("description"):
            lines.append(str(function["description"]))
        lines.append(json.dumps(function.get("parameters") or {"type": "object"}))
    lines.append(
        "\nAnswer with a message, or call one or more functions.\n\n"
        "A message begins like this:\n\nmessage:\n<message>\n\n"
        'Calls look like this:\n\nfunctions.<name>:\n{"arg1": "value1", "arg2": "value2"}'
    )
    return "\n".join(lines)


def _prompt(messages: list[Any], tools: list[Any]) -> str:
    has_system = any(each["role"] == "system" for each in messages)
    if tools and not has_system:
        messages = [{"role": "system", "content": ""}, *messages]
    prompt = ""
    for each in messages:
        role, text = each["role"], _text(each)
        if role == "system" and tools:
            text = (text + "\n\n" + _offer(tools)).strip()
        if role == "assistant":
            if text and tools:
                text = "message:\n" + text
            calls = [call["function"] for call in each.get("tool_calls") or ()]
            parts = [f"functions.{call['name']}:\n{call['arguments']}" for call in calls]
            text = "\n".join(([text] if text else []) + parts)
        prompt += f"<|im_start|>{role}\n{text}{_END}\n"
    return prompt + "<|im_start|>assistant\n"


def _names(tools: list[Any], also: str | None) -> LlamaGrammar:
    texts = [f"functions.{each['function']['name']}:" for each in tools]
    texts += [] if also is None else [also]
    return LlamaGrammar.from_string("root ::= " + " | ".join(map(json.dumps, texts)))


@register_chat_completion_handler("chatml-function-calling")
def chatml_function_calling(*, llama: Llama, messages: list[Any], **options: Any) -> Reply:
    """Answers with a message or with calls of tools, as the model or `tool_choice` decides."""
    request = ChatRequest.of(messages, **options)
    tools = request.offered_tools or []
    prompt = _prompt(messages, tools)
    tool = request.chosen_tool()
    if tool is not None:
        made = complete(
            llama,
            request,
            prompt + f"functions.{tool['name']}:\n",
            stops=[_END],
            grammar=grammar_of_tool(tool),
            stream=request.stream,
        )
        if request.stream:
            return replies.call_chunks(tool["name"], made)
        return replies.call_reply(tool["name"], made)
    if tools:
        choice = _choose(llama, request, prompt, tools, "message:")
        if choice != "message:":
            return _call(llama, request, prompt, tools, choice)
        prompt += "message:\n"
    made = complete(
        llama,
        request,
        prompt,
        stops=[_END],
        grammar=request.grammar or grammar_of_format(request.response_format),
        stream=request.stream,
    )
    return replies.text_chunks(made) if request.stream else replies.text_reply(made)


def _choose(
    llama: Llama, request: ChatRequest, prompt: str, tools: list[Any], also: str
) -> str:
    """The likeliest beginning: "functions.NAME:", or what else there is."""
    must_call = also != _END and request.tool_choice == "required"
    made = complete(
        llama,
        request,
        prompt,
        grammar=_names(tools, None if must_call else also),
        temperature=0.0,
        max_tokens=None,
        logprobs=None,
    )
    text: str = made["choices"][0]["text"]
    return text


def _call(
    llama: Llama, request: ChatRequest, prompt: str, tools: list[Any], choice: str
) -> Reply:
    """Calls, one after the other, until the model wants no more."""
    calls: list[tuple[str, str]] = []
    usage = {"prompt_tokens": 0, "completion_tokens": 0, "total_tokens": 0}
    while True:
        name = choice[len("functions.") : -1]
        prompt += choice + "\n"
        made = complete(
            llama,
            request,
            prompt,
            stops=[_END],
            grammar=grammar_of_tool(request.tool_named(name)),
        )
        text = made["choices"][0]["text"]
        calls.append((name, text))
        usage = {key: usage[key] + made["usage"][key] for key in usage}
        prompt += text + "\n"
        if made["choices"][0]["finish_reason"] == "length" or len(calls) == _CALLS_MAX:
            break
        choice = _choose(llama, request, prompt, tools, _END)
        if not choice.startswith("functions."):
            break
    made["usage"] = usage
    if request.stream:
        return replies.all_call_chunks(made, calls)
    return replies.reply(made, replies.calls_message(calls, made["id"]), "tool_calls")
