"""Plug-ins of mosesplug: a metric, a list format, a decoder and an algorithm."""
