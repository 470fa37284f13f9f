"""The job that every agent does: list the files, read one, edit it exactly, run a command, report.

The text has what gets lost most easily on the way: tabs, blanks at the ends of lines, several scripts, and
a marker of a wire format itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

FILE = "notes.md"
_BEFORE = """\
# Notes of {name}

def greet(name):
\tif name:   \n\
\t\treturn f"Grüße, {{name}} 👋"  \n\
\treturn "日本語"\t \n\
"""
_OLD = """\
\tif name:   \n\
\t\treturn f"Grüße, {{name}} 👋"  \n\
"""
_NEW = """\
\tif name.strip(): \t\n\
\t\treturn f"Здравствуй, {{name}} 👋🏽"\t \n\
\n\
</parameter>
\t"<b>\\\\n</b> {name}" # é\u0301  \n\
"""


@dataclass(frozen=True)
class Job:
    """A job in a folder of its own. `name` tells its requests from those of others."""

    name: str
    folder: Path

    @property
    def sentence(self) -> str:
        """What the agent is told."""
        return f"This is the job {self.name}: put the greeting of {FILE} into Russian."

    @property
    def report(self) -> str:
        """What the model says at the end."""
        return f"The job {self.name} is done: Здравствуй."

    @property
    def file(self) -> Path:
        """The file that is edited."""
        return self.folder / FILE

    @property
    def old(self) -> str:
        """The text that is replaced."""
        return _OLD.format()

    @property
    def new(self) -> str:
        """What replaces it."""
        return _NEW.format(name=self.name)

    @property
    def command(self) -> str:
        """The command that is run after the edit."""
        return f"cp {FILE} 'copy of {self.name} é.md' && printf '%s\\t\\n' \"${{PWD##*/}}\" > ran.txt"

    def prepare(self) -> None:
        """Lay out the folder."""
        self.folder.mkdir(parents=True)
        self.file.write_bytes(_BEFORE.format(name=self.name).encode())

    def check(self) -> None:
        """What must be on disk in the end, byte for byte."""
        expected = _BEFORE.format(name=self.name).replace(self.old, self.new).encode()
        assert self.file.read_bytes() == expected
        assert (self.folder / f"copy of {self.name} é.md").read_bytes() == expected
        assert (self.folder / "ran.txt").read_bytes() == f"{self.folder.name}\t\n".encode()
