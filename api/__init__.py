"""The server: OpenAI shapes over HTTP, the command line, the demo; and a filter for exllamav3 programs.

What programs need is importable from here: `__init__.pyi` lists it; names are loaded when they are used.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
