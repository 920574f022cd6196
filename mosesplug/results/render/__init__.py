"""Show records as text, tables, Markdown, LaTeX and HTML."""
