"""Larksong's engine against llguidance and xgrammar: one workload, one process, one CPU."""
