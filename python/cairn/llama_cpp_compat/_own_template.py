"""Chat by the template in a model's own file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from ._chat_request import ChatRequest, Reply, answer
from .llama_chat_format import Jinja2ChatFormatter

if TYPE_CHECKING:
    from ._llama import Llama

_NAMED = "tokenizer.chat_template."


def own_template_handler(*, llama: Llama, messages: list[Any], **options: Any) -> Reply:
    """The engine's own reading of the template: special tokens come from the template alone, never
    from what messages say."""
    request = ChatRequest.of(messages, **options)
    extra = dict(request.template_options)
    extra.setdefault("add_generation_prompt", True)
    prompt = llama._file.render(request.messages, tools=request.offered_tools, **extra)
    return answer(llama, request, prompt)


def own_handlers(llama: Llama) -> dict[str, Callable[..., Any]]:
    """Of all templates in the file, by the names that llama-cpp-python has for them."""
    found: dict[str, Callable[..., Any]] = {}
    if llama._file.info.has_chat_template:
        found["chat_template.default"] = own_template_handler
    for key, template in llama.metadata.items():
        if key.startswith(_NAMED):
            found["chat_template." + key[len(_NAMED) :]] = _LazyHandler(llama, template)
    return found


class _LazyHandler:
    """Another template of the file, by the package jinja2, once it is used."""

    def __init__(self, llama: Llama, template: str) -> None:
        names = llama._model
        self._template = template
        self._eos = names.token_get_text(llama.token_eos())
        self._bos = names.token_get_text(llama.token_bos())

    def __call__(self, **arguments: Any) -> Reply:
        formatter = Jinja2ChatFormatter(self._template, self._eos, self._bos)
        found: Reply = formatter.to_chat_handler()(**arguments)
        return found
