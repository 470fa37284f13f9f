"""Wire formats and JSON Schema: from the tools of a request to a grammar.

What programs need is importable from here: `__init__.pyi` lists it; names are loaded when they are used.
What is needed to write a wire format of one's own is in `larksong.grammars.authoring`.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
