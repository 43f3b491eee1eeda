#!/usr/bin/env python3
"""Makes the tiny folders of tests/fixtures/folders.tar.xz that stand for one family each (NAME/),
and the GGUF file that llama.cpp's converter makes of each (NAME.gguf).

  tools/make_folders.py --converter DIR --out DIR [NAME …]

Two layers of 32 numbers: what is tested is names, hyperparameters and the order of rows. Where
transformers has no such model (EXAONE 3, Refact, MiniCPM 3, Baichuan, InternLM 2) the tensors are
written here, under their published names. Where the converter cannot read what transformers saves
today, the configuration is given what published files have: those cases say what.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import sys

import torch
import transformers
from safetensors.torch import load_file, save_file

import make_folder
import make_golden

SMALL = {
    "vocab_size": 384, "hidden_size": 32, "n_embd": 32, "d_model": 32,
    "num_hidden_layers": 2, "n_layer": 2, "n_layers": 2, "num_layers": 2,
    "num_attention_heads": 4, "n_head": 4, "n_heads": 4,
    "num_key_value_heads": 2, "num_kv_heads": 2,
    "intermediate_size": 48, "ffn_hidden_size": 128, "n_inner": 128,
    "max_position_embeddings": 512, "n_positions": 64, "max_seq_len": 512,
    "num_experts": 4, "num_local_experts": 4, "n_routed_experts": 4, "moe_num_experts": 4,
    "num_experts_per_tok": 2, "moe_k": 2, "moe_intermediate_size": 24,
    "first_k_dense_replace": 1, "n_shared_experts": 1,
    "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2,
}
SMALL_TEXT = {key: SMALL[key] for key in (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads",
    "intermediate_size", "max_position_embeddings", "bos_token_id", "eos_token_id", "pad_token_id")}
TEXT = dict(SMALL_TEXT, rope_scaling={
    "rope_type": "default", "mrope_section": [1, 2, 1], "rope_theta": 1e6})
VISION = {"depth": 1, "hidden_size": 32, "embed_dim": 32, "num_heads": 2, "intermediate_size": 48,
          "out_hidden_size": 32, "patch_size": 4}
PICTURES = dict(VISION, deepstack_visual_indexes=[0])
LATENT = {"kv_lora_rank": 16, "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8,
          "num_key_value_heads": 4}
YARN = {"type": "yarn", "factor": 40, "mscale": 1.0, "mscale_all_dim": 1.0, "beta_fast": 32,
        "beta_slow": 1, "original_max_position_embeddings": 128}
GLM_TOKENS = ["<|endoftext|>", "<|user|>", "[gMASK]", "<|observation|>"]
GATED = {"mlp.gate_proj.weight": [48, 32], "mlp.up_proj.weight": [48, 32],
         "mlp.down_proj.weight": [32, 48]}
NORMS = {"input_layernorm.weight": [32], "post_attention_layernorm.weight": [32]}
ENDS = {"model.embed_tokens.weight": [384, 32], "model.norm.weight": [32],
        "lm_head.weight": [384, 32]}


def add_slopes(tensors):
    slopes = torch.tensor([2.0 ** (-2 * (head + 1)) for head in range(4)])
    return {**tensors, "transformer.relative_pe.slopes": slopes}


def publish_experts(tensors):
    """As Qwen3-VL was published; transformers writes what it computes with."""
    return {name: tensor.transpose(1, 2) if ".mlp.experts." in name else tensor
            for name, tensor in tensors.items()}


def pack_experts(tensors):
    """Random blocks of MXFP4 and scales instead of the experts' matrices."""
    generator, packed = torch.Generator().manual_seed(2), {}
    for name, tensor in tensors.items():
        if not name.endswith(("experts.gate_up_proj", "experts.down_proj")):
            packed[name] = tensor
            continue
        experts, columns, rows = tensor.shape
        shape = (experts, rows, columns // 32)
        packed[name + "_blocks"] = torch.randint(0, 256, (*shape, 16), generator=generator,
                                                 dtype=torch.uint8)
        packed[name + "_scales"] = torch.randint(118, 124, shape, generator=generator,
                                                 dtype=torch.uint8)
    return packed


def add_prediction(tensors):
    """A layer behind the last that predicts a token further on; transformers drops it."""
    more = {name.replace(".layers.1.", ".layers.2."): tensor / 2
            for name, tensor in tensors.items() if ".layers.1." in name}
    norm, table = tensors["model.norm.weight"], tensors["model.embed_tokens.weight"]
    square = tensors["model.layers.1.self_attn.o_proj.weight"]
    for part, tensor in {"eh_proj": torch.cat([square, square], 1), "embed_tokens": table / 2,
                         "enorm": norm / 2, "hnorm": norm / 4, "shared_head.head": table / 4,
                         "shared_head.norm": norm / 8}.items():
        more[f"model.layers.2.{part}.weight"] = tensor
    return {**tensors, **more}


def layers(prefix, tensors):
    return {f"{prefix}.{layer}.{name}": shape
            for layer in range(2) for name, shape in tensors.items()}


# Of each: `type` (transformers' model_type) and `set`, or `config` and `shapes`; `also` goes into
# config.json afterwards, `edit` changes tensors; `tokenizer` and `pre` as in make_folder.
CASES = {
    "phimoe": {"type": "phimoe", "class": "PhiMoEForCausalLM", "tokenizer": "sentencepiece",
               "set": {"sliding_window": 512}, "also": {"original_max_position_embeddings": 512}},
    "gpt2": {"type": "gpt2", "also": {"n_ctx": 64}},
    "gptneox": {"type": "gpt_neox", "also": {"rotary_pct": 0.25}},
    "starcoder": {"type": "gpt_bigcode", "tokenizer": "digits", "pre": "starcoder"},
    "falcon": {"type": "falcon", "set": {"new_decoder_architecture": True}},
    "falcon_7b": {"type": "falcon", "set": {"num_kv_heads": 1}},
    "bloom": {"type": "bloom"},
    "mpt": {"type": "mpt", "class": "MPTForCausalLM", "pre": "mpt"},
    "dbrx": {"type": "dbrx", "set": {
        "attn_config": {"kv_n_heads": 2, "clip_qkv": 8, "rope_theta": 5e5},
        "ffn_config": {"ffn_hidden_size": 24, "moe_num_experts": 4, "moe_top_k": 2,
                       "hidden_size": 32}}},
    "command_r": {"type": "cohere", "tokenizer": "digits", "pre": "command-r",
                  "set": {"use_qk_norm": True}},
    "cohere2": {"type": "cohere2", "tokenizer": "digits", "pre": "command-r",
                "set": {"head_dim": 8, "sliding_window": 64}, "also": {"rotary_pct": 1.0}},
    "nemotron": {"type": "nemotron", "tokenizer": "sentencepiece", "set": {"head_dim": 8}},
    "arcee": {"type": "arcee", "tokenizer": "llama3"},
    "exaone4": {"type": "exaone4", "pre": "exaone4",
                "set": {"sliding_window": 64, "sliding_window_pattern": 4}},
    "glm4": {"type": "glm4", "tokenizer": "llama3", "pre": "glm4", "tokens": GLM_TOKENS,
             "set": {"head_dim": 8}},
    "glm4moe": {"type": "glm4_moe", "tokenizer": "llama3", "pre": "glm4", "tokens": GLM_TOKENS,
                "set": {"head_dim": 8, "use_qk_norm": True}, "edit": add_prediction},
    "ernie4_5": {"type": "ernie4_5", "tokenizer": "sentencepiece", "set": {"head_dim": 8}},
    "ernie4_5_moe": {"type": "ernie4_5_moe", "tokenizer": "sentencepiece",
                     "set": {"moe_layer_start_index": 1, "moe_num_shared_experts": 1}},
    "hunyuan_dense": {"type": "hunyuan_v1_dense", "set": {
        "head_dim": 8, "max_position_embeddings": 32768, "tie_word_embeddings": True,
        "rope_scaling": {"type": "dynamic", "alpha": 1000.0, "factor": 1.0}}},
    "dots1": {"type": "dots1", "tokenizer": "qwen2"},
    "minimax_m2": {"type": "minimax_m2", "set": {"head_dim": 8, "rotary_dim": 4},
                   "also": {"scoring_func": "sigmoid"}},
    "seed_oss": {"type": "seed_oss", "set": {"head_dim": 8}},
    "ministral3": {"type": "ministral3", "class": "Ministral3ForCausalLM", "set": {"head_dim": 8}},
    "mistral3": {"type": "mistral3", "set": {
        "text_config": dict(SMALL_TEXT, model_type="ministral3", head_dim=8),
        "vision_config": {"model_type": "pixtral", "hidden_size": 32, "num_hidden_layers": 1,
                          "num_attention_heads": 2, "intermediate_size": 48, "patch_size": 14,
                          "image_size": 28}}},
    # More than ten heads: their numbers are not in the order of their names.
    "stablelm_heads": {"type": "stablelm", "set": {
        "qk_layernorm": True, "num_attention_heads": 12, "hidden_size": 96,
        "num_hidden_layers": 1}},
    "deepseek2": {"type": "deepseek_v2", "set": dict(
        LATENT, q_lora_rank=None, topk_method="greedy", n_group=1, topk_group=1)},
    "deepseek3": {"type": "deepseek_v3", "set": dict(
        LATENT, q_lora_rank=12, n_group=2, topk_group=1, rope_scaling=YARN),
        "also": {"scoring_func": "sigmoid"}, "edit": add_prediction},
    "qwen2vl": {"type": "qwen2_vl", "tokenizer": "qwen2",
                "set": {"text_config": TEXT, "vision_config": VISION}},
    "qwen3vl": {"type": "qwen3_vl", "tokenizer": "qwen2",
                "set": {"text_config": dict(TEXT, head_dim=8), "vision_config": PICTURES}},
    "qwen3vlmoe": {"type": "qwen3_vl_moe", "tokenizer": "qwen2", "edit": publish_experts, "set": {
        "text_config": dict(TEXT, head_dim=8, num_experts=4, num_experts_per_tok=2,
                            moe_intermediate_size=24), "vision_config": PICTURES}},
    "llama4": {"type": "llama4_text", "class": "Llama4ForCausalLM", "pre": "gpt-2", "set": {
        "head_dim": 8, "intermediate_size_mlp": 64, "intermediate_size": 24,
        "interleave_moe_layer_step": 2}},
    "gpt_oss": {"type": "gpt_oss", "edit": pack_experts,
                "set": {"head_dim": 8, "sliding_window": 64, "intermediate_size": 64},
                "also": {"quantization_config": {"quant_method": "mxfp4"}}},
    "gpt_oss_f16": {"type": "gpt_oss", "set": {"head_dim": 8, "sliding_window": 64}},
    "exaone": {
        "tokenizer": "digits", "pre": "exaone",
        "config": {"architectures": ["ExaoneForCausalLM"], "model_type": "exaone",
                   "activation_function": "silu", "hidden_size": 32, "num_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8,
                   "intermediate_size": 48, "layer_norm_epsilon": 1e-5,
                   "max_position_embeddings": 512, "rope_theta": 1e6},
        "shapes": {"transformer.wte.weight": [384, 32], "transformer.ln_f.weight": [32],
                   "lm_head.weight": [384, 32], **layers("transformer.h", {
                       "ln_1.weight": [32], "ln_2.weight": [32],
                       "attn.attention.q_proj.weight": [32, 32],
                       "attn.attention.k_proj.weight": [16, 32],
                       "attn.attention.v_proj.weight": [16, 32],
                       "attn.attention.out_proj.weight": [32, 32],
                       "mlp.c_fc_0.weight": [48, 32], "mlp.c_fc_1.weight": [48, 32],
                       "mlp.c_proj.weight": [32, 48]})}},
    "refact": {
        "tokenizer": "digits", "pre": "refact",
        "config": {"architectures": ["GPTRefactForCausalLM"], "model_type": "gpt_refact",
                   "n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 512,
                   "layer_norm_epsilon": 1e-5},
        "shapes": {"transformer.wte.weight": [384, 32], "ln_f.weight": [32],
                   "lm_head.weight": [384, 32], **layers("transformer.h", {
                       "ln_1.weight": [32], "ln_2.weight": [32], "attn.q.weight": [32, 32],
                       "attn.kv.weight": [16, 32], "attn.c_proj.weight": [32, 32],
                       "mlp.gate_up_proj.weight": [512, 32], "mlp.c_proj.weight": [32, 256]})}},
    "jais": {
        "pre": "jais",
        "config": {"architectures": ["JAISLMHeadModel"], "model_type": "jais", "n_embd": 32,
                   "n_head": 4, "n_layer": 2, "n_inner": 48, "n_positions": 512,
                   "layer_norm_epsilon": 1e-5, "activation_function": "swiglu",
                   "position_embedding_type": "alibi", "scale_qk_dot_by_d": True,
                   "mup_embeddings_scale": 14.6, "mup_output_alpha": 2.22,
                   "mup_width_scale": 0.125},
        "shapes": {"transformer.wte.weight": [384, 32], "transformer.ln_f.weight": [32],
                   "transformer.ln_f.bias": [32], "lm_head.weight": [384, 32],
                   "transformer.relative_pe.slopes": [4], **layers("transformer.h", {
                       "ln_1.weight": [32], "ln_1.bias": [32], "ln_2.weight": [32],
                       "ln_2.bias": [32], "attn.c_attn.weight": [32, 96],
                       "attn.c_attn.bias": [96], "attn.c_proj.weight": [32, 32],
                       "attn.c_proj.bias": [32], "mlp.c_fc.weight": [32, 48],
                       "mlp.c_fc.bias": [48], "mlp.c_fc2.weight": [32, 48],
                       "mlp.c_fc2.bias": [48], "mlp.c_proj.weight": [48, 32],
                       "mlp.c_proj.bias": [32]})},
        "edit": add_slopes, "options": ["--no-lazy"]},
    "minicpm3": {
        "tokenizer": "sentencepiece",
        "config": dict(LATENT, architectures=["MiniCPM3ForCausalLM"], model_type="minicpm3",
                       hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
                       intermediate_size=48, rms_norm_eps=1e-5, max_position_embeddings=512,
                       q_lora_rank=12, rope_scaling={
                           "type": "longrope", "long_factor": [1.5, 2.25],
                           "short_factor": [1.0, 1.25], "original_max_position_embeddings": 64}),
        "shapes": {**ENDS, **layers("model.layers", {
            **NORMS, **GATED, "self_attn.q_a_proj.weight": [12, 32],
            "self_attn.q_a_layernorm.weight": [12], "self_attn.q_b_proj.weight": [48, 12],
            "self_attn.kv_a_proj_with_mqa.weight": [20, 32],
            "self_attn.kv_a_layernorm.weight": [16], "self_attn.kv_b_proj.weight": [64, 16],
            "self_attn.o_proj.weight": [32, 32]})}},
    "baichuan": {
        "tokenizer": "sentencepiece",
        "config": {"architectures": ["BaichuanForCausalLM"], "model_type": "baichuan",
                   "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
                   "intermediate_size": 48, "rms_norm_eps": 1e-6, "max_position_embeddings": 512,
                   "model_max_length": 512},
        "shapes": {**ENDS, **layers("model.layers", {
            **NORMS, **GATED, "self_attn.W_pack.weight": [96, 32],
            "self_attn.o_proj.weight": [32, 32]})}},
    # As many tokens as tokenizer.model has pieces.
    "internlm2": {
        "tokenizer": "sentencepiece",
        "config": {"architectures": ["InternLM2ForCausalLM"], "model_type": "internlm2",
                   "vocab_size": 344, "bias": False, "hidden_size": 32, "num_hidden_layers": 2,
                   "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
                   "rms_norm_eps": 1e-5, "max_position_embeddings": 512, "rope_theta": 1000000},
        "shapes": {"model.tok_embeddings.weight": [344, 32], "model.norm.weight": [32],
                   "output.weight": [344, 32], **layers("model.layers", {
                       "attention_norm.weight": [32], "ffn_norm.weight": [32],
                       "attention.wqkv.weight": [64, 32], "attention.wo.weight": [32, 32],
                       "feed_forward.w1.weight": [48, 32], "feed_forward.w3.weight": [48, 32],
                       "feed_forward.w2.weight": [32, 48]})}},
}


def save_model(case, folder):
    config_class = transformers.CONFIG_MAPPING[case["type"]]
    known = config_class().to_dict()
    fields = {key: value for key, value in SMALL.items() if key in known}
    config = config_class(**{**fields, **case.get("set", {})})
    auto = (transformers.AutoModelForImageTextToText if "vision_config" in known
            else transformers.AutoModelForCausalLM)
    model = auto.from_config(config, attn_implementation="eager").to(torch.float32)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            make_golden.fill(parameter, name, generator)
        for name, buffer in model.named_buffers():
            if name.endswith("correction_bias"):
                make_golden.fill(buffer, name, generator)
    model.to(torch.float16).save_pretrained(folder)
    if "class" in case:
        make_golden.rename_class(folder, case["class"])


def write_model(case, folder):
    folder.mkdir(parents=True)
    generator, tensors = torch.Generator().manual_seed(1), {}
    for name, shape in case["shapes"].items():
        is_gain = "norm" in name or "ln_" in name
        tensors[name] = torch.ones(shape) if is_gain else torch.zeros(shape)
        make_golden.fill(tensors[name], name, generator)
        tensors[name] = tensors[name].to(torch.float16)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2, "vocab_size": 384}
    (folder / "config.json").write_text(json.dumps({**config, **case["config"]}, indent=2))


