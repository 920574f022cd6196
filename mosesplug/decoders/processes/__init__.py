"""Child processes: run them to their end, and end them with this one."""
