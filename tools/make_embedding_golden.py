#!/usr/bin/env python3
"""Makes a golden case of a model that makes vectors: a tiny one with random weights as a GGUF file,
and what transformers (float32, eager attention) gives for each token, pooled in all ways.

  tools/make_embedding_golden.py NAME MODEL_TYPE --converter DIR --out DIR [--set KEY=VALUE …]
                                 [--pooling mean|cls|lasttoken] [--scores] [--lengths N,N,…]
                                 [--window N] [--dense N] [--seed N]

MODEL_TYPE is what config.json calls model_type; the rest is as in tools/make_golden.py, whose sizes
and weights these are. --pooling is what the folder says of itself, as sentence-transformers writes
it. --scores: the model has a classifier, and its scores of each sequence are kept. --window is
attention.sliding_window as it was published, where transformers halves it. --dense: two matrices
more, as sentence-transformers has them in folders of their own, to N columns and back.

NAME.f32 holds, for each sequence: a row for each token, then their mean, the first and the last one
(each of these three divided by its length), then the scores.
"""
import json
import os
import pathlib
import tempfile

import make_golden
import numpy
import torch
import transformers

# nomic_bert: the published files have other names than transformers, and so has the converter.
NOMIC_NAMES = [
    ("embeddings.LayerNorm.", "emb_ln."), ("layers.", "encoder.layers."),
    ("self_attn.o_proj.", "attn.out_proj."), ("mlp.up_proj.", "mlp.fc11."),
    ("mlp.gate_proj.", "mlp.fc12."), ("mlp.down_proj.", "mlp.fc2."),
    ("post_attention_layernorm.", "norm1."), ("post_mlp_layernorm.", "norm2."),
]


def parse_arguments():
    parser = make_golden.argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("model_type")
    parser.add_argument("--converter", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--pooling", choices=["mean", "cls", "lasttoken"])
    parser.add_argument("--scores", action="store_true")
    parser.add_argument("--lengths", default="1,7,80")
    parser.add_argument("--window", type=int)
    parser.add_argument("--dense", type=int)
    parser.add_argument("--seed", type=int, default=1)
    return parser.parse_args()


def random_model(config, seed, has_scores):
    kind = (transformers.AutoModelForSequenceClassification if has_scores
            else transformers.AutoModel)
    model = kind.from_config(config, attn_implementation="eager").to(torch.float32).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            make_golden.fill(parameter, name, generator)
    return model


def dense_matrices(width, inner, seed):
    generator = torch.Generator().manual_seed(seed)
    matrices = [torch.randn((inner, width), generator=generator),
                torch.randn((width, inner), generator=generator)]
    return [make_golden.on_grid(matrix, matrix.shape[1] ** -0.5) for matrix in matrices]


def rows_of(model, ids, dense):
    with torch.no_grad():
        out = model(input_ids=torch.tensor([ids]), output_hidden_states=True)
    hidden = out.last_hidden_state if hasattr(out, "last_hidden_state") else out.hidden_states[-1]
    scores = out.logits[0].float().numpy() if hasattr(out, "logits") else None
    rows = hidden[0].float()
    for matrix in dense:
        rows = rows @ matrix.T
    return rows.numpy(), scores


def pooled(rows):
    """As sentence-transformers pools and normalises."""
    vectors = [rows.mean(axis=0), rows[0], rows[-1]]
    return numpy.stack([vector / numpy.linalg.norm(vector) for vector in vectors])


def save_word_pieces(folder):
    # Where BERT has them, which is where files without these ids are taken to have them.
    specials = ["[PAD]", *(f"[unused{index}]" for index in range(99)),
                "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = sorted(set(make_golden.TEXT.lower().replace(":", " ").replace(",", " ").split()))
    letters = [chr(code) for code in range(33, 127) if not chr(code).isupper()]
    pieces = specials + letters + ["##" + letter for letter in letters]
    pieces += [word for word in words if word not in pieces]
    pieces += [f"[unused{100 + index}]" for index in range(make_golden.VOCABULARY - len(pieces))]
    path = pathlib.Path(folder) / "vocab.txt"
    path.write_text("\n".join(pieces[:make_golden.VOCABULARY]) + "\n", encoding="utf-8")
    transformers.BertTokenizerFast(str(path), do_lower_case=True).save_pretrained(folder)


def save_modules(folder, dense):
    """What sentence-transformers does behind the model."""
    names = ["1_Pooling"] + [f"{index + 2}_Dense" for index in range(len(dense))]
    modules = [{"idx": index + 1, "name": str(index + 1), "path": name,
                "type": "sentence_transformers.models." + name[2:]}
               for index, name in enumerate(names)]
    (folder / "modules.json").write_text(json.dumps(modules), encoding="utf-8")
    for name, matrix in zip(names[1:], dense):
        from safetensors.torch import save_file
        (folder / name).mkdir()
        save_file({"linear.weight": matrix.contiguous()}, str(folder / name / "model.safetensors"))
        (folder / name / "config.json").write_text(
            json.dumps({"in_features": matrix.shape[1], "out_features": matrix.shape[0]}),
            encoding="utf-8")


def save_pooling(folder, mode):
    (folder / "1_Pooling").mkdir()
    key = {"mean": "mean_tokens", "cls": "cls_token", "lasttoken": "lasttoken"}[mode]
    (folder / "1_Pooling" / "config.json").write_text(
        json.dumps({f"pooling_mode_{key}": True}), encoding="utf-8")


def published_nomic(folder, model):
    """The folder as Nomic publishes it."""
    from safetensors.torch import save_file
    config, tensors = model.config, {}
    parts = {}
    for name, tensor in model.state_dict().items():
        for ours, theirs in NOMIC_NAMES:
            name = name.replace(ours, theirs)
        if ".self_attn." in name:
            prefix, part = name.split(".self_attn.")
            parts.setdefault(prefix, {})[part] = tensor
        elif not name.startswith("pooler."):
            tensors[name] = tensor.contiguous()
    for prefix, qkv in parts.items():
        tensors[f"{prefix}.attn.Wqkv.weight"] = torch.cat(
            [qkv[f"{part}_proj.weight"] for part in "qkv"])
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})
    published = {
        **config.to_dict(),  # Converters may read either set of names.
        "architectures": ["NomicBertModel"], "model_type": "nomic_bert",
        "activation_function": "swiglu", "causal": False, "prenorm": False,
        "n_embd": config.hidden_size, "n_head": config.num_attention_heads,
        "n_inner": config.intermediate_size, "n_layer": config.num_hidden_layers,
        "n_positions": 8192, "max_trained_positions": 2048, "vocab_size": config.vocab_size,
        "type_vocab_size": config.type_vocab_size, "layer_norm_epsilon": config.layer_norm_eps,
        "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
        "rotary_emb_base": config.rope_parameters["rope_theta"], "rotary_emb_fraction": 1.0,
        "rotary_emb_interleaved": False, "rotary_emb_scale_base": None}
    (folder / "config.json").write_text(json.dumps(published), encoding="utf-8")


