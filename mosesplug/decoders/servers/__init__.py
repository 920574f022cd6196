"""Translation servers that keep running while weights change."""