def finish_folder(case, folder):
    make_folder.save_tokenizer(folder, case.get("tokenizer", "gpt2"))
    if "tokens" in case:
        fast = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
        fast.add_tokens([transformers.AddedToken(text, special=True) for text in case["tokens"]])
        fast.save_pretrained(folder)
    if "also" in case:
        path = folder / "config.json"
        config = {**json.loads(path.read_text()), **case["also"]}
        path.write_text(json.dumps(config, indent=2))
    if "edit" in case:
        path = folder / "model.safetensors"
        edited = {name: tensor.clone().contiguous()
                  for name, tensor in case["edit"](load_file(path)).items()}
        save_file(edited, path, metadata={"format": "pt"})


@contextlib.contextmanager
def amended_converter(converter):
    """What published files say and transformers drops is there; Baichuan's plain tensors are named
    once (the converter names them without end); StableLM's norms of heads are not lost."""
    sys.path[:0] = [str(converter), str(converter / "gguf-py")]
    from conversion import baichuan, base, stablelm
    load, modify = base.ModelBase.load_hparams, baichuan.BaichuanModel.modify_tensors
    modify_other = stablelm.StableLMModel.modify_tensors
    norms = {}

    def load_all(folder, is_mistral_format):
        said = json.loads((pathlib.Path(folder) / "config.json").read_text())
        known = load(folder, is_mistral_format)
        return {**{key: said[key] for key in ("rotary_pct",) if key in said}, **known}

    def modify_once(self, tensor, name, layer):
        whole = modify if "W_pack" in name else base.TextModel.modify_tensors
        return whole(self, tensor, name, layer)

    def modify_norms(self, tensor, name, layer):
        found = re.search(r"([qk])_layernorm\.norms", name)
        if not found:
            yield from modify_other(self, tensor, name, layer)
            return
        key = {"q": "num_attention_heads", "k": "num_key_value_heads"}[found[1]]
        gathered = norms.setdefault((found[1], layer), {})
        gathered[name] = tensor
        if len(gathered) == self.hparams[key]:
            yield from self._stack_qk_norm(layer, self.hparams[key], gathered,
                                           f"{found[1]}_layernorm")

    base.ModelBase.load_hparams = staticmethod(load_all)
    stablelm.StableLMModel.modify_tensors = modify_norms
    baichuan.BaichuanModel.modify_tensors = modify_once
    yield


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--converter", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    arguments.out.mkdir(parents=True, exist_ok=True)
    pre_names = dict(make_folder.PRE_NAMES)
    with amended_converter(arguments.converter.resolve()):
        for name in arguments.names or CASES:
            case, folder = CASES[name], arguments.out / name
            shutil.rmtree(folder, ignore_errors=True)
            (write_model if "shapes" in case else save_model)(case, folder)
            finish_folder(case, folder)
            kind = case.get("tokenizer", "gpt2")
            make_folder.PRE_NAMES.update(pre_names)
            if "pre" in case:
                make_folder.PRE_NAMES[kind] = case["pre"]
            make_folder.convert(arguments.converter.resolve(), folder,
                                (arguments.out / f"{name}.gguf").resolve(), kind, "auto",
                                options=case.get("options", ()))
            print(name, flush=True)


if __name__ == "__main__":
    main()
