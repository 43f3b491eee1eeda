#!/usr/bin/env python3
"""Makes the tiny folders of tests/fixtures/folders_more.tar.xz: models with states, Gemma's later
ones and encoders (NAME/), and the GGUF file that llama.cpp's converter makes of each (NAME.gguf).

  tools/make_state_folders.py --converter DIR --out DIR [NAME …]

Each is a process of its own, for the converter keeps what it saw in its classes.
"""
import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

import make_folder
import make_golden

SMALL = {"vocab_size": 384, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 512,
         "moe_intermediate_size": 16, "num_experts": 4, "num_local_experts": 4,
         "num_experts_per_tok": 2, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
         "head_dim": 8}
WINDOWS = ["sliding_attention", "full_attention"]
LINEAR = {"layer_types": ["linear_attention", "full_attention"], "linear_key_head_dim": 8,
          "linear_value_head_dim": 8, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
GRANITE = {"mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1, "mamba_d_state": 8}
SECTIONS = {"rope_theta": 10000.0, "partial_rotary_factor": 0.25, "rope_type": "default",
            "mrope_section": [11, 11, 10], "mrope_interleaved": True}
NEMOTRON = {"layers_block_type": ["linear_attention", "moe", "full_attention"], "ssm_state_size": 8,
            "mamba_num_heads": 4, "mamba_head_dim": 16, "n_groups": 2, "n_routed_experts": 4,
            "moe_shared_expert_intermediate_size": 24}
MULTIPLIERS = {"lm_head_multiplier": 0.5, "embedding_multiplier": 1.3, "key_multiplier": 0.8,
               "mlp_multipliers": [0.7, 0.9], "attention_in_multiplier": 1.1,
               "attention_out_multiplier": 0.6, "ssm_multipliers": [0.3, 0.4, 0.5, 0.6, 0.7],
               "ssm_in_multiplier": 1.25, "ssm_out_multiplier": 0.35}
XLM = {"pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}
NOMIC = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert", "causal": False,
         "activation_function": "swiglu", "prenorm": False, "qkv_proj_bias": False,
         "mlp_fc1_bias": False, "mlp_fc2_bias": False, "rotary_emb_fraction": 1.0,
         "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "rotary_emb_base": 1000,
         "n_embd": 32, "n_head": 4, "n_inner": 64, "n_layer": 2, "n_positions": 8192,
         "layer_norm_epsilon": 1e-12, "type_vocab_size": 2, "vocab_size": 384}


def publish_granite(config):
    names = {"linear_attention": "mamba", "full_attention": "attention"}
    types = [names.get(kind, kind) for kind in config["layer_types"]]
    return {**config, "layer_types": types}


def publish_nemotron(config):
    letters = {"linear_attention": "M", "full_attention": "*", "mlp": "-", "moe": "E"}
    pattern = "".join(letters[kind] for kind in config.pop("layers_block_type"))
    return {**config, "hybrid_override_pattern": pattern, "num_hidden_layers": len(pattern)}


def publish_modernbert(config):
    bases = config.pop("rope_parameters")
    config.pop("layer_types")
    return {**config, "global_attn_every_n_layers": 3, "layer_norm_eps": 1e-5,
            "global_rope_theta": bases["full_attention"]["rope_theta"],
            "local_rope_theta": bases["sliding_attention"]["rope_theta"]}


def finish_modernbert(folder):
    add_pooling(folder)
    path = folder / "tokenizer.json"
    tokenizer = json.loads(path.read_text())
    text, start, end = {"Sequence": {"id": "A", "type_id": 0}}, "<|bos|>", "<|eos|>"
    specials = [{"SpecialToken": {"id": name, "type_id": 0}} for name in (start, end)]
    other = {"Sequence": {"id": "B", "type_id": 0}}
    tokenizer["post_processor"] = {
        "type": "TemplateProcessing", "single": [specials[0], text, specials[1]],
        "pair": [specials[0], text, specials[1], other, specials[1]],
        "special_tokens": {name: {"id": name, "ids": [index], "tokens": [name]}
                           for index, name in enumerate((start, end))}}
    path.write_text(json.dumps(tokenizer))


def add_guesses(folder):
    """A layer that guesses a further token, which transformers drops."""
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for name in [name for name in tensors if name.startswith("model.layers.1.")]:
        tensors[name.replace("model.layers.1.", "mtp.layers.0.")] = tensors[name].clone()
    square = tensors["model.layers.1.self_attn.o_proj.weight"]
    tensors["mtp.fc.weight"] = torch.cat([square, square], 1).contiguous()
    for name in ("norm", "pre_fc_norm_embedding", "pre_fc_norm_hidden"):
        tensors[f"mtp.{name}.weight"] = tensors["model.norm.weight"].clone()
    save_file(tensors, path, metadata={"format": "pt"})
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), "mtp_num_hidden_layers": 1}
    path.write_text(json.dumps(config, indent=1))


