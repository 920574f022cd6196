"""The public functions and types of ``mosesplug``; each module loads at the first use of a name."""
