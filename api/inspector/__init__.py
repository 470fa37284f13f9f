"""The inspector: a page of the server that shows how turns are read, token by token (`--inspector`)."""
