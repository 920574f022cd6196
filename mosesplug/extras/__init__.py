"""Bundled plug-ins for other toolkits and for optimizers beside the papers.

The core finds them through the entry points of ``pyproject.toml``, as it finds those of any other
package, and imports none of them.
"""
