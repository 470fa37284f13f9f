"""The commands of `larksong`."""
