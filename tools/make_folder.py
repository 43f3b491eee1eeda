#!/usr/bin/env python3
"""Makes a case for conversion: a tiny model as the folder that transformers saves (NAME/), the
GGUF file that llama.cpp's converter makes of it (NAME.gguf), and the logits of TOKENS (NAME.f32).

  tools/make_folder.py NAME MODEL_TYPE --converter DIR --out DIR [--set KEY=VALUE …]
                       [--tokenizer KIND] [--dtype float16] [--outtype auto] [--shards BYTES]
                       [--auto AutoModel] [--config KEY=VALUE …] [--no-mtp]

KIND is one of gpt2, llama3, qwen2, digits (byte-level BPE, cut as those do), spaced (BPE over
U+2581 with bytes as a fallback), sentencepiece (the same as tokenizer.model; needs the package, as
unigram does), wordpiece, unigram (a tokenizer.json) or unigram-file (sentencepiece.bpe.model too).
The converter knows byte-level tokenizers by what they make of a text, and cannot know these: it is
told. --auto names transformers' class for models without logits. --config writes config.json anew,
as published folders have it where transformers saves other words; null leaves a key out.
--no-mtp is the converter's, for models whose folder lacks the layers that guess further tokens.
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
PRE_NAMES = {"gpt2": "gpt-2", "llama3": "llama-bpe", "qwen2": "qwen2", "digits": "smollm",
             "wordpiece": "bert-bge"}
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


def save_wordpiece(folder):
    import tokenizers
    from tokenizers import decoders, normalizers, pre_tokenizers, processors, trainers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator([make_golden.TEXT], trainers.WordPieceTrainer(
        vocab_size=make_golden.VOCABULARY - 14, special_tokens=specials, show_progress=False))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
        pad_token="[PAD]", mask_token="[MASK]").save_pretrained(folder)


# A short table of replacements in place of Unicode's long one: letters, a ligature, spaces.
RULES = ["41\t61", "42\t62", "FB01\t66 69", "FF21\t61", "9\t20", "3000\t20", "A0\t20",
         "E9\t65 301", "2460\t31", "AD\t"]


# Of several scripts.
LETTERS = "Größe über straße. Съешь ещё этих мягких булок. 今日は良い天気です. "


def save_unigram(folder, keeps_file):
    import sentencepiece
    import tokenizers
    from sentencepiece import sentencepiece_model_pb2
    from tokenizers import decoders, normalizers, pre_tokenizers, processors
    text, rules = folder / "text.txt", folder / "rules.tsv"
    lines = (make_golden.TEXT + LETTERS).split(". ") * 4
    text.write_text("\n".join(lines), encoding="utf-8")
    rules.write_text("\n".join(RULES), encoding="utf-8")
    path = folder / "sentencepiece.bpe.model"
    sentencepiece.SentencePieceTrainer.train(
        input=str(text), model_prefix=str(path.with_suffix("")), model_type="unigram",
        vocab_size=make_golden.VOCABULARY - 54, hard_vocab_limit=False, minloglevel=2,
        normalization_rule_tsv=str(rules), character_coverage=1.0)
    for extra in (text, rules, path.with_suffix(".vocab")):
        extra.unlink()
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(path.read_bytes())
    specials = ["<s>", "<pad>", "</s>", "<unk>"]
    pieces = [(special, 0.0) for special in specials]
    pieces += [(piece.piece, piece.score) for piece in model.pieces[3:]] + [("<mask>", 0.0)]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=3))
    tokenizer.normalizer = normalizers.Precompiled(model.normalizer_spec.precompiled_charsmap)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(),
                                                       pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>",
        special_tokens=[("<s>", 0), ("</s>", 2)])
    for special in specials + ["<mask>"]:
        tokenizer.add_special_tokens([tokenizers.AddedToken(special, special=True,
                                                            normalized=False)])
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>",
              "unk_token": "<unk>", "pad_token": "<pad>", "mask_token": "<mask>",
              "tokenizer_class": "XLMRobertaTokenizerFast", "clean_up_tokenization_spaces": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")
    if not keeps_file:
        path.unlink()


def save_tokenizer(folder, kind):
    specials = ["<|bos|>", "<|eos|>", "<|pad|>"]
    if kind == "wordpiece":
        save_wordpiece(folder)
        return
    if kind.startswith("unigram"):
        save_unigram(folder, kind == "unigram-file")
        return
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


def change_config(folder, settings):
    if not settings:
        return
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    for setting in settings:
        key, value = setting.split("=", 1)
        config[key] = json.loads(value)
    config = {key: value for key, value in config.items() if value is not None}
    path.write_text(json.dumps(config, indent=1), encoding="utf-8")


def convert(converter, folder, out_path, kind, outtype, reads_file=False, options=()):
    sys.path.insert(0, str(converter))
    sys.path.insert(0, str(converter / "gguf-py"))
    import convert_hf_to_gguf
    from conversion import base
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: PRE_NAMES[kind]
    if kind in PRE_NAMES:
        # Not the class of the model's type, which adds tokens that no file names.
        fast = transformers.PreTrainedTokenizerFast
        transformers.AutoTokenizer.from_pretrained = fast.from_pretrained
    if reads_file:
        # As the file says it, not as the library reads it.
        base.ModelBase.load_hparams = staticmethod(
            lambda path, is_mistral_format=False: json.loads((path / "config.json").read_text()))
    sys.argv = ["convert_hf_to_gguf.py", str(folder), "--outfile", str(out_path), "--outtype",
                outtype, *options]
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
    parser.add_argument("--auto", default="AutoModelForCausalLM")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--no-mtp", action="store_true")
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    config = make_golden.tiny_config(arguments.model_type, arguments.set)
    model = make_golden.random_model(config, arguments.seed, arguments.auto)
    model = model.to(getattr(torch, arguments.dtype))
    folder = arguments.out / arguments.name
    shutil.rmtree(folder, ignore_errors=True)
    shards = {"max_shard_size": arguments.shards} if arguments.shards else {}
    model.save_pretrained(folder, **shards)
    save_tokenizer(folder, arguments.tokenizer)
    if arguments.auto == "AutoModelForCausalLM":
        # Read again: rotary tables that were rounded with the weights are no part of the folder.
        model = transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager").eval()
        logits = make_golden.logits_of(model, TOKENS)
        logits.astype("<f4").tofile(arguments.out / f"{arguments.name}.f32")
    change_config(folder, arguments.config)
    convert(arguments.converter.resolve(), folder,
            (arguments.out / f"{arguments.name}.gguf").resolve(), arguments.tokenizer,
            arguments.outtype, reads_file=bool(arguments.config),
            options=["--no-mtp"] if arguments.no_mtp else [])


if __name__ == "__main__":
    main()
