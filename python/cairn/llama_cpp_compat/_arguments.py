"""The arguments of the constructor: which of them the engine knows, and which do nothing here."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

# Numbers of ggml's types, as callers give them.
_KV_TYPES = {0: "f32", 1: "f16", 2: "q4_0", 8: "q8_0", 30: "bf16"}
_POOLINGS = {1: "mean", 2: "cls", 3: "last"}

# What each is where nothing is asked for. The first are about graphics cards, or about ways to the
# same numbers; the second would change what is computed.
_WITHOUT_EFFECT: dict[str, Any] = {
    "n_gpu_layers": 0,
    "split_mode": 1,
    "main_gpu": 0,
    "tensor_split": None,
    "use_mlock": False,
    "numa": False,
    "op_offload": None,
}
_REFUSED: dict[str, tuple[Any, ...]] = {
    "kv_overrides": (None,),
    "rope_scaling_type": (-1, None),
    "attention_type": (-1, None),
    "rope_freq_base": (0.0,),
    "rope_freq_scale": (0.0,),
    "yarn_ext_factor": (-1.0,),
    "yarn_attn_factor": (1.0, -1.0),
    "yarn_beta_fast": (32.0, -1.0),
    "yarn_beta_slow": (1.0, -1.0),
    "yarn_orig_ctx": (0,),
    "lora_base": (None,),
}


def check_arguments(arguments: Mapping[str, Any]) -> None:
    """Warns of what does nothing here, in one warning.

    Raises:
        ValueError: of what would change the numbers, and cannot be done.
    """
    for name, usual in _REFUSED.items():
        if arguments[name] not in usual:
            raise ValueError(
                f"{name}: expected {usual[0]!r}, which is the model's own, "
                f"found {arguments[name]!r}"
            )
    given = [
        name for name, usual in _WITHOUT_EFFECT.items() if arguments[name] not in (usual, None)
    ]
    if given:
        warnings.warn(f"cairn computes on the CPU: {', '.join(given)} do nothing", stacklevel=3)


def kv_type_of(name: str, value: int | str | None) -> str | None:
    """How keys or values are stored, by ggml's number or by name."""
    if value is None or isinstance(value, str):
        return value
    if value not in _KV_TYPES:
        raise ValueError(f"{name}: expected one of {_KV_TYPES}, found {value}")
    return _KV_TYPES[value]


def pooling_of(value: int, of_the_model: int) -> str:
    """The name of a kind of pooling; -1: the model's, or the mean where it has none."""
    if value == -1:
        return _POOLINGS.get(of_the_model, "mean")
    if value not in _POOLINGS:
        raise ValueError(f"pooling_type: expected one of {_POOLINGS}, found {value}")
    return _POOLINGS[value]
