#!/usr/bin/env python3
"""Makes a golden case: a tiny model of a transformers architecture with random weights, as a GGUF
file, and what transformers (float32, eager attention) answers.

  tools/make_golden.py NAME MODEL_TYPE --converter DIR --out DIR [--set KEY=VALUE …]
                       [--lengths N,N,…] [--seed N] [--class NAME] [--config KEY=VALUE …]
                       [--rename PATTERN=NAME …]

MODEL_TYPE is what config.json calls model_type. --converter is a checkout of llama.cpp (its folder
with convert_hf_to_gguf.py), so that names and metadata are those of files that people have; --class
is what published configurations call the model, where transformers writes another name; --config
and --rename do the same for fields of config.json and for names of tensors (a regular expression).
Needs torch and transformers from PyPI. docs/adding-an-architecture.md goes through an example.
"""
import argparse
import contextlib
import json
import math
import os
import pathlib
import re
import sys
import tempfile

import numpy
import torch
import transformers

VOCABULARY = 384
GREEDY_TOKENS = 24

# What makes a model tiny, under all the names that configurations have for it. Heads are an even
# number and wider than a vector's few lanes; groups, experts and ranks are all different numbers.
TINY = {
    "vocab_size": VOCABULARY, "hidden_size": 64, "n_embd": 64, "d_model": 64,
    "num_hidden_layers": 4, "n_layer": 4, "n_layers": 4, "num_layers": 4,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4,
    "num_key_value_heads": 2, "num_kv_heads": 2,
    "intermediate_size": 160, "ffn_hidden_size": 160, "n_inner": 160,
    "max_position_embeddings": 512, "n_positions": 512, "max_sequence_length": 512,
    "num_experts": 8, "num_local_experts": 8, "n_routed_experts": 8, "moe_num_experts": 8,
    "num_experts_per_tok": 3, "moe_k": 3, "moe_intermediate_size": 48,
    "shared_expert_intermediate_size": 96, "first_k_dense_replace": 1, "n_shared_experts": 1,
    "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
}

TEXT = ("The weather in the mountains changes quickly: one hour the sun is out, the next there is "
        "rain. Walkers mark the way with small heaps of stones, called cairns, so that others find "
        "it again in fog. A marker that is moved leads people astray. 0 1 2 3 4 5 6 7 8 9 + - = ")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("model_type")
    parser.add_argument("--converter", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE",
                        help="a field of the configuration; the value is JSON")
    parser.add_argument("--lengths", default="1,7,80",
                        help="of the sequences; greedy decoding goes on from the second")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--class", dest="class_name", help="of the model, for the converter")
    parser.add_argument("--config", action="append", default=[], metavar="KEY=VALUE",
                        help="a field of the saved configuration; the value is JSON")
    parser.add_argument("--rename", action="append", default=[], metavar="PATTERN=NAME",
                        help="of saved tensors, for the converter")
    return parser.parse_args()


def tiny_config(model_type, settings):
    config_class = transformers.CONFIG_MAPPING[model_type]
    known = config_class().to_dict()
    fields = {key: value for key, value in TINY.items() if key in known}
    for setting in settings:
        key, value = setting.split("=", 1)
        fields[key] = json.loads(value)
    return config_class(**fields)


def on_grid(values, deviation):
    """Few different numbers, all of them exact in f16: files compress, and nothing is rounded."""
    step = 2.0 ** math.floor(math.log2(deviation / 4))
    limit = math.floor(3 * deviation / step)
    return torch.clamp(torch.round(values * deviation / step), -limit, limit) * step


def fill(tensor, name, generator):
    values = torch.randn(tensor.shape, generator=generator)
    if tensor.dim() >= 2:
        is_table = any(part in name for part in ("embed", "wte", "wpe"))
        tensor.copy_(on_grid(values, 1.0 if is_table else 1.2 / math.sqrt(tensor.shape[-1])))
    elif bool((tensor == 1).all()):
        tensor.copy_(1 + 0.15 * values)  # A gain.
    else:
        tensor.copy_(0.15 * values)  # A bias, or a gain that is kept less one.


