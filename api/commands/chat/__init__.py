"""`larksong chat`: talk to a model in the terminal, with tools whose calls are seen growing."""
