#!/usr/bin/env python3
"""Makes a case for conversion: a tiny model as the folder that transformers saves (NAME/), the
GGUF file that llama.cpp's converter makes of it (NAME.gguf), and the logits of TOKENS (NAME.f32).

  tools/make_folder.py NAME MODEL_TYPE --converter DIR --out DIR [--set KEY=VALUE …]
                       [--tokenizer KIND] [--dtype float16] [--outtype auto] [--shards BYTES]

KIND is one of gpt2, llama3, qwen2, digits (byte-level BPE, cut as those do), spaced (BPE over
U+2581 with bytes as a fallback) or sentencepiece (the same as tokenizer.model; needs the package).
The converter knows byte-level tokenizers by what they make of a text, and cannot know these: it is
told.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shutil
import sys

import torch
import transformers

import make_golden

CONTRACTIONS = "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
SPACES = r"|\s*[\r\n]+|\s+(?!\S)|\s+"
PRE_NAMES = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "digits": "smollm"}
TOKENS = [(7 * i * i + 3) % 300 + 3 for i in range(24)]
TEMPLATE = "{% for m in messages %}<|bos|>{{ m.role }}: {{ m.content }}<|eos|>{% endfor %}"


def cutting(kind):
    from tokenizers import Regex, pre_tokenizers
    if kind == "gpt2":
        return pre_tokenizers.ByteLevel(add_prefix_space=False)
    if kind == "digits":
        return pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True),
                                        pre_tokenizers.ByteLevel(add_prefix_space=False)])
    digits = r"|\p{N}{1,3}" if kind == "llama3" else r"|\p{N}"
    expression = (CONTRACTIONS + r"|[^\r\n\p{L}\p{N}]?\p{L}+" + digits +
                  r"| ?[^\s\p{L}\p{N}]+[\r\n]*" + SPACES)
    return pre_tokenizers.Sequence([
        pre_tokenizers.Split(Regex(expression), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])


def byte_level(kind, specials):
    import tokenizers
    from tokenizers import decoders, pre_tokenizers, processors, trainers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(ignore_merges=kind == "llama3"))
    tokenizer.pre_tokenizer = cutting(kind)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(vocab_size=make_golden.VOCABULARY - 16, special_tokens=specials,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator([make_golden.TEXT], trainer)
    if kind == "llama3":
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{specials[0]} $A", pair=f"{specials[0]} $A {specials[0]} $B",
            special_tokens=[(specials[0], 0)])
    else:
        tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def spaced(specials):
    import tokenizers
    from tokenizers import decoders, normalizers, processors, trainers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(byte_fallback=True, fuse_unk=True,
                                                           unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"),
                                                 normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(),
                                           decoders.Fuse(), decoders.Strip(" ", 1, 0)])
    byte_tokens = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(vocab_size=make_golden.VOCABULARY - 16,
                                  special_tokens=specials + ["<unk>"] + byte_tokens,
                                  show_progress=False)
    tokenizer.train_from_iterator([make_golden.TEXT], trainer)
    # Bytes are tokens of the vocabulary, but none that a text can spell.
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [t for t in state["added_tokens"] if t["content"] not in byte_tokens]
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(state))
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{specials[0]} $A", pair=f"{specials[0]} $A {specials[0]} $B",
        special_tokens=[(specials[0], 0)])
    return tokenizer


def save_sentencepiece(folder, specials):
    import sentencepiece
    text = folder / "text.txt"
    text.write_text("\n".join(make_golden.TEXT.split(". ") * 4), encoding="utf-8")
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(folder / "tokenizer"), model_type="bpe",
        vocab_size=make_golden.VOCABULARY - 40, byte_fallback=True, bos_piece=specials[0],
        eos_piece=specials[1], pad_piece=specials[2], pad_id=2, bos_id=0, eos_id=1, unk_id=3,
        hard_vocab_limit=False, user_defined_symbols=["<start▁of>"], minloglevel=2)
    text.unlink()
    (folder / "tokenizer.vocab").unlink()
    added = {str(i): {"content": s, "special": True} for i, s in enumerate(specials)}
    added["330"] = {"content": "<▁two▁spaces>", "special": False}
    config = {"bos_token": specials[0], "eos_token": specials[1], "add_bos_token": True,
              "add_eos_token": False, "added_tokens_decoder": added, "tokenizer_class": "Any",
              "chat_template": TEMPLATE}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def save_tokenizer(folder, kind):
    specials = ["<|bos|>", "<|eos|>", "<|pad|>"]
    if kind == "sentencepiece":
        save_sentencepiece(folder, specials)
        return
    tokenizer = spaced(specials) if kind == "spaced" else byte_level(kind, specials)
    tokenizer.add_tokens(["<think>"])
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=specials[0], eos_token=specials[1],
        pad_token=specials[2])
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)


def convert(converter, folder, out_path, kind, outtype):
    sys.path.insert(0, str(converter))
    sys.path.insert(0, str(converter / "gguf-py"))
    import convert_hf_to_gguf
    from conversion import base
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: PRE_NAMES[kind]
    sys.argv = ["convert_hf_to_gguf.py", str(folder), "--outfile", str(out_path), "--outtype",
                outtype]
    with contextlib.redirect_stdout(sys.stderr):
        convert_hf_to_gguf.main()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("model_type")
    parser.add_argument("--converter", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--tokenizer", default="gpt2")
    parser.add_argument("--dtype", default="float16")
    parser.add_argument("--outtype", default="auto")
    parser.add_argument("--shards", help="the size of a part, as save_pretrained takes it")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    config = make_golden.tiny_config(arguments.model_type, arguments.set)
    model = make_golden.random_model(config, arguments.seed).to(getattr(torch, arguments.dtype))
    folder = arguments.out / arguments.name
    shutil.rmtree(folder, ignore_errors=True)
    shards = {"max_shard_size": arguments.shards} if arguments.shards else {}
    model.save_pretrained(folder, **shards)
    save_tokenizer(folder, arguments.tokenizer)
    # Read again: rotary tables that were rounded with the weights are no part of the folder.
    model = transformers.AutoModelForCausalLM.from_pretrained(
        folder, dtype=torch.float32, attn_implementation="eager").eval()
    logits = make_golden.logits_of(model, TOKENS)
    logits.astype("<f4").tofile(arguments.out / f"{arguments.name}.f32")
    convert(arguments.converter.resolve(), folder,
            (arguments.out / f"{arguments.name}.gguf").resolve(), arguments.tokenizer,
            arguments.outtype)


if __name__ == "__main__":
    main()
