"""Grammars that answers fit: GBNF or a JSON schema, kept as given; the engine reads them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

LLAMA_GRAMMAR_DEFAULT_ROOT = "root"

JSON_GBNF = r"""
root   ::= space object
value  ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" space (pair ("," space pair)*)? "}"
pair   ::= string space ":" space value space
array  ::= "[" space (value space ("," space value space)*)? "]"
string ::= "\"" char* "\""
char   ::= [^"\\\x00-\x1F] | "\\" (["\\/bfnrt] | "u" hex hex hex hex)
hex    ::= [0-9a-fA-F]
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)?
space  ::= [ \t\n]{0,20}
"""


class LlamaGrammar:
    """A grammar. What is wrong with one is found when an answer begins.

    >>> LlamaGrammar.from_string('root ::= "yes" | "no"').gbnf
    'root ::= "yes" | "no"'
    """

    def __init__(self, *, gbnf: str | None = None, json_schema: str | None = None) -> None:
        if (gbnf is None) == (json_schema is None):
            raise ValueError("grammar: expected either GBNF or a JSON schema")
        self.gbnf, self.json_schema = gbnf, json_schema

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LlamaGrammar) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((self.gbnf, self.json_schema))

    @classmethod
    def from_string(cls, grammar: str, verbose: bool = True) -> LlamaGrammar:
        return cls(gbnf=grammar)

    @classmethod
    def from_file(cls, file: str | os.PathLike[str], verbose: bool = True) -> LlamaGrammar:
        text = Path(file).read_text(encoding="utf-8")
        if not text.strip():
            raise ValueError(f"grammar: expected rules, found an empty file {os.fspath(file)!r}")
        return cls.from_string(text, verbose)

    @classmethod
    def from_json_schema(
        cls, json_schema: str | Mapping[str, Any], verbose: bool = True
    ) -> LlamaGrammar:
        """Raises: ValueError: the text is no JSON."""
        text = json_schema if isinstance(json_schema, str) else json.dumps(json_schema)
        json.loads(text)
        return cls(json_schema=text)
