"""Moses' file formats: read with a line number in every error, written all or nothing."""

from __future__ import annotations
