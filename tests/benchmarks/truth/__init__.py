"""Which tuning program gives the better translations of text that it never saw?

Each system tunes the same decoder with the same flags on the same text, several seeds each, and its
final ``moses.ini`` translates test sets that no choice may look at. ``systems`` are the commands,
``protocol`` runs and judges them, ``table`` prints what came out, and ``__main__`` is the command.
"""
