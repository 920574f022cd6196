"""Signs in texts that a metric would score as something else than what they are.

Markers of the decoder, markup, escapes, blanks that are letters to a metric, another tokenization
or case: each makes scores wrong without an error, where only one of two texts has it.
"""
