"""Larksong's filter in a program of your own over exllamav3: valid calls, streamed as OpenAI's deltas.

    python examples/exllamav3_filter.py path/to/model

The model is a folder that exllamav3 loads, EXL3 or fp16; exllamav3 needs an NVIDIA GPU.
"""

from __future__ import annotations

import argparse
import json
from typing import Any

from exllamav3 import Cache, ComboSampler, Config, Generator, Job, Model, Tokenizer

from larksong.api import DeltaStream, LarksongFilter

WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "The weather in a city",
        "parameters": {
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 30},
                "unit": {"enum": ["celsius", "fahrenheit"]},
            },
            "required": ["city", "unit"],
        },
    },
}
PROMPT = "Use get_weather for Amsterdam, in celsius."


def main(folder: str, **load: Any) -> None:
    """Print each delta of one required call."""
    config = Config.from_directory(folder)
    model = Model.from_config(config)
    cache = Cache(model, max_num_tokens=8192)
    model.load(**load)
    tokenizer = Tokenizer.from_config(config)
    generator = Generator(model=model, cache=cache, tokenizer=tokenizer)

    filter = LarksongFilter(tokenizer, [WEATHER], format="hermes", required=True, max_calls=1)
    stream = DeltaStream(filter)
    job = Job(
        input_ids=tokenizer.encode(PROMPT),
        max_new_tokens=400,
        sampler=ComboSampler(temperature=0.7),
        seed=1,
        filters=[filter],
        stop_conditions=filter.stop_conditions,
    )
    generator.enqueue(job)
    while generator.num_remaining_jobs():
        for result in generator.iterate():
            for delta in stream.feed(result):
                print(json.dumps(delta))
    print(stream.finish_reason, stream.error or "")
    generator.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="One required call, as OpenAI's deltas.")
    parser.add_argument("model", help="folder of an EXL3 or fp16 model")
    main(parser.parse_args().model)
