"""The named chat formats: for models whose file has no template.

A format is what stands around the texts of messages; the words are those that the models were
trained on. Most are rows of one table; what needs code is below it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .llama_chat_format import ChatFormatterResponse, register_chat_format

__all__ = [
    "format_chatml",
    "format_gemma",
    "format_llama2",
    "format_llama3",
    "format_mistral_instruct",
    "format_saiga",
]


@dataclass(frozen=True)
class _Format:
    user: str
    assistant: str
    joint: str = ""
    """Between a role and its text."""
    open_joint: str = ""
    """Behind the last role, whose text is the answer."""
    ends: tuple[str, str] = ("", "")
    """Behind texts, in turn."""
    system: tuple[str, str] = ("", "")
    """Around the system's text."""
    system_end: str = ""
    """Behind that."""
    usual_system: str = ""
    """Where the caller gives none."""
    fixed_system: str | None = None
    """In place of what the caller gives."""
    stop: str | None = None
    opens: bool = True
    """The prompt ends in the assistant's role."""


def _pair(text: str) -> tuple[str, str]:
    return (text, text)


_CHATML = _Format(
    "<|im_start|>user",
    "<|im_start|>assistant",
    "\n",
    "\n",
    _pair("<|im_end|>\n"),
    ("<|im_start|>system\n", ""),
    "<|im_end|>\n",
    stop="<|im_end|>",
)

_FORMATS = {
    "chatml": _CHATML,
    "qwen": _Format(
        **{
            **_CHATML.__dict__,
            "usual_system": "You are a helpful assistant.",
            "stop": "<|endoftext|>",
        }
    ),
    "alpaca": _Format(
        "### Instruction",
        "### Response",
        ": ",
        ":",
        ("\n\n", "</s>"),
        system_end="\n\n",
        opens=False,
    ),
    "vicuna": _Format(
        "USER",
        "ASSISTANT",
        ": ",
        ":",
        (" ", "</s>"),
        system_end=" ",
        fixed_system="A chat between a curious user and an artificial intelligence assistant. "
        "The assistant gives helpful, detailed, and polite answers to the user's questions.",
    ),
    "oasst_llama": _Format(
        "<|prompter|>",
        "<|assistant|>",
        ends=_pair("</s>"),
        system=("[INST] <<SYS>>\n", "\n<</SYS>>\n\n"),
    ),
    "baichuan-2": _Format("<reserved_106>", "<reserved_107>"),
    "baichuan": _Format("<reserved_102>", "<reserved_103>"),
    "redpajama-incite": _Format(
        "<human>", "<bot>", ": ", ":", _pair("\n"), system_end="\n", stop="<human>"
    ),
    "snoozy": _Format(
        "### Prompt",
        "### Response",
        ": ",
        ":",
        _pair("\n"),
        ("### Instruction:\n", ""),
        "\n",
        "The prompt below is a question to answer, a task to complete, or a conversation to "
        "respond to; decide which and write an appropriate response.",
        stop="###",
    ),
    "phind": _Format(
        "### User Message",
        "### Assistant",
        ": ",
        ":",
        _pair("\n\n"),
        system_end="\n\n",
        fixed_system="### System Prompt\nYou are an intelligent programming assistant.",
    ),
    "mistrallite": _Format(
        "<|prompter|>", "</s>\n<|assistant|>", ends=_pair(" "), system=("<|system|>", "</s>")
    ),
    "zephyr": _Format(
        "<|user|>\n",
        "<|assistant|>\n",
        "\n",
        "\n",
        _pair("</s>\n"),
        ("<|system|>\n", ""),
        "</s>\n",
        stop="</s>",
    ),
    "pygmalion": _Format(
        "<|user|>",
        "<|model|>",
        "\n",
        "\n",
        _pair("\n\n"),
        ("<|system|>", ""),
        "\n\n",
        stop="\n",
    ),
    "chatglm3": _Format(
        "<|user|>", "<|assistant|>", "\n ", system=("<|system|>\n", ""), stop="</s>"
    ),
    "openchat": _Format(
        "GPT4 Correct User: ",
        "<|end_of_turn|>GPT4 Correct Assistant: ",
        "\n",
        "\n",
        _pair("<|end_of_turn|>\n"),
        ("", "<|end_of_turn|>"),
        "<|end_of_turn|>\n",
        stop="<|end_of_turn|>",
    ),
}


