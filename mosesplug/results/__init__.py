"""Show what runs, lists and systems contain: scores, weights, views, reports.

Functions return typed records; nothing here prints. ``render`` shows a record in any format.
"""
