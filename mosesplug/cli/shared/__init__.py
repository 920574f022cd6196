"""Shared by all commands: arguments, output, errors and exit codes."""
