"""`larksong bench`: what the engine costs on a tokenizer of the user's own."""
