"""Formats of other toolkits: bundled plug-ins, found through entry points."""