def add_pooling(folder):
    kind = "sentence_transformers.models."
    modules = [{"idx": 0, "name": "0", "path": "", "type": kind + "Transformer"},
               {"idx": 1, "name": "1", "path": "1_Pooling", "type": kind + "Pooling"}]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": 32, "pooling_mode_cls_token": True}))


def add_dense(folder):
    """Two matrices behind the mean, in folders of their own; and the window as it is published."""
    kind = "sentence_transformers.models."
    names = ["", "1_Pooling", "2_Dense", "3_Dense", "4_Normalize"]
    modules = [{"idx": index, "name": str(index), "path": name,
                "type": kind + (name[2:] or "Transformer")} for index, name in enumerate(names)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True}))
    generator = torch.Generator().manual_seed(2)
    for name, shape in (("2_Dense", (48, 32)), ("3_Dense", (32, 48))):
        (folder / name).mkdir()
        matrix = torch.randn(shape, generator=generator)
        save_file({"linear.weight": matrix}, folder / name / "model.safetensors")
        (folder / name / "config.json").write_text(json.dumps(
            {"in_features": shape[1], "out_features": shape[0], "bias": False,
             "activation_function": "torch.nn.modules.linear.Identity"}))
    path = folder / "config.json"
    config = {**json.loads(path.read_text()), "sliding_window": 16}
    path.write_text(json.dumps(config, indent=1))


