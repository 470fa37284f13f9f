"""The settings of a server, their flags, and the models that they name."""
