"""Turns that are an answer by a grammar: JSON of a schema, a regular expression, a choice, a Lark grammar."""
