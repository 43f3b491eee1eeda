"""Chat formats: how messages become a prompt, by name or by a template of Hugging Face's form."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Callable, Protocol, TypeVar, Union

from ._chat_request import ChatRequest, Reply, answer
from ._processors import Ids, Scores, StoppingCriteriaList

if TYPE_CHECKING:
    from ._llama import Llama

Handler = Callable[..., Any]
_H = TypeVar("_H", bound=Handler)


class LlamaChatCompletionHandler(Protocol):
    """Answers a conversation.

    Gets `llama`, `messages` and everything else that create_chat_completion() was called with, all
    by name, and returns a chat completion; with stream=True, an iterator of chunks.
    """

    def __call__(self, *, llama: Llama, messages: list[Any], **options: Any) -> Reply: ...


class LlamaChatCompletionHandlerNotFoundException(Exception):
    """There is no chat format of that name."""


class LlamaChatCompletionHandlerRegistry:
    """Handlers by name. There is one of it, which all instances share."""

    _handlers: dict[str, Handler] = {}
    _guard = threading.Lock()

    def register_chat_completion_handler(
        self, name: str, chat_handler: Handler, overwrite: bool = False
    ) -> None:
        """Raises: ValueError: the name is taken."""
        with self._guard:
            if name in self._handlers and not overwrite:
                raise ValueError(
                    f"chat format: expected a new name, found {name!r}, which is registered; "
                    "overwrite=True replaces it"
                )
            self._handlers[name] = chat_handler

    def unregister_chat_handler(self, name: str) -> None:
        """Raises: ValueError: there is none."""
        with self._guard:
            if self._handlers.pop(name, None) is None:
                raise ValueError(f"chat format: found none of the name {name!r}")

    def get_chat_completion_handler_by_name(self, name: str) -> Handler:
        """Raises: LlamaChatCompletionHandlerNotFoundException."""
        try:
            return self._handlers[name]
        except KeyError:
            raise LlamaChatCompletionHandlerNotFoundException(
                f"Invalid chat handler: {name} (valid formats: {sorted(self._handlers)})"
            ) from None


def get_chat_completion_handler(name: str) -> Handler:
    """The handler of a name. Raises: LlamaChatCompletionHandlerNotFoundException."""
    return LlamaChatCompletionHandlerRegistry().get_chat_completion_handler_by_name(name)


def register_chat_completion_handler(name: str) -> Callable[[_H], _H]:
    """A decorator that makes a handler known by a name."""

    def register(handler: _H) -> _H:
        LlamaChatCompletionHandlerRegistry().register_chat_completion_handler(name, handler)
        return handler

    return register


@dataclass
class ChatFormatterResponse:
    """What messages have become."""

    prompt: str
    stop: Union[str, list[str], None] = None
    """Texts that end the answer."""
    stopping_criteria: StoppingCriteriaList | None = None
    added_special: bool = False
    """The prompt has the model's first token already."""


Formatter = Callable[..., ChatFormatterResponse]
_F = TypeVar("_F", bound=Formatter)


class ChatFormatter(Protocol):
    """Makes a prompt of messages."""

    def __call__(self, *, messages: list[Any], **kwargs: Any) -> ChatFormatterResponse: ...


def register_chat_format(name: str) -> Callable[[_F], _F]:
    """A decorator that makes a formatter known by a name."""

    def register(formatter: _F) -> _F:
        handler = chat_formatter_to_chat_completion_handler(formatter)
        LlamaChatCompletionHandlerRegistry().register_chat_completion_handler(name, handler)
        return formatter

    return register


def chat_formatter_to_chat_completion_handler(chat_formatter: Formatter) -> Handler:
    """A handler that answers the prompt of a formatter."""

    def handler(*, llama: Llama, messages: list[Any], **options: Any) -> Reply:
        request = ChatRequest.of(messages, **options)
        made = chat_formatter(
            messages=messages,
            functions=options.get("functions"),
            function_call=options.get("function_call"),
            tools=request.offered_tools,
            tool_choice=request.tool_choice,
            **request.template_options,
        )
        prompt = llama.tokenize(made.prompt, add_bos=not made.added_special, special=True)
        stops = [made.stop] if isinstance(made.stop, str) else list(made.stop or ())
        return answer(llama, request, prompt, stops, made.stopping_criteria)

    return handler


