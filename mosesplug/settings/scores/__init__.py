"""Scores from outside: from files, and from commands that keep running."""
