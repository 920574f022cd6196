"""The files of a store: opening, locks, pages, commits and replacement."""
