#!/usr/bin/env python3
"""Writes what a predicting layer (multi-token prediction) should compute, by numpy in f64.

    make_predictor_reference.py FIXTURES OUT.json

FIXTURES has folders/glm4moe.gguf, folders/qwen35-tiny.gguf and golden/deepseek3.gguf, unpacked.
The formula is that of the models' papers, written here once more, from the file's tensors alone;
the hidden rows that are handed in are made up: row i, column j is sin(0.7 i + 1.3 j). The last file
has no such layer: it is the last one again, behind norms that are the model's last one and a
projection whose row i, column j is sin(0.37 i + 0.91 j) / 8 (tests/engine/predicting_model.h makes
the same). Needs numpy and gguf (PyPI).
"""

import json
import math
import sys
from pathlib import Path

import numpy
from gguf import GGUFReader

TOKENS = [(37 * i + 11) % 384 for i in range(9)]
SHOWN = range(5, 384, 24)  # Of each row's logits.


class File:
    def __init__(self, path: Path) -> None:
        reader = GGUFReader(path)
        self.tensors = {tensor.name: numpy.array(tensor.data, dtype=numpy.float64)
                        for tensor in reader.tensors}
        self.fields = {name: field.contents() for name, field in reader.fields.items()}
        self.architecture = self.fields["general.architecture"]
        self.layer = self["block_count"] - 1

    def __getitem__(self, key: str):
        return self.fields[f"{self.architecture}.{key}"]

    def own(self, name: str) -> numpy.ndarray | None:
        return self.tensors.get(f"blk.{self.layer}.{name}")

    def add_predictor(self) -> None:
        last = self.tensors["output_norm.weight"]
        width = len(last)
        for name in ("enorm", "hnorm", "shared_head_norm"):
            self.tensors[f"blk.{self.layer}.nextn.{name}.weight"] = last
        rows, columns = numpy.arange(width)[:, None], numpy.arange(2 * width)
        projection = (numpy.sin(0.37 * rows + 0.91 * columns) / 8).astype(numpy.float32)
        self.tensors[f"blk.{self.layer}.nextn.eh_proj.weight"] = projection.astype(numpy.float64)


def normed(x: numpy.ndarray, gain: numpy.ndarray, epsilon: float) -> numpy.ndarray:
    return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + epsilon) * gain


def sigmoid(x: numpy.ndarray) -> numpy.ndarray:
    return 1 / (1 + numpy.exp(-x))


def rotated(x: numpy.ndarray, dims: int, base: float) -> numpy.ndarray:
    """x: [tokens, heads, dim]; the pairs are (i, i + dims / 2)."""
    half = dims // 2
    angles = numpy.arange(x.shape[0])[:, None] * base ** (-2 * numpy.arange(half) / dims)
    cos, sin = numpy.cos(angles)[:, None], numpy.sin(angles)[:, None]
    a, b = x[..., :half], x[..., half:dims]
    return numpy.concatenate([a * cos - b * sin, b * cos + a * sin, x[..., dims:]], -1)


def rotated_pairs(x: numpy.ndarray, base: float) -> numpy.ndarray:
    """The same where pairs are (2 i, 2 i + 1), of all dims."""
    halves = numpy.concatenate([x[..., 0::2], x[..., 1::2]], -1)
    turned = rotated(halves, x.shape[-1], base)
    half = x.shape[-1] // 2
    return numpy.stack([turned[..., :half], turned[..., half:]], -1).reshape(x.shape)


def attended(q: numpy.ndarray, k: numpy.ndarray, v: numpy.ndarray) -> numpy.ndarray:
    """q: [tokens, heads, dim]; k and v: [tokens, groups, dim]."""
    tokens, heads, dim = q.shape
    out = numpy.zeros_like(q)
    for head in range(heads):
        group = head * k.shape[1] // heads
        for token in range(tokens):
            scores = k[:token + 1, group] @ q[token, head] / math.sqrt(dim)
            weights = numpy.exp(scores - scores.max())
            out[token, head] = weights / weights.sum() @ v[:token + 1, group]
    return out.reshape(tokens, heads * dim)


def mlp(x: numpy.ndarray, gate: numpy.ndarray, up: numpy.ndarray,
        down: numpy.ndarray) -> numpy.ndarray:
    g = x @ gate.T
    return (g * sigmoid(g) * (x @ up.T)) @ down.T


def attention(file: File, x: numpy.ndarray, epsilon: float) -> numpy.ndarray:
    heads, groups = file["attention.head_count"], file["attention.head_count_kv"]
    dim, count = file["attention.key_length"], x.shape[0]
    q = (x @ file.own("attn_q.weight").T).reshape(count, heads, -1)
    k = (x @ file.own("attn_k.weight").T).reshape(count, groups, dim)
    v = (x @ file.own("attn_v.weight").T).reshape(count, groups, dim)
    q, gate = q[..., :dim], q[..., dim:]  # Behind each head's query, in Qwen 3.5.
    q = normed(q, file.own("attn_q_norm.weight"), epsilon)
    k = normed(k, file.own("attn_k_norm.weight"), epsilon)
    dims, base = file["rope.dimension_count"], file["rope.freq_base"]
    out = attended(rotated(q, dims, base), rotated(k, dims, base), v)
    if gate.size > 0:
        out = out * sigmoid(gate.reshape(out.shape))
    return out @ file.own("attn_output.weight").T


