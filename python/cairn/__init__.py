"""cairn: language models in GGUF files, on the machine that you have.

>>> import cairn
>>> with cairn.Model(NANO) as model, cairn.Engine(model, memory="64MiB", threads=1) as engine:
...     session = engine.session(sampling=cairn.Sampling(temperature=0, max_tokens=8))
...     plan = session.chat([{"role": "user", "content": "Hello!"}])
...     text = session.answer()
...     branch = session.fork()

`Model` is a file, `Engine` has its weights and a memory budget, and a `Session` is a text that
grows, goes back and forks. `Llama` is for programs that were written for llama-cpp-python.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ._engine import Backend, Engine, Facts, backends
from ._errors import (
    BusyError,
    CairnError,
    Cancelled,
    FormatError,
    InternalError,
    InvalidError,
    MismatchError,
    NoRoomError,
    StorageError,
    UnsupportedError,
)
from ._figures import Memory, Plan
from ._log import set_log
from ._model import Model, ModelInfo
from ._sampling import Sampling
from ._session import Event, Logits, Session, Snapshot
from ._version import __version__

if TYPE_CHECKING:
    from .llama_cpp_compat import Llama

__all__ = [
    "Backend",
    "BusyError",
    "CairnError",
    "Cancelled",
    "Engine",
    "Event",
    "Facts",
    "FormatError",
    "InternalError",
    "InvalidError",
    "Llama",
    "Logits",
    "Memory",
    "MismatchError",
    "Model",
    "ModelInfo",
    "NoRoomError",
    "Plan",
    "Sampling",
    "Session",
    "Snapshot",
    "StorageError",
    "UnsupportedError",
    "__version__",
    "backends",
    "set_log",
]


def __getattr__(name: str) -> Any:
    # Llama wants numpy; who does without it imports in a third of the time.
    if name == "Llama":
        from .llama_cpp_compat import Llama

        return Llama
    raise AttributeError(f"module 'cairn' has no attribute {name!r}")