def random_model(config, seed, auto_class="AutoModelForCausalLM"):
    model = getattr(transformers, auto_class).from_config(config, attn_implementation="eager")
    model = model.to(torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            fill(parameter, name, generator)
        for name, buffer in model.named_buffers():
            if name.endswith(("correction_bias", "expert_bias")):
                fill(buffer, name, generator)
    return model


def make_as_published(folder, arguments):
    path = pathlib.Path(folder) / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    if arguments.class_name:
        config["architectures"] = [arguments.class_name]
    for setting in arguments.config:
        key, value = setting.split("=", 1)
        config[key] = json.loads(value)
    path.write_text(json.dumps(config), encoding="utf-8")
    if not arguments.rename:
        return
    from safetensors.torch import load_file, save_file
    weights = pathlib.Path(folder) / "model.safetensors"
    tensors = load_file(weights)
    for setting in arguments.rename:
        pattern, name = setting.split("=", 1)
        tensors = {re.sub(pattern, name, key): value for key, value in tensors.items()}
    save_file(tensors, weights)


def save_tokenizer(folder, token_count=VOCABULARY - 16):
    import tokenizers
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    specials = ["<|bos|>", "<|eos|>", "<|pad|>"]
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=token_count, special_tokens=specials,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator([TEXT], trainer)
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token=specials[0], eos_token=specials[1],
        pad_token=specials[2])
    fast.save_pretrained(folder)


def convert(converter, folder, out_path, is_byte_level=True, options=()):
    """Runs the converter in this process. It knows tokenizers by what they make of a text, and
    cannot know this one: it is told, and, unless told otherwise, that it is a byte-level one
    whatever the model has."""
    sys.path.insert(0, str(converter))
    sys.path.insert(0, str(converter / "gguf-py"))
    import convert_hf_to_gguf
    from conversion import base
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: "gpt-2"
    get_class = convert_hf_to_gguf.get_model_class

    def with_byte_level_tokenizer(*arguments, **keywords):
        found = get_class(*arguments, **keywords)
        found.set_vocab = lambda self: self._set_vocab_gpt2()
        return found

    if is_byte_level:
        convert_hf_to_gguf.get_model_class = with_byte_level_tokenizer
    sys.argv = ["convert_hf_to_gguf.py", str(folder), "--outfile", str(out_path), "--outtype",
                "f16", *options]
    with contextlib.redirect_stdout(sys.stderr):
        convert_hf_to_gguf.main()


def logits_of(model, ids):
    with torch.no_grad():
        return model(input_ids=torch.tensor([ids]), use_cache=False).logits[0].float().numpy()


def greedy(model, prompt):
    ids, margin = list(prompt), math.inf
    for _ in range(GREEDY_TOKENS):
        last = logits_of(model, ids)[-1]
        second, best = numpy.sort(last)[-2:]
        margin = min(margin, float(best - second))
        ids.append(int(last.argmax()))
    return {"prompt": list(prompt), "tokens": ids[len(prompt):], "min_margin": margin}


def main():
    arguments = parse_arguments()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    config = tiny_config(arguments.model_type, arguments.set)
    model = random_model(config, arguments.seed)
    random = numpy.random.default_rng(arguments.seed)
    sequences = [random.integers(3, VOCABULARY, int(length)).tolist()
                 for length in arguments.lengths.split(",")]
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / arguments.name
    logits = [logits_of(model, ids) for ids in sequences]
    case = {"model": f"{arguments.name}.gguf", "logits": f"{arguments.name}.f32",
            "n_vocab": VOCABULARY,
            "reference": f"transformers {type(model).__name__}, float32, eager attention",
            "sequences": sequences, "greedy": greedy(model, sequences[1])}
    numpy.concatenate(logits).astype("<f4").tofile(path.with_suffix(".f32"))
    path.with_suffix(".json").write_text(json.dumps(case) + "\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        make_as_published(folder, arguments)
        save_tokenizer(folder)
        convert(arguments.converter.resolve(), folder, path.with_suffix(".gguf").resolve())
    deviation = float(numpy.concatenate(logits).std())
    print(f"{arguments.name}: logits have a deviation of {deviation:.2f}; the closest greedy "
          f"choice was decided by {case['greedy']['min_margin']:.4f}")


if __name__ == "__main__":
    main()
