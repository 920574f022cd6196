"""The public functions and types of ``mosesplug``.

Each module loads at the first use of a name.
"""
