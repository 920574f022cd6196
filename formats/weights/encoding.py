"""Names of features as text, whatever their bytes.

Settings import this module, so it imports nothing.
"""

from __future__ import annotations


def decode(text: bytes) -> str:
    """Decode names, whatever their encoding; ``encode`` is the inverse."""
    return text.decode("utf-8", "surrogateescape")


def encode(text: str) -> bytes:
    """Encode names that ``decode`` has decoded."""
    return text.encode("utf-8", "surrogateescape")
