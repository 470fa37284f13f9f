"""Small chat templates, one a wire format: each has something that the templates of its family have.

They know messages of users and assistants, reasoning, content and calls; tools they do not describe.
"""

from pathlib import Path

from larksong.grammars import format_names

_FOLDER = Path(__file__).parent


def own_templates() -> dict[str, str]:
    """The template of each format."""
    return {name: (_FOLDER / f"{name}.jinja").read_text(encoding="utf-8") for name in format_names()}
