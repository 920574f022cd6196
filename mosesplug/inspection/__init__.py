"""Inspect runs and n-best lists: functions that read a store or files and print nothing."""
