"""The engine as a library: masks out, tokens in, events out. No server and no model library.

    python examples/library.py path/to/tokenizer.json '<|im_end|>'

Instead of a model, dice choose among the allowed tokens: the call is valid all the same.
"""

from __future__ import annotations

import sys
from random import Random

import numpy as np

from larksong.engine import Engine, Vocabulary
from larksong.grammars import CallPolicy, Tool, wire_format

WEATHER = Tool(
    "get_weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 20},
            "unit": {"enum": ["celsius", "fahrenheit"]},
        },
        "required": ["city", "unit"],
    },
)


def main(tokenizer: str, end: str, seed: int = 7) -> None:
    """Write one call of get_weather, and print what each token made certain."""
    vocabulary = Vocabulary.from_tokenizer(tokenizer, eos=[end])
    engine = Engine(vocabulary)  # one for all requests
    policy = CallPolicy(required=True, max_calls=1)
    grammar = wire_format("hermes").grammar([WEATHER], policy, vocabulary)
    matcher = engine.matcher(grammar)  # one for each sequence
    dice = Random(seed)
    while not matcher.finished:
        bits = np.unpackbits(matcher.mask().view(np.uint8), bitorder="little")
        token = dice.choice(np.flatnonzero(bits).tolist())  # here a model would choose
        for event in matcher.advance(token):
            print(event)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