def latent_attention(file: File, x: numpy.ndarray, epsilon: float) -> numpy.ndarray:
    heads, count = file["attention.head_count"], x.shape[0]
    latent_dim, dims = file["attention.kv_lora_rank"], file["rope.dimension_count"]
    dim, base = file["attention.key_length_mla"], file["rope.freq_base"]
    low = normed(x @ file.own("attn_q_a.weight").T, file.own("attn_q_a_norm.weight"), epsilon)
    q = (low @ file.own("attn_q_b.weight").T).reshape(count, heads, dim)
    row = x @ file.own("attn_kv_a_mqa.weight").T
    latent = normed(row[:, :latent_dim], file.own("attn_kv_a_norm.weight"), epsilon)
    key = rotated_pairs(row[:, None, latent_dim:], base)[:, 0]
    q_rotated = rotated_pairs(q[..., dim - dims:], base)
    out = []
    for head in range(heads):
        keys = latent @ file.own("attn_k_b.weight")[head]
        values = latent @ file.own("attn_v_b.weight")[head].T
        scores = (q[:, head, :dim - dims] @ keys.T + q_rotated[:, head] @ key.T) / math.sqrt(dim)
        scores[numpy.triu_indices(count, 1)] = -numpy.inf
        weights = numpy.exp(scores - scores.max(-1, keepdims=True))
        out.append(weights / weights.sum(-1, keepdims=True) @ values)
    return numpy.concatenate(out, -1) @ file.own("attn_output.weight").T


def in_chosen_groups(file: File, scores: numpy.ndarray) -> numpy.ndarray:
    """Scores of the experts of the best groups, by the sum of each one's best two."""
    groups = file["expert_group_count"]
    parts = scores.reshape(groups, -1)
    worth = numpy.sort(parts, -1)[:, -2:].sum(-1)
    lost = numpy.argsort(-worth, kind="stable")[file["expert_group_used_count"]:]
    parts = parts.copy()
    parts[lost] = -numpy.inf
    return parts.reshape(-1)


def experts(file: File, x: numpy.ndarray) -> numpy.ndarray:
    names = [f"ffn_{name}" for name in ("gate", "up", "down")]
    out = mlp(x, *(file.own(f"{name}_shexp.weight") for name in names))
    scores = sigmoid(x @ file.own("ffn_gate_inp.weight").T)
    for token, own in enumerate(scores):
        wanted = in_chosen_groups(file, own + file.own("exp_probs_b.bias"))
        order = numpy.argsort(-wanted, kind="stable")
        chosen = order[:file["expert_used_count"]]
        for expert in chosen:
            part = own[expert] / own[chosen].sum() * file["expert_weights_scale"]
            out[token] += part * mlp(x[token], *(file.own(f"{name}_exps.weight")[expert]
                                                 for name in names))
    return out


def logits(file: File) -> numpy.ndarray:
    epsilon, width = file["attention.layer_norm_rms_epsilon"], file["embedding_length"]
    given = numpy.array([[math.sin(0.7 * i + 1.3 * j) for j in range(width)]
                         for i in range(len(TOKENS))], dtype=numpy.float32).astype(numpy.float64)
    table = file.own("nextn.embed_tokens.weight")
    table = file.tensors["token_embd.weight"] if table is None else table
    head = file.own("nextn.shared_head_head.weight")
    head = file.tensors["output.weight"] if head is None else head
    both = [normed(table[TOKENS], file.own("nextn.enorm.weight"), epsilon),
            normed(given, file.own("nextn.hnorm.weight"), epsilon)]
    x = numpy.concatenate(both, -1) @ file.own("nextn.eh_proj.weight").T
    is_latent = file.own("attn_kv_a_mqa.weight") is not None
    attend = latent_attention if is_latent else attention
    x = x + attend(file, normed(x, file.own("attn_norm.weight"), epsilon), epsilon)
    m = normed(x, file.own("ffn_norm.weight" if is_latent else "post_attention_norm.weight"),
               epsilon)
    if file.own("ffn_gate_inp.weight") is not None:
        x = x + experts(file, m)
    else:
        x = x + mlp(m, *(file.own(f"ffn_{name}.weight") for name in ("gate", "up", "down")))
    return normed(x, file.own("nextn.shared_head_norm.weight"), epsilon) @ head.T


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    models = {}
    for name in ("folders/glm4moe", "folders/qwen35-tiny", "golden/deepseek3"):
        file = File(Path(sys.argv[1]) / f"{name}.gguf")
        name = name.split("/")[1]
        if name == "deepseek3":
            file.add_predictor()
        rows = logits(file)
        models[name] = {"deviation": round(float(rows.std()), 6),
                        "rows": [[round(float(row[i]), 6) for i in SHOWN] for row in rows]}
    reference = {"tokens": TOKENS, "shown": list(SHOWN), "models": models}
    Path(sys.argv[2]).write_text(json.dumps(reference).replace("[", "\n[") + "\n")


if __name__ == "__main__":
    main()
