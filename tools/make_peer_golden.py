#!/usr/bin/env python3
"""Makes a golden case of an architecture that transformers has not: the weights of a model that
`cairn synth` wrote are replaced by others, and llama.cpp (float32) says what it answers.

  cairn synth --like ARCH --type F32 --untied … -o MODEL.gguf
  tools/make_peer_golden.py NAME MODEL.gguf --out DIR [--lengths N,N,…] [--seed N]

llama.cpp reads the file by itself: a tensor whose name or shape is not what its loader expects is
refused, and so is a key that is missing. Needs numpy, gguf and llama-cpp-python from PyPI.
"""
import argparse
import ctypes
import json
import math
import pathlib

import gguf
import llama_cpp
import numpy

GREEDY_TOKENS = 24
GGML_LOG_LEVEL_ERROR = 4


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--lengths", default="1,7,80",
                        help="of the sequences; greedy decoding goes on from the second")
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def on_grid(values, deviation):
    """Few different numbers, all of them exact in f16: files compress."""
    step = 2.0 ** math.floor(math.log2(deviation / 4))
    limit = math.floor(3 * deviation / step)
    return numpy.clip(numpy.round(values * deviation / step), -limit, limit) * step


def fill(path, random):
    """Matrices are drawn anew; vectors keep their mean, whatever they are for, and differ more."""
    reader = gguf.GGUFReader(path, "r+")
    for tensor in reader.tensors:
        assert tensor.data.dtype == numpy.float32, f"{tensor.name}: expected F32"
        values = random.standard_normal(tensor.data.shape)
        if sum(size > 1 for size in tensor.shape) < 2 or tensor.name.endswith("fused.weight"):
            spread = 0.3 if "lerp" in tensor.name else 0.15
            tensor.data[:] = on_grid(values, spread) + tensor.data.mean().round(1)
            continue
        is_table = "embd" in tensor.name
        tensor.data[:] = on_grid(values, 1.0 if is_table else 1.2 / math.sqrt(tensor.shape[0]))


def say_if_error(level, text, _):
    if level == GGML_LOG_LEVEL_ERROR:
        print(text.decode(), end="")


class Peer:
    def __init__(self, path):
        llama_cpp.llama_backend_init()
        self.log = llama_cpp.llama_log_callback(say_if_error)
        llama_cpp.llama_log_set(self.log, ctypes.c_void_p(0))
        options = llama_cpp.llama_model_default_params()
        options.use_mmap = False
        self.model = llama_cpp.llama_model_load_from_file(str(path).encode(), options)
        assert self.model, f"{path}: llama.cpp does not read it"
        vocabulary = llama_cpp.llama_model_get_vocab(self.model)
        self.vocabulary_count = llama_cpp.llama_vocab_n_tokens(vocabulary)

    def logits(self, ids):
        options = llama_cpp.llama_context_default_params()
        options.n_ctx = options.n_batch = options.n_ubatch = 512
        options.type_k = options.type_v = llama_cpp.GGML_TYPE_F32
        options.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_DISABLED
        options.n_threads = options.n_threads_batch = 1
        context = llama_cpp.llama_init_from_model(self.model, options)
        rows = []
        for position, token in enumerate(ids):
            batch = llama_cpp.llama_batch_init(1, 0, 1)
            batch.n_tokens = 1
            batch.token[0] = token
            batch.pos[0] = position
            batch.n_seq_id[0] = 1
            batch.seq_id[0][0] = 0
            batch.logits[0] = 1
            assert llama_cpp.llama_decode(context, batch) == 0
            row = llama_cpp.llama_get_logits_ith(context, 0)
            rows.append(numpy.ctypeslib.as_array(row, (self.vocabulary_count,)).copy())
            llama_cpp.llama_batch_free(batch)
        llama_cpp.llama_free(context)
        return numpy.stack(rows)


def greedy(peer, prompt):
    ids, margin = list(prompt), math.inf
    for _ in range(GREEDY_TOKENS):
        last = peer.logits(ids)[-1]
        second, best = numpy.sort(last)[-2:]
        margin = min(margin, float(best - second))
        ids.append(int(last.argmax()))
    return {"prompt": list(prompt), "tokens": ids[len(prompt):], "min_margin": margin}


def main():
    arguments = parse_arguments()
    random = numpy.random.default_rng(arguments.seed)
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / arguments.name
    model = path.with_suffix(".gguf")
    model.write_bytes(arguments.model.read_bytes())
    fill(model, random)
    peer = Peer(model)
    sequences = [random.integers(3, peer.vocabulary_count, int(length)).tolist()
                 for length in arguments.lengths.split(",")]
    logits = [peer.logits(ids) for ids in sequences]
    case = {"model": model.name, "logits": f"{arguments.name}.f32",
            "n_vocab": peer.vocabulary_count,
            "reference": f"llama.cpp (llama-cpp-python {llama_cpp.__version__}), float32",
            "sequences": sequences, "greedy": greedy(peer, sequences[1])}
    numpy.concatenate(logits).astype("<f4").tofile(path.with_suffix(".f32"))
    path.with_suffix(".json").write_text(json.dumps(case) + "\n", encoding="utf-8")
    deviation = float(numpy.concatenate(logits).std())
    print(f"{arguments.name}: logits have a deviation of {deviation:.2f}; the closest greedy "
          f"choice was decided by {case['greedy']['min_margin']:.4f}")


if __name__ == "__main__":
    main()
