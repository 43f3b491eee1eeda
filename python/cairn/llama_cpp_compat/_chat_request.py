"""What a chat completion is asked for, and the answer to it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Union

from . import _chat_replies as replies
from .llama_grammar import JSON_GBNF, LlamaGrammar

if TYPE_CHECKING:
    from ._llama import Llama
    from ._processors import StoppingCriteriaList

Reply = Union[dict[str, Any], Iterator[dict[str, Any]]]

# What is handed to create_completion as it stands.
_SAMPLING = frozenset(
    """temperature top_p top_k min_p typical_p seed presence_penalty frequency_penalty
    repeat_penalty tfs_z mirostat_mode mirostat_tau mirostat_eta model logits_processor logit_bias
    max_tokens""".split()
)


@dataclass
class ChatRequest:
    """The arguments of a chat completion that are more than sampling."""

    messages: list[Any]
    tools: list[Any] | None = None
    tool_choice: Any = None
    stream: bool = False
    stop: str | Sequence[str] | None = None
    response_format: Mapping[str, Any] | None = None
    grammar: LlamaGrammar | None = None
    logprobs: bool | None = None
    top_logprobs: int | None = None
    sampling: dict[str, Any] = field(default_factory=dict)
    template_options: dict[str, Any] = field(default_factory=dict)
    """What the caller gave for the template."""

    @classmethod
    def of(
        cls,
        messages: list[Any],
        functions: list[Any] | None = None,
        function_call: Any = None,
        **options: Any,
    ) -> ChatRequest:
        """Functions, the older form, become tools."""
        if functions is not None:
            options["tools"] = [{"type": "function", "function": each} for each in functions]
        if isinstance(function_call, Mapping):
            options["tool_choice"] = {"type": "function", "function": dict(function_call)}
        elif function_call is not None:
            options["tool_choice"] = function_call
        known = {each.name for each in fields(cls)}
        made = cls(messages, **{name: options.pop(name) for name in known & options.keys()})
        made.sampling = {"temperature": 0.2, "repeat_penalty": 1.1, "max_tokens": None}
        for name, value in options.items():
            place = made.sampling if name in _SAMPLING else made.template_options
            place[name] = value
        return made

    @property
    def offered_tools(self) -> list[Any] | None:
        """Tools that the model may call."""
        return None if self.tool_choice == "none" else self.tools or None

    @property
    def stops(self) -> list[str]:
        return [self.stop] if isinstance(self.stop, str) else list(self.stop or ())

    def tool_named(self, name: str) -> Mapping[str, Any]:
        """Raises: ValueError: there is no tool of that name."""
        for tool in self.tools or ():
            if tool["function"]["name"] == name:
                found: Mapping[str, Any] = tool["function"]
                return found
        raise ValueError(f"Tool choice '{name}' not found in tools.")

    def chosen_tool(self) -> Mapping[str, Any] | None:
        """The tool that the caller has chosen."""
        if not isinstance(self.tool_choice, Mapping) or not self.tools:
            return None
        return self.tool_named(self.tool_choice["function"]["name"])


def grammar_of_format(response_format: Mapping[str, Any] | None) -> LlamaGrammar | None:
    """Of "json_object" (with or without a schema) and "json_schema"; None: any text.

    Raises:
        ValueError: a format of another type.
    """
    kind = "text" if response_format is None else response_format.get("type")
    if response_format is None or kind == "text":
        return None
    if kind == "json_schema":
        return LlamaGrammar.from_json_schema(response_format["json_schema"]["schema"])
    if kind != "json_object":
        raise ValueError(
            f"response_format: expected text, json_object or json_schema, found {kind!r}"
        )
    schema = response_format.get("schema")
    if schema is None:
        return LlamaGrammar.from_string(JSON_GBNF)
    return LlamaGrammar.from_json_schema(schema)


def grammar_of_tool(tool: Mapping[str, Any]) -> LlamaGrammar:
    """Of a tool's arguments."""
    return LlamaGrammar.from_json_schema(_parameters(tool))


def _parameters(tool: Mapping[str, Any]) -> Any:
    return tool.get("parameters") or {"type": "object"}


def _grammar_of_any_call(tools: list[Any]) -> LlamaGrammar:
    calls = [
        {
            "type": "object",
            "properties": {
                "name": {"const": each["function"]["name"]},
                "arguments": _parameters(each["function"]),
            },
            "required": ["name", "arguments"],
        }
        for each in tools
    ]
    return LlamaGrammar.from_json_schema(json.dumps({"anyOf": calls}))


def complete(
    llama: Llama,
    request: ChatRequest,
    prompt: Union[str, list[int]],
    *,
    stops: Sequence[str] = (),
    criteria: StoppingCriteriaList | None = None,
    grammar: LlamaGrammar | None = None,
    stream: bool = False,
    **options: Any,
) -> Any:
    """A completion with what the request says of sampling; options have precedence."""
    wanted = (request.top_logprobs or 0) if request.logprobs else None
    arguments = {**request.sampling, "logprobs": wanted, **options}
    return llama.create_completion(
        prompt,
        stop=[*request.stops, *stops],
        stopping_criteria=criteria,
        grammar=grammar,
        stream=stream,
        **arguments,
    )


def answer(
    llama: Llama,
    request: ChatRequest,
    prompt: Union[str, list[int]],
    stops: Sequence[str] = (),
    criteria: StoppingCriteriaList | None = None,
) -> Reply:
    """The reply to a conversation that has become a prompt: text, or calls of tools."""
    tool = request.chosen_tool()
    tools = request.offered_tools
    grammar = request.grammar or grammar_of_format(request.response_format)
    if tool is not None:
        grammar = grammar_of_tool(tool)
    elif request.tool_choice == "required" and tools:
        grammar = _grammar_of_any_call(tools)
    completion = complete(
        llama,
        request,
        prompt,
        stops=stops,
        criteria=criteria,
        grammar=grammar,
        stream=request.stream,
    )
    if tool is not None:
        calls = replies.call_chunks if request.stream else replies.call_reply
        made: Reply = calls(tool["name"], completion)
        return made
    names = [each["function"]["name"] for each in tools or ()]
    if request.stream:
        return replies.text_chunks(completion, names)
    return replies.text_reply(completion, names)
