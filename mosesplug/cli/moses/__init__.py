"""Launchers that answer to the names and command lines of Moses' own programs."""
