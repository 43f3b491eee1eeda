"""The C interface, include/cairn.h, by ctypes: the library, its structs and functions.

Everything else of the package stands on this module; nothing else of it calls ctypes functions of
the library by name. The structs are compared once, at import, with what the library says of its
own (`cairn_layout_json`): a library of another layout is refused.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
from ctypes import (
    CFUNCTYPE,
    POINTER,
    Structure,
    c_bool,
    c_char,
    c_char_p,
    c_float,
    c_int,
    c_int32,
    c_size_t,
    c_uint8,
    c_uint32,
    c_uint64,
    c_void_p,
)
from pathlib import Path
from typing import Any

# Answers of functions; negative ones are errors.
OK = 0
DONE = 1
AGAIN = 2
CANCELLED = 3
E_NO_ROOM = -3

TEXT_BOS = 1
TEXT_SPECIAL = 2

KV_TYPES = {None: 0, "f32": 1, "f16": 2, "bf16": 3, "q8_0": 4, "q4_0": 5}

CAPABILITIES = {"text": 1, "logits": 2, "rewind": 4, "save": 8, "embed": 16, "snapshot": 32}
EXACTNESS = ("none", "replay", "bitwise")
LIMITS = ("none", "window", "chunked", "recurrent", "hidden", "other")
FINISHES = ("none", "stop", "length", "context", "memory")

SAMPLING_SEED = 1
SAMPLING_IGNORE_END = 2
SAMPLING_LOGPROBS = 4
SAMPLING_RECEIPT = 8

EVENT_END = 2

LogFunction = CFUNCTYPE(None, c_void_p, c_int32, c_void_p, c_size_t)
ProgressFunction = CFUNCTYPE(c_bool, c_void_p, c_float)


class Error(Structure):
    _fields_ = [("struct_size", c_uint32), ("code", c_int32), ("message", c_char * 504)]


class EngineParams(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("thread_count", c_uint32),
        ("parallel", c_uint32),
        ("context_tokens", c_uint32),
        ("memory_budget_bytes", c_uint64),
        ("type_k", c_int32),
        ("type_v", c_int32),
        ("store_path", c_char_p),
        ("options_json", c_char_p),
        ("progress", ProgressFunction),
        ("user", c_void_p),
    ]


class EngineFacts(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("capabilities", c_uint32),
        ("exactness", c_int32),
        ("context_tokens", c_uint32),
        ("vocabulary_count", c_uint32),
        ("vector_floats", c_uint32),
        ("backend", c_char_p),
        ("numerics", c_char_p),
        ("native_capabilities", c_uint32),
        ("reserved", c_uint32),
    ]


class MemoryFigures(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("snapshots", c_uint32),
        ("budget", c_uint64),
        ("pages", c_uint64),
        ("states", c_uint64),
        ("hidden", c_uint64),
        ("logs", c_uint64),
        ("warm", c_uint64),
        ("weights", c_uint64),
        ("scratch", c_uint64),
    ]


class PlanFigures(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("limited_by", c_int32),
        ("target", c_uint32),
        ("resume", c_uint32),
        ("forward_tokens", c_uint32),
        ("recurrent_steps", c_uint32),
        ("copy_bytes", c_uint64),
        ("new_bytes", c_uint64),
        ("logits_ready", c_uint8),
        ("replayed_by_cairn", c_uint8),
        ("reserved", c_uint8 * 6),
    ]


class SamplingParams(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("flags", c_uint32),
        ("seed", c_uint64),
        ("temperature", c_float),
        ("top_p", c_float),
        ("min_p", c_float),
        ("typical_p", c_float),
        ("top_n_sigma", c_float),
        ("xtc_probability", c_float),
        ("xtc_threshold", c_float),
        ("repeat_penalty", c_float),
        ("presence_penalty", c_float),
        ("frequency_penalty", c_float),
        ("dry_multiplier", c_float),
        ("dry_base", c_float),
        ("dynatemp_range", c_float),
        ("dynatemp_exponent", c_float),
        ("mirostat_tau", c_float),
        ("mirostat_eta", c_float),
        ("top_k", c_int32),
        ("repeat_last_count", c_int32),
        ("dry_allowed_length", c_int32),
        ("dry_last_count", c_int32),
        ("mirostat", c_int32),
        ("max_tokens", c_int32),
        ("grammar", c_char_p),
        ("json_schema", c_char_p),
        ("stop_json", c_char_p),
        ("logit_bias_json", c_char_p),
        ("samplers", c_char_p),
        ("draft", c_char_p),
    ]


class EventView(Structure):
    _fields_ = [
        ("struct_size", c_uint32),
        ("kind", c_int32),
        ("finish", c_int32),
        ("position", c_uint32),
        ("token_count", c_uint32),
        ("reserved", c_uint32),
        ("tokens", POINTER(c_int32)),
        ("logprobs", POINTER(c_float)),
        ("text", c_void_p),
        ("text_bytes", c_size_t),
        ("drafted", c_uint32),
        ("accepted", c_uint32),
    ]


_STRUCTS: dict[str, type[Structure]] = {
    "cairn_error": Error,
    "cairn_engine_params": EngineParams,
    "cairn_engine_facts": EngineFacts,
    "cairn_memory": MemoryFigures,
    "cairn_plan": PlanFigures,
    "cairn_sampling": SamplingParams,
    "cairn_event": EventView,
}

# Name: what it returns, and what it takes. Handles and rows travel as addresses.
_H = c_void_p
_OUT = POINTER(c_void_p)
_ERROR = POINTER(Error)
_SIZE = POINTER(c_size_t)
_PLAN = POINTER(PlanFigures)
_EVENT = POINTER(EventView)
_FUNCTIONS: dict[str, tuple[Any, list[Any]]] = {
    "cairn_version": (c_uint32, []),
    "cairn_layout_json": (c_char_p, []),
    "cairn_backends_json": (c_char_p, []),
    "cairn_set_log": (None, [LogFunction, c_void_p, c_int32]),
    "cairn_model_open": (c_int32, [c_char_p, _OUT, _ERROR]),
    "cairn_model_close": (None, [_H]),
    "cairn_model_info_json": (c_char_p, [_H]),
    "cairn_tokenize": (
        c_int32,
        [_H, c_char_p, c_size_t, c_uint32, c_void_p, c_size_t, _SIZE, _ERROR],
    ),
    "cairn_detokenize": (
        c_int32,
        [_H, c_void_p, c_size_t, c_uint32, c_void_p, c_size_t, _SIZE, _ERROR],
    ),
    "cairn_chat_render": (
        c_int32,
        [_H, c_char_p, c_size_t, c_void_p, c_size_t, _SIZE, _ERROR],
    ),
    "cairn_engine_params_init": (None, [POINTER(EngineParams), c_uint32]),
    "cairn_engine_open": (c_int32, [_H, POINTER(EngineParams), _OUT, _ERROR]),
    "cairn_engine_close": (None, [_H]),
    "cairn_engine_get_facts": (c_int32, [_H, POINTER(EngineFacts), _ERROR]),
    "cairn_engine_get_memory": (c_int32, [_H, POINTER(MemoryFigures), _ERROR]),
    "cairn_plan_prompt": (c_int32, [_H, c_void_p, c_size_t, _PLAN, _ERROR]),
    "cairn_score": (
        c_int32,
        [_H, c_void_p, c_size_t, c_void_p, c_void_p, c_size_t, _ERROR],
    ),
    "cairn_embed": (c_int32, [_H, c_void_p, c_size_t, c_void_p, c_size_t, _SIZE, _ERROR]),
    "cairn_conversation_open": (c_int32, [_H, _OUT, _ERROR]),
    "cairn_conversation_close": (None, [_H]),
    "cairn_tokens": (c_void_p, [_H, _SIZE]),
    "cairn_prefill": (c_int32, [_H, c_void_p, c_size_t, _PLAN, _ERROR]),
    "cairn_sync": (c_int32, [_H, c_void_p, c_size_t, _PLAN, _ERROR]),
    "cairn_rewind": (c_int32, [_H, c_uint32, _PLAN, _ERROR]),
    "cairn_plan_rewind": (c_int32, [_H, c_uint32, _PLAN, _ERROR]),
    "cairn_reset": (c_int32, [_H, _ERROR]),
    "cairn_sampling_init": (None, [_H, POINTER(SamplingParams), c_uint32]),
    "cairn_set_sampling": (c_int32, [_H, POINTER(SamplingParams), _ERROR]),
    "cairn_sample": (c_int32, [_H, c_void_p, c_size_t, POINTER(c_int32), _ERROR]),
    "cairn_set_logits": (c_int32, [_H, c_void_p, c_size_t, _ERROR]),
    "cairn_next": (c_int32, [_H, _EVENT, _ERROR]),
    "cairn_start": (c_int32, [_H, _ERROR]),
    "cairn_poll": (c_int32, [_H, _EVENT, _ERROR]),
    "cairn_wait_fd": (c_int, [_H]),
    "cairn_cancel": (None, [_H]),
    "cairn_receipt": (c_int32, [_H, c_void_p, c_size_t, _SIZE, _ERROR]),
    "cairn_logits_acquire": (c_int32, [_H, _OUT, _ERROR]),
    "cairn_logits_data": (c_void_p, [_H, _SIZE]),
    "cairn_logits_release": (None, [_H]),
    "cairn_snapshot_take": (c_int32, [_H, _OUT, _ERROR]),
    "cairn_snapshot_position": (c_uint32, [_H]),
    "cairn_snapshot_release": (None, [_H]),
    "cairn_rewind_to": (c_int32, [_H, _H, _PLAN, _ERROR]),
    "cairn_fork": (c_int32, [_H, _H, _OUT, _ERROR]),
    "cairn_save": (c_int32, [_H, c_char_p, _ERROR]),
    "cairn_restore": (c_int32, [_H, c_char_p, _PLAN, _ERROR]),
}


def library_path() -> Path:
    """The library that is loaded: the environment's CAIRN_LIBRARY, else the package's own."""
    named = os.environ.get("CAIRN_LIBRARY")
    if named:
        return Path(named)
    name = "libcairn.dylib" if sys.platform == "darwin" else "libcairn.so"
    return Path(__file__).parent / "_lib" / name


def check_layout(found: dict[str, dict[str, int]]) -> None:
    """Compares the library's own structs, as `cairn_layout_json` has them, with those here.

    Raises:
        ImportError: a struct or a member has another size or place, with both.
    """
    for name, struct in _STRUCTS.items():
        expected = {"size": ctypes.sizeof(struct)}
        for member, *_ in struct._fields_:
            expected[member] = getattr(struct, member).offset
        if found.get(name) != expected:
            raise ImportError(
                f"{library_path()}: the layout of {name} is another version's: "
                f"expected {expected}, found {found.get(name)}"
            )


def _load() -> ctypes.CDLL:
    path = library_path()
    # Other programs' engines are run by this interpreter, which has this program's packages.
    if sys.executable:
        os.environ.setdefault("CAIRN_PYTHON", sys.executable)
    try:
        library = ctypes.CDLL(str(path))
    except OSError as error:
        raise ImportError(
            f"the library of cairn cannot be loaded: {error}; "
            "the environment variable CAIRN_LIBRARY may name another one"
        ) from error
    for name, (result, arguments) in _FUNCTIONS.items():
        try:
            function = getattr(library, name)
        except AttributeError:
            raise ImportError(f"{path}: expected the function {name}, found none") from None
        function.restype = result
        function.argtypes = arguments
    check_layout(json.loads(library.cairn_layout_json()))
    return library


lib = _load()
