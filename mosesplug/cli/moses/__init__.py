"""Launchers with the names and command lines of Moses' own programs."""
