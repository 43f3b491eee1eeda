"""cairn for programs that were written for llama-cpp-python: the same names, on cairn's engine.

docs/python-llama.md says what is the same and what is not. The names of C functions (`llama_*`)
are not there.
"""

from __future__ import annotations

from . import (
    llama_cache,
    llama_chat_format,
    llama_grammar,
    llama_speculative,
    llama_tokenizer,
    llama_types,
)
from ._llama import LLAMA_DEFAULT_SEED, Llama
from ._processors import (
    LogitsProcessor,
    LogitsProcessorList,
    MinTokensLogitsProcessor,
    StoppingCriteria,
    StoppingCriteriaList,
)
from ._state import LlamaState
from .llama_cache import BaseLlamaCache, LlamaCache, LlamaDiskCache, LlamaRAMCache
from .llama_grammar import LlamaGrammar
from .llama_speculative import LlamaDraftModel, LlamaPromptLookupDecoding
from .llama_tokenizer import BaseLlamaTokenizer, LlamaHFTokenizer, LlamaTokenizer
from .llama_types import *  # noqa: F403

__version__ = "0.3.36"
"""Of llama-cpp-python, whose interface this is."""

__all__ = [
    "LLAMA_DEFAULT_SEED",
    "BaseLlamaCache",
    "BaseLlamaTokenizer",
    "Llama",
    "LlamaCache",
    "LlamaDiskCache",
    "LlamaDraftModel",
    "LlamaGrammar",
    "LlamaHFTokenizer",
    "LlamaPromptLookupDecoding",
    "LlamaRAMCache",
    "LlamaState",
    "LlamaTokenizer",
    "LogitsProcessor",
    "LogitsProcessorList",
    "MinTokensLogitsProcessor",
    "StoppingCriteria",
    "StoppingCriteriaList",
    "llama_cache",
    "llama_chat_format",
    "llama_grammar",
    "llama_speculative",
    "llama_tokenizer",
    "llama_types",
    *llama_types.__all__,
]