def set_window(folder, window):
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["sliding_window"] = window
    path.write_text(json.dumps(config), encoding="utf-8")


def save_and_convert(arguments, model, dense, folder, path):
    has_word_pieces = arguments.model_type in ("bert", "nomic_bert")
    if arguments.model_type == "nomic_bert":
        published_nomic(folder, model)
    else:
        model.save_pretrained(folder)
    if arguments.window:
        set_window(folder, arguments.window)
    if arguments.pooling:
        save_modules(folder, dense)
        save_pooling(folder, arguments.pooling)
    if has_word_pieces:
        save_word_pieces(folder)
    else:
        # Of Gemma the converter counts special tokens twice, and cuts the table to that.
        make_golden.save_tokenizer(folder, make_golden.VOCABULARY - 3)
    make_golden.convert(arguments.converter.resolve(), folder,
                        path.with_suffix(".gguf").resolve(), not has_word_pieces,
                        ["--sentence-transformers-dense-modules"] if dense else [])


def main():
    arguments = parse_arguments()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    config = make_golden.tiny_config(arguments.model_type, arguments.set)
    model = random_model(config, arguments.seed, arguments.scores)
    random = numpy.random.default_rng(arguments.seed)
    sequences = [random.integers(5, make_golden.VOCABULARY, int(length)).tolist()
                 for length in arguments.lengths.split(",")]
    arguments.out.mkdir(parents=True, exist_ok=True)
    path = arguments.out / arguments.name
    numbers, width, score_count = [], 0, 0
    dense = []
    if arguments.dense:
        dense = dense_matrices(config.hidden_size, arguments.dense, arguments.seed)
    for ids in sequences:
        rows, scores = rows_of(model, ids, dense)
        width = rows.shape[1]
        numbers += [rows.ravel(), pooled(rows).ravel()]
        if scores is not None:
            numbers.append(scores)
            score_count = len(scores)
    case = {"width": width, "scores": score_count, "sequences": sequences,
            "reference": f"transformers {type(model).__name__}, float32, eager attention"}
    numpy.concatenate(numbers).astype("<f4").tofile(path.with_suffix(".f32"))
    path.with_suffix(".json").write_text(json.dumps(case) + "\n", encoding="utf-8")
    with tempfile.TemporaryDirectory() as folder:
        save_and_convert(arguments, model, dense, pathlib.Path(folder), path)
    print(f"{arguments.name}: {len(sequences)} sequences, rows of {width}, {score_count} scores")


if __name__ == "__main__":
    main()
