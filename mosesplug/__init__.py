"""mosesplug tunes the log-linear weights of Moses-style decoders."""

__version__ = "0.1.0"
