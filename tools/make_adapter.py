#!/usr/bin/env python3
"""Makes a case for adapters: random LoRAs for a folder that tools/make_folder.py made, each as the
GGUF file of llama.cpp's converter (NAME.gguf), and the logits of the same tokens (NAME.f32); of
several, also the logits with all of them at their scales (FIRST-mix.f32).

  tools/make_adapter.py FOLDER NAME:RANK:ALPHA:SEED:SCALE:TARGET,TARGET… [NAME:…] --converter DIR
                        --out DIR

Needs peft besides what make_folder.py needs. Adapters of experts need a transformers that has each
expert's matrices by themselves (before version 5), and a config.json by its names (num_experts).
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import typing

import peft
import torch
import transformers

import make_folder
import make_golden


class Adapter(typing.NamedTuple):
    name: str
    rank: int
    alpha: int
    seed: int
    scale: float
    targets: list


def parse(text):
    name, rank, alpha, seed, scale, targets = text.split(":")
    return Adapter(name, int(rank), int(alpha), int(seed), float(scale), targets.split(","))


def base_of(folder):
    # Versions before 5 know this argument as torch_dtype.
    model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    return model.to(torch.float32)


def add(model, adapter):
    config = peft.LoraConfig(r=adapter.rank, lora_alpha=adapter.alpha, task_type="CAUSAL_LM",
                             target_modules=adapter.targets)
    if isinstance(model, peft.PeftModel):
        model.add_adapter(adapter.name, config)
    else:
        model = peft.get_peft_model(model, config, adapter_name=adapter.name)
    generator = torch.Generator().manual_seed(adapter.seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name and f".{adapter.name}." in name:
                make_golden.fill(parameter, name, generator)
    return model.eval()


def save_logits(model, path):
    make_golden.logits_of(model, make_folder.TOKENS).astype("<f4").tofile(path)


def convert(model, adapter, arguments):
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, selected_adapters=[adapter.name])
        path = pathlib.Path(folder)
        saved = path / adapter.name if (path / adapter.name).exists() else path
        subprocess.run([sys.executable, str(arguments.converter / "convert_lora_to_gguf.py"),
                        "--base", str(arguments.folder), "--outfile",
                        str(arguments.out / f"{adapter.name}.gguf"), "--outtype", "f16",
                        str(saved)], check=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("adapters", nargs="+", type=parse)
    parser.add_argument("--converter", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    arguments = parser.parse_args()
    model = base_of(arguments.folder)
    for adapter in arguments.adapters:
        model = add(model, adapter)
        model.set_adapter(adapter.name)
        save_logits(model, arguments.out / f"{adapter.name}.f32")
        convert(model, adapter, arguments)
    if len(arguments.adapters) > 1:
        model.base_model.set_adapter([adapter.name for adapter in arguments.adapters])
        changed = [module for module in model.modules()
                   if isinstance(module, peft.tuners.lora.LoraLayer)]
        for module in changed:
            for adapter in arguments.adapters:
                if adapter.name in module.scaling:
                    module.set_scale(adapter.name, adapter.scale)
        save_logits(model, arguments.out / f"{arguments.adapters[0].name}-mix.f32")


if __name__ == "__main__":
    main()