def _text(message: Any) -> str:
    """Of a message, whose content may be parts.

    Raises:
        ValueError: a part is no text.
    """
    content = message.get("content")
    if content is None or isinstance(content, str):
        return content or ""
    for part in content:
        if part.get("type") != "text":
            raise ValueError(f"messages: expected parts of type text, found {part.get('type')!r}")
    return "".join(part["text"] for part in content)


def _system(messages: Sequence[Any]) -> str:
    return next((_text(each) for each in messages if each["role"] == "system"), "")


def _write(form: _Format, messages: Sequence[Any]) -> str:
    system = form.fixed_system
    if system is None:
        system = form.system[0] + (_system(messages) or form.usual_system) + form.system[1]
    prompt = system + form.system_end
    roles = {"user": form.user, "assistant": form.assistant}
    turns = [(roles[each["role"]], _text(each)) for each in messages if each["role"] in roles]
    if form.opens:
        turns.append((form.assistant, ""))
    for index, (role, text) in enumerate(turns):
        prompt += role + (form.joint + text + form.ends[index % 2] if text else form.open_joint)
    return prompt


class _Formatter:
    def __init__(self, form: _Format) -> None:
        self.form = form

    def __call__(self, messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
        return ChatFormatterResponse(_write(self.form, messages), self.form.stop)


for _name, _form in _FORMATS.items():
    register_chat_format(_name)(_Formatter(_form))

format_chatml = _Formatter(_CHATML)


@register_chat_format("intel")
def format_intel(messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
    prompt = "### System:\n" + _system(messages) + "\n"
    for each in messages:
        if each["role"] in ("user", "assistant"):
            prompt += f"### {each['role'].title()}:\n{_text(each)}\n"
    return ChatFormatterResponse(prompt + "### Assistant:\n", "### User:")


@register_chat_format("llama-2")
def format_llama2(messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
    """The first question has the system's text in front of it; the tokenizer writes the first
    <s>."""
    system = _system(messages)
    prompt = f"[INST] <<SYS>>\n{system}\n<</SYS>>\n\n" if system else ""
    is_first = True
    for each in messages:
        if each["role"] == "user":
            if not is_first:
                prompt += "<s>"
            prompt += _text(each) if is_first and system else f"[INST] {_text(each)}"
            prompt += " [/INST]"
            is_first = False
        elif each["role"] == "assistant":
            prompt += f" {_text(each)} </s>"
    return ChatFormatterResponse(prompt)


@register_chat_format("llama-3")
def format_llama3(messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
    prompt = ""
    for each in messages:
        if each["role"] in ("system", "user", "assistant"):
            prompt += f"<|start_header_id|>{each['role']}<|end_header_id|>\n\n"
            prompt += _text(each) + "<|eot_id|>"
    prompt += "<|start_header_id|>assistant<|end_header_id|>\n\n"
    return ChatFormatterResponse(prompt, "<|eot_id|>")


@register_chat_format("mistral-instruct")
def format_mistral_instruct(messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
    """Without the first <s>, which the tokenizer writes."""
    prompt = ""
    for each in messages:
        if each["role"] == "user":
            prompt += f"[INST] {_text(each)} [/INST]"
        elif each["role"] == "assistant":
            prompt += _text(each) + "</s>"
    return ChatFormatterResponse(prompt, "</s>")


@register_chat_format("saiga")
def format_saiga(messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
    roles = {"user": "user", "bot": "bot", "assistant": "bot", "system": "system"}
    prompt = "".join(
        f"<s>{roles[each['role']]}\n{_text(each)}</s>"
        for each in messages
        if each["role"] in roles
    )
    return ChatFormatterResponse(prompt + "<s>bot", "</s>")


@register_chat_format("gemma")
def format_gemma(messages: list[Any], **kwargs: Any) -> ChatFormatterResponse:
    """These models know no system: its text is left out."""
    roles = {"user": "user", "assistant": "model"}
    prompt = "".join(
        f"<start_of_turn>{roles[each['role']]}\n{_text(each)}<end_of_turn>\n"
        for each in messages
        if each["role"] in roles
    )
    return ChatFormatterResponse(prompt + "<start_of_turn>model\n", "<end_of_turn>")
