"""The version of the library that is loaded."""

from . import _c

_number: int = _c.lib.cairn_version()
__version__ = f"{_number >> 16}.{_number >> 8 & 0xFF}.{_number & 0xFF}"
