"""Larksong's own wire formats, one module each: `FORMAT`, or `FORMATS` for several, makes it one."""