def _environment() -> Any:
    """Of sandboxed templates, as transformers has it.

    Raises:
        ImportError: jinja2 is not installed.
    """
    try:
        from jinja2 import nodes
        from jinja2.ext import Extension, loopcontrols
        from jinja2.parser import Parser
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise ImportError("chat templates: expected the package jinja2") from error

    class Generation(Extension):
        """The tag {% generation %} marks what a model has said; its content is text like any."""

        tags = {"generation"}

        def parse(self, parser: Parser) -> Union[nodes.Node, list[nodes.Node]]:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    made = ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, loopcontrols]
    )
    made.filters["tojson"] = _to_json
    return made


def _to_json(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value,
        ensure_ascii=ensure_ascii,
        indent=indent,
        separators=separators,
        sort_keys=sort_keys,
    )


def _refuse(message: str) -> None:
    raise ValueError(message)


def _now(form: str) -> str:
    return datetime.now().strftime(form)


class Jinja2ChatFormatter:
    """A formatter of a template, which runs in a sandbox.

    Args:
        eos_token, bos_token: Their texts.
        stop_token_ids: The answer ends behind these.

    Raises:
        ImportError: jinja2 is not installed.
    """

    def __init__(
        self,
        template: str,
        eos_token: str,
        bos_token: str,
        add_generation_prompt: bool = True,
        stop_token_ids: Sequence[int] | None = None,
    ) -> None:
        self.template, self.eos_token, self.bos_token = template, eos_token, bos_token
        self.add_generation_prompt = add_generation_prompt
        self.stop_token_ids = None if stop_token_ids is None else frozenset(stop_token_ids)
        self._template = _environment().from_string(template)

    def __call__(self, *, messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
        prompt = self._template.render(
            **{
                "eos_token": self.eos_token,
                "bos_token": self.bos_token,
                "add_generation_prompt": self.add_generation_prompt,
                "raise_exception": _refuse,
                "strftime_now": _now,
                **kwargs,
                "messages": messages,
            }
        )
        ends = self.stop_token_ids
        criteria = None
        if ends is not None:

            def is_end(tokens: Ids, logits: Scores) -> bool:
                return int(tokens[-1]) in ends

            criteria = StoppingCriteriaList([is_end])
        stop = [self.eos_token] if self.eos_token else None
        return ChatFormatterResponse(prompt, stop, criteria, added_special=True)

    def to_chat_handler(self) -> Handler:
        return chat_formatter_to_chat_completion_handler(self)


def hf_tokenizer_config_to_chat_formatter(
    tokenizer_config: Mapping[str, Any], add_generation_prompt: bool = True
) -> Formatter:
    """The formatter of a tokenizer_config.json: its chat_template, bos_token and eos_token.

    Args:
        add_generation_prompt: An empty message of the assistant is put behind the others.

    Raises:
        ValueError: one of these is missing, or no text.
    """
    found = {}
    for name in ("chat_template", "bos_token", "eos_token"):
        value = tokenizer_config.get(name)
        if not isinstance(value, str):
            raise ValueError(f"tokenizer config: expected the text {name}, found {value!r}")
        found[name] = value
    template = _environment().from_string(found["chat_template"])
    eos, bos = found["eos_token"], found["bos_token"]

    def formatter(*, messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
        if add_generation_prompt:
            messages = [*messages, {"role": "assistant", "content": ""}]
        prompt = template.render(
            **{"raise_exception": _refuse, "bos_token": bos, "eos_token": eos, **kwargs},
            messages=messages,
        )
        return ChatFormatterResponse(prompt, [eos, bos], added_special=True)

    return formatter


def hf_tokenizer_config_to_chat_completion_handler(
    tokenizer_config: Mapping[str, Any], add_generation_prompt: bool = True
) -> Handler:
    """The same as a handler."""
    return chat_formatter_to_chat_completion_handler(
        hf_tokenizer_config_to_chat_formatter(tokenizer_config, add_generation_prompt)
    )


# The named formats register themselves, and stand on what is above.
from ._chat_formats import *  # noqa: E402, F403
from ._function_calling import chatml_function_calling  # noqa: E402, F401