# Of each: transformers' model_type, what it is given, and a tokenizer of make_folder. `publish`
# writes config.json as published folders have it, `edit` changes the folder.
CASES = {
    "gemma3n-tiny": ("gemma3n_text", {
        "num_hidden_layers": 4, "num_kv_shared_layers": 2, "layer_types": WINDOWS * 2,
        "intermediate_size": [64] * 4, "activation_sparsity_pattern": [0.95, 0.95, 0.0, 0.0],
        "vocab_size": 400, "vocab_size_per_layer_input": 384, "hidden_size_per_layer_input": 8,
        "laurel_rank": 8, "sliding_window": 16}, "sentencepiece", {}),
    "gemma4-tiny": ("gemma4_text", {
        "vocab_size": 369, "num_hidden_layers": 4, "num_kv_shared_layers": 2,
        "layer_types": WINDOWS * 2, "vocab_size_per_layer_input": 369,
        "hidden_size_per_layer_input": 8, "global_head_dim": 16, "sliding_window": 16,
        "use_double_wide_mlp": True, "final_logit_softcapping": 30.0, "num_experts": None,
        "moe_intermediate_size": None, "num_global_key_value_heads": 1,
        "attention_k_eq_v": True}, "spaced", {}),
    "gemma4moe-tiny": ("gemma4_text", {
        "vocab_size": 369, "num_kv_shared_layers": 0, "layer_types": WINDOWS,
        "hidden_size_per_layer_input": 0, "global_head_dim": 16, "sliding_window": 16,
        "enable_moe_block": True, "top_k_experts": 2}, "spaced", {}),
    "mamba-tiny": ("mamba", {"state_size": 8, "time_step_rank": 2}, "gpt2", {}),
    "falcon-mamba-tiny": ("falcon_mamba", {"state_size": 8, "time_step_rank": 2}, "gpt2", {}),
    "mamba2-tiny": ("mamba2", {"vocab_size": 381, "state_size": 8, "num_heads": 4, "head_dim": 16,
                               "n_groups": 2}, "gpt2", {}),
    "jamba-tiny": ("jamba", {"attn_layer_period": 2, "attn_layer_offset": 1, "mamba_d_state": 8,
                             "mamba_dt_rank": 2}, "sentencepiece", {}),
    "falcon-h1-tiny": ("falcon_h1", {
        "head_dim": 8, "mamba_d_ssm": 48, "mamba_n_heads": 6, "mamba_d_head": 8,
        "mamba_n_groups": 2, "mamba_d_state": 8, "mamba_rms_norm": True, **MULTIPLIERS}, "gpt2",
        {"dtype": "bfloat16"}),
    "granitehybrid-tiny": ("granitemoehybrid", {
        "layer_types": ["mamba", "attention"], "shared_intermediate_size": 24, **GRANITE,
        "attention_multiplier": 0.25, "embedding_multiplier": 12.0, "residual_multiplier": 0.22,
        "logits_scaling": 6.0}, "gpt2", {"publish": publish_granite}),
    "granite-from-hybrid-tiny": ("granitemoehybrid", {
        "layer_types": ["attention", "attention"], "num_local_experts": 0,
        "num_experts_per_tok": 0, "shared_intermediate_size": 64, **GRANITE}, "gpt2",
        {"publish": publish_granite}),
    "nemotron-h-moe-tiny": ("nemotron_h", NEMOTRON, "gpt2", {"publish": publish_nemotron}),
    "lfm2-tiny": ("lfm2", {"layer_types": ["conv", "full_attention"], "block_multiple_of": 16,
                           "block_ffn_dim_multiplier": 1.5}, "gpt2", {}),
    "lfm2moe-tiny": ("lfm2_moe", {"layer_types": ["conv", "full_attention"],
                                  "num_dense_layers": 1}, "gpt2", {}),
    "qwen3next-tiny": ("qwen3_next", {**LINEAR, "shared_expert_intermediate_size": 24}, "qwen2",
                       {"dtype": "bfloat16", "options": ["--no-mtp"]}),
    "qwen35-tiny": ("qwen3_5_text", LINEAR, "qwen2", {"edit": add_guesses}),
    "qwen35moe-tiny": ("qwen3_5_moe_text", {
        **LINEAR, "shared_expert_intermediate_size": 24, "rope_parameters": SECTIONS}, "qwen2",
        {"options": ["--no-mtp"]}),
    "bert-tiny": ("bert", {}, "wordpiece", {"auto": "AutoModel", "edit": add_pooling}),
    "nomic-tiny": ("nomic_bert", {}, "wordpiece",
                   {"auto": "AutoModel", "publish": lambda config: NOMIC}),
    "modernbert-tiny": ("modernbert", {
        "num_hidden_layers": 4, "local_attention": 16, "sep_token_id": 1, "cls_token_id": 0,
        "classifier_pooling": "mean"}, "gpt2",
        {"auto": "AutoModel", "publish": publish_modernbert, "edit": finish_modernbert,
         "pre": "modern-bert"}),
    "gemma-embedding-tiny": ("gemma3_text", {
        "layer_types": WINDOWS, "use_bidirectional_attention": True, "sliding_window": 16},
        "sentencepiece", {"auto": "AutoModel", "edit": add_dense,
                          "options": ["--sentence-transformers-dense-modules"]}),
    "xlmr-tiny": ("xlm-roberta", XLM, "unigram-file", {"auto": "AutoModel"}),
    "xlmr-json-tiny": ("xlm-roberta", {**XLM, "num_labels": 1}, "unigram",
                       {"auto": "AutoModelForSequenceClassification"}),
}


def make(name, converter, out):
    model_type, settings, tokenizer, case = CASES[name]
    config_class = transformers.CONFIG_MAPPING[model_type]
    known = config_class().to_dict()
    fields = {key: value for key, value in SMALL.items() if key in known}
    config = config_class(**{**fields, **settings})
    folder = out / name
    shutil.rmtree(folder, ignore_errors=True)
    model = make_golden.random_model(config, 1, case.get("auto", "AutoModelForCausalLM"))
    model.to(getattr(torch, case.get("dtype", "float16"))).save_pretrained(folder)
    make_folder.save_tokenizer(folder, tokenizer)
    if "publish" in case:
        path = folder / "config.json"
        path.write_text(json.dumps(case["publish"](json.loads(path.read_text())), indent=1))
    if "edit" in case:
        case["edit"](folder)
    if "pre" in case:
        make_folder.PRE_NAMES[tokenizer] = case["pre"]
    make_folder.convert(converter, folder, out / f"{name}.gguf", tokenizer, "auto",
                        reads_file="publish" in case, options=case.get("options", ()))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--converter", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    converter, out = arguments.converter.resolve(), arguments.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    if len(arguments.names) == 1:
        make(arguments.names[0], converter, out)
        return
    for name in arguments.names or CASES:
        subprocess.run([sys.executable, __file__, name, "--converter", str(converter), "--out",
                        str(out)], check=True)
        print(name, flush=True)


if __name__ == "__main__":
    main()
