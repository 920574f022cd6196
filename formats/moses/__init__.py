"""The configuration of Moses: ``moses.ini`` and the decoder's command-line flags."""
