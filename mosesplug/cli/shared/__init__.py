"""What all commands share: arguments, output, errors and exit codes."""
