"""What most users never need: bundled plug-ins.

The core finds them through the entry points of ``pyproject.toml``, as it finds those of any other
package, and imports none of them.
"""
