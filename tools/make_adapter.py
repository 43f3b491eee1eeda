#!/usr/bin/env python3
"""Makes a case for adapters: a random LoRA for a folder that tools/make_folder.py made, as the GGUF
file of llama.cpp's converter (NAME.gguf), and the logits of the same tokens with it (NAME.f32).

  tools/make_adapter.py NAME FOLDER --converter DIR --out DIR [--rank N] [--alpha N]

Needs peft besides what make_folder.py needs.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

import peft
import torch
import transformers

import make_folder
import make_golden


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("name")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--converter", required=True, type=pathlib.Path)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--rank", type=int, default=4)
    parser.add_argument("--alpha", type=int, default=6)
    arguments = parser.parse_args()
    base = transformers.AutoModelForCausalLM.from_pretrained(
        arguments.folder, dtype=torch.float32, attn_implementation="eager")
    config = peft.LoraConfig(r=arguments.rank, lora_alpha=arguments.alpha, task_type="CAUSAL_LM",
                             target_modules=["q_proj", "k_proj", "o_proj", "up_proj", "down_proj"])
    model = peft.get_peft_model(base, config).eval()
    generator = torch.Generator().manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                make_golden.fill(parameter, name, generator)
    logits = make_golden.logits_of(model, make_folder.TOKENS)
    logits.astype("<f4").tofile(arguments.out / f"{arguments.name}.f32")
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder)
        out = arguments.out / f"{arguments.name}.gguf"
        subprocess.run([sys.executable, str(arguments.converter / "convert_lora_to_gguf.py"),
                        "--base", str(arguments.folder), "--outfile", str(out), "--outtype", "f16",
                        folder], check=True)


if __name__ == "__main__":
    main()
