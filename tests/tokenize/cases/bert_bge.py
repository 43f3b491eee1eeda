"""Makes bert-bge.json beside this file: where the shared fixture of bert-bge, which tools for GGUF
made, differs from the original normalizer, the ids of the tokenizers library, by place.

usage: bert_bge.py FIXTURE (without .gguf and .json); needs gguf and tokenizers (0.22)."""

import json
import pathlib
import sys

from gguf import GGUFReader
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

NORMAL = 1


def tokenizer_of(path):
    fields = GGUFReader(path).fields
    tokens = fields["tokenizer.ggml.tokens"].contents()
    types = fields["tokenizer.ggml.token_type"].contents()
    ids = {}
    for i, (token, kind) in enumerate(zip(tokens, types)):
        if kind != NORMAL:
            ids[token] = i
        else:
            ids[token[1:] if token.startswith("\u2581") else "##" + token] = i
    tokenizer = Tokenizer(models.WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def main():
    fixture = sys.argv[1]
    tokenizer = tokenizer_of(fixture + ".gguf")
    expected = json.loads(pathlib.Path(fixture + ".json").read_text())
    rows = []
    for i, entry in enumerate(expected["strings"]):
        ids = tokenizer.encode(entry["text"], add_special_tokens=False).ids
        if ids != entry["plain"]:
            rows.append(f'"{i}": {json.dumps(ids)}')
    text = "{\n" + ",\n".join(rows) + "\n}\n"
    pathlib.Path(__file__).with_name("bert-bge.json").write_text(text)


main()
