"""What the public names of ``mosesplug`` do; its modules are loaded when a name is first used."""
