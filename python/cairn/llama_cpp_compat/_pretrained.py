"""Models of a hub, by the package huggingface_hub, which does all that needs a network."""

from __future__ import annotations

import fnmatch
import importlib
import os
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Optional, Sequence

if TYPE_CHECKING:
    from ._llama import Llama


def _only_match(names: list[str], pattern: str, repo_id: str) -> PurePosixPath:
    found = [name for name in names if fnmatch.fnmatch(name, pattern)]
    if len(found) != 1:
        what = "No file" if not found else "Multiple files"
        raise ValueError(f"{what} found in {repo_id} that match {pattern}: {found or names}")
    return PurePosixPath(found[0])


def from_pretrained(
    cls: type[Llama],
    /,
    repo_id: str,
    filename: Optional[str],
    additional_files: Optional[Sequence[str]] = None,
    local_dir: str | os.PathLike[str] | None = None,
    local_dir_use_symlinks: bool | str = "auto",
    cache_dir: str | os.PathLike[str] | None = None,
    **kwargs: Any,
) -> Llama:
    """A model of a hub, downloaded where that was not done yet.

    Args:
        filename: The file's name, or a pattern that one file fits.
        additional_files: Others that belong to it, likewise.
        kwargs: Of the constructor.

    Raises:
        ImportError: huggingface_hub is not installed.
        ValueError: no file fits, or several do.
    """
    try:
        hub = importlib.import_module("huggingface_hub")
    except ImportError as error:
        raise ImportError(
            "Llama.from_pretrained requires the huggingface-hub package. "
            "You can install it with `pip install huggingface-hub`."
        ) from error
    listed = hub.HfFileSystem().ls(repo_id, recursive=True)
    paths = [each["name"] if isinstance(each, dict) else each for each in listed]
    names = [str(PurePosixPath(path).relative_to(repo_id)) for path in paths]
    wanted = [_only_match(names, pattern, repo_id) for pattern in (filename or "*.gguf",)]
    wanted += [_only_match(names, pattern, repo_id) for pattern in additional_files or ()]
    found = [
        hub.hf_hub_download(
            repo_id=repo_id,
            filename=path.name,
            subfolder=None if path.parent == PurePosixPath(".") else str(path.parent),
            local_dir=local_dir,
            cache_dir=cache_dir,
        )
        for path in wanted
    ]
    return cls(found[0], **kwargs)
