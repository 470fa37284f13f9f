"""The guide works as it stands, outside the repository: its files and commands, a format that is installed."""

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from larksong.api.offline.parse import parse_record
from larksong.engine.engine import Engine
from larksong.grammars import (
    BrokenFormat,
    CallPolicy,
    WireFormat,
    add_format_file,
    format_names,
    registry,
    wire_format,
)
from larksong.grammars.authoring import ElementFormat
from larksong.grammars.wire.check import flaw_of
from tests.support.calls import read, turn
from tests.support.markers import BY_LETTERS
from tests.support.turns import CALLS, TOOLS
from tests.support.vocabularies import cut

GUIDE = (Path(__file__).parents[2] / "docs" / "adding_a_format.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"`([\w.]+)`:\n\n```\w+\n(.*?)```", GUIDE, re.DOTALL))
FORMAT = FILES["my_format.py"]


def run(folder: Path, command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of the guide, in a folder that is not the repository."""
    root = Path(sys.modules["larksong.grammars"].__path__[0]).parents[1]
    found = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": os.pathsep.join(filter(None, [environment.pop("PYTHONPATH", ""), str(root)])),
        **environment,
    }
    return subprocess.run(["sh", "-c", command], cwd=folder, env=found, capture_output=True, text=True)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the guide's files."""
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def no_formats(monkeypatch: pytest.MonkeyPatch) -> None:
    """No format of a file is known, and none after the test."""
    monkeypatch.setattr(registry, "_of_files", {})


@pytest.fixture
def toy(no_formats: None, folder: Path) -> WireFormat:
    return add_format_file(folder / "my_format.py")


def test_the_guides_format_is_short_and_is_found(toy: WireFormat, folder: Path) -> None:
    assert FORMAT.count("\n") < 50
    assert "toy" in format_names()
    assert wire_format("toy") is toy
    assert add_format_file(folder / "my_format.py") is toy


def test_the_guides_format_constrains_and_reads(toy: WireFormat) -> None:
    for policy in (CallPolicy(), CallPolicy(required=True)):
        matcher = Engine(BY_LETTERS).matcher(toy.grammar(TOOLS, policy, BY_LETTERS))
        calls = turn(read(matcher, cut(BY_LETTERS, toy.render_calls(CALLS).encode()))).calls
        assert [(call.name, call.arguments) for call in calls] == CALLS


def test_the_guides_format_reads_what_nobody_constrained(toy: WireFormat) -> None:
    text = 'See @calls for help.\n@call other {"a" : [1, 2]}@end Bye'
    found = parse_record({"format": "toy", "text": text})
    (call,) = found["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("other", {"a": [1, 2]})
    assert found["content"] == "See @calls for help.\n Bye"


@pytest.fixture
def elements(no_formats: None, folder: Path) -> WireFormat:
    return add_format_file(folder / "my_elements.py")


def test_the_guides_format_of_elements_constrains_and_reads_too(elements: WireFormat) -> None:
    tokens = cut(BY_LETTERS, elements.render_calls(CALLS).encode())
    strict = elements.grammar(TOOLS, CallPolicy(required=True), BY_LETTERS)
    for grammar in (strict, elements.open_grammar(TOOLS, BY_LETTERS)):
        calls = turn(read(Engine(BY_LETTERS).matcher(grammar), tokens)).calls
        assert [(call.name, call.arguments) for call in calls] == CALLS


@pytest.mark.parametrize("end", ["|", "/", "-", "A"])
def test_names_that_nobody_declared_end_where_the_format_ends_them(
    end: str, tmp_path: Path, no_formats: None
) -> None:
    changed = (
        FILES["my_elements.py"].replace('name + ">"', f"name + {end!r}").replace("{name}>", f"{{name}}{end}")
    )
    changed = changed.replace('arg_name_suffix = (">",)', f"arg_name_suffix = ({end!r},)")
    (tmp_path / "my_elements.py").write_text(changed)
    added = add_format_file(tmp_path / "my_elements.py")
    text = added.render_call("get", {"city": "Paris"})
    (call,) = parse_record({"format": "elements", "text": text})["tool_calls"]
    assert (call["function"]["name"], call["function"]["arguments"]) == ("get", '{"city": "Paris"}')


def test_the_guides_commands_do_what_it_says(folder: Path) -> None:
    commands, program = re.findall(r"```sh\n(.*?)```", GUIDE, re.DOTALL)
    printed = run(folder, commands).stdout
    assert printed.startswith("// toy: get_weather\n")
    assert '"name": "get_weather", "arguments": "{\\"city\\": \\"Paris\\"}"' in printed
    assert "these members are declared, and no others may" in printed
    done = run(folder, program)
    assert done.returncode == 0, done.stderr
    written = re.fullmatch(r"@call get_weather (\{.*\})@end\n*", done.stdout)
    assert written is not None, done.stdout
    assert len(json.loads(written[1])["city"]) <= 20


@pytest.mark.parametrize(
    "flags",
    ["", "--format-file my_format.py --format-file second.py", "--format-file my_format.py,second.py"],
)
def test_several_files_are_named_by_flags_or_the_environment(folder: Path, flags: str) -> None:
    (folder / "second.py").write_text(FORMAT.replace('"toy"', '"second"'))
    command = f"echo '@call f {{}}@end' | larksong parse --format second {flags}"
    environment = {} if flags else {"LARKSONG_FORMAT_FILE": "my_format.py,second.py"}
    done = run(folder, command, **environment)
    assert json.loads(done.stdout)["tool_calls"][0]["function"]["name"] == "f", done.stderr


# -- installed distributions


def installed(folder: Path, entries: str, name: str = "toy-formats") -> str:
    """A folder that looks as pip leaves it, with the entry points of a distribution."""
    info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(entries)
    return str(folder)


def test_an_installed_format_is_known_by_its_name(folder: Path) -> None:
    toml = re.search(r"```toml\n(.*?)```", GUIDE, re.DOTALL)
    assert toml is not None
    declared = tomllib.loads(toml[1])
    assert declared["tool"]["setuptools"]["py-modules"] == ["my_format"]
    ((group, entries),) = declared["project"]["entry-points"].items()
    (entry,) = (f"{name} = {value}" for name, value in entries.items())
    path = installed(folder, f"[{group}]\n{entry}\n")
    done = run(folder, "echo '@call f {}@end' | larksong parse --format toy", PYTHONPATH=path)
    assert json.loads(done.stdout)["tool_calls"][0]["function"]["name"] == "f", done.stderr


def test_a_file_of_a_format_that_is_installed_is_refused(
    folder: Path, known_anew: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(installed(folder, "[larksong.formats]\ntoy = my_format\n"))
    with pytest.raises(
        BrokenFormat, match="the installed distribution toy-formats has the wire format 'toy'"
    ):
        add_format_file(folder / "my_format.py")


def test_a_directory_is_no_format_file(tmp_path: Path) -> None:
    with pytest.raises(BrokenFormat, match="it is a directory"):
        add_format_file(tmp_path)


BROKEN = {
    "raising = raising": "raising.py, line 2: ValueError: why",
    "toy = nothing_of_this_name": "cannot be loaded: ModuleNotFoundError: No module named 'nothing_of_this_name'",
    "other = my_format": "its name is 'toy', which the entry point must have, too",
    "toy = my_format:Toy": "FORMAT must be an object of a subclass of WireFormat, not a class: write Toy()",
    "hermes = taken": "another wire format has the name 'hermes' already",
}


@pytest.fixture
def known_anew(no_formats: None) -> Iterator[None]:
    """What is installed is looked for anew, in the test and after it."""
    for found in (registry._entries, registry._installed):
        found.cache_clear()
    yield
    for found in (registry._entries, registry._installed):
        found.cache_clear()


@pytest.mark.parametrize("entry", BROKEN)
def test_a_broken_distribution_is_named_and_keeps_no_other_from_working(
    entry: str,
    folder: Path,
    known_anew: None,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    (folder / "raising.py").write_text("\nraise ValueError('why')\n")
    (folder / "taken.py").write_text(FORMAT.replace('name = "toy"', 'name = "hermes"'))
    monkeypatch.syspath_prepend(installed(folder, f"[larksong.formats]\n{entry}\n"))
    monkeypatch.delitem(sys.modules, "my_format", raising=False)
    assert "hermes" in format_names()
    assert "toy" not in format_names()
    (said,) = caplog.messages
    name = entry.partition(" ")[0]
    assert said.startswith(f"the wire format {name!r} of the distribution toy-formats")
    assert BROKEN[entry] in said
    if name == "hermes":
        assert wire_format("hermes").call_start == "<tool_call>"
    else:
        with pytest.raises(BrokenFormat, match=re.escape(said)):
            wire_format(name)


def test_of_two_distributions_with_one_name_the_first_is_used(
    folder: Path, known_anew: None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("one", "other"):
        (folder / name).mkdir()
        entries = "[larksong.formats]\ntoy = my_format:FORMAT\n"
        monkeypatch.syspath_prepend(installed(folder / name, entries, name))
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.delitem(sys.modules, "my_format", raising=False)
    assert "toy" in format_names()
    assert wire_format("toy").call_start == "@call"
    (said,) = caplog.messages
    assert "another wire format has the name 'toy' already" in said


# -- what is wrong with a file

WRONG = {
    "no file": (None, "my.py: there is no such file"),
    "no FORMAT": ("x = 1\n", "my.py: it defines no FORMAT"),
    "several formats": ("FORMATS = ()\n", "my.py: it defines FORMATS; one FORMAT a file"),
    "another kind": ("FORMAT = 3\n", "FORMAT must be an object of a subclass of WireFormat, not 3"),
    "a class": (FORMAT.replace("Toy()", "Toy"), "not a class: write Toy()"),
    "an exception": ("\n\nraise ValueError('why\\nnot')\n", "my.py, line 3: ValueError: why not"),
    "no Python": ("def f(:\n", "my.py: SyntaxError: invalid syntax"),
    "a method left out": (re.sub(r"    def system_text.*?\n\n", "", FORMAT, flags=re.DOTALL), "system_text"),
    "a name that is taken": (FORMAT.replace('"toy"', '"hermes"'), "has the name 'hermes' already"),
    "an alias that is taken": (
        FORMAT.replace('name = "toy"', 'name = "glm47"'),
        "has the name 'glm47' already",
    ),
    "no name": (FORMAT.replace('    name = "toy"\n', ""), "its class says no name"),
    "a bad template": (FORMAT.replace("calls: call\n", "calls: (call\n"), "Lark cannot read its template: "),
    "a terminal that nothing says": (
        FORMAT.replace("CALL FUNCTION BLANK", "CALL FUNCTION GAP BLANK").replace(
            "%declare CALL", "%declare GAP CALL"
        ),
        "its template has GAP, of which markers says nothing",
    ),
    "no arguments": (
        FORMAT.replace("BLANK ARGUMENTS", "BLANK"),
        "its template lacks ARGUMENTS",
    ),
    "an empty name": (FORMAT.replace('"toy"', '""'), "its name is empty"),
    "aliases as a text": (
        FORMAT.replace('name = "toy"', 'name = "toy"\n    aliases = "osp"'),
        "my.py: aliases must be a tuple of texts: ('osp',)",
    ),
    "reasoning as a text": (
        FORMAT.replace('name = "toy"', 'name = "toy"\n    reasoning = "<reflect>"'),
        "my.py: reasoning must be a tuple of two texts",
    ),
    "a misspelled attribute": (
        FORMAT.replace("call_separator", "call_seperator"),
        "my.py: its class has call_seperator, which nothing reads: call_separator?",
    ),
    "a separator without text": (
        FORMAT.replace('    call_separator = "\\n"\n', ""),
        "my.py: its template has SEPARATOR: its class must say call_separator",
    ),
    "a name behind something": (
        FORMAT.replace("return name\n", 'return "f:" + name\n'),
        "my.py: function_text must begin with the name and hold it once; what stands before it is",
    ),
    "no text of a function": (
        FORMAT.replace("return name\n", "return None\n"),
        "my.py: function_text must return a text, not None",
    ),
    "no markers": (
        FORMAT.replace("return [carrying", "[carrying"),
        "my.py: markers must return a list of terminals",
    ),
    "one marker": (
        re.sub(r"return \[(carrying\(.*?\)\)), .*", r"return \1", FORMAT),
        "my.py: markers must return a list of terminals",
    ),
    "a dict of markers": (
        re.sub(r"return \[carrying.*", "return {}", FORMAT),
        "my.py: markers must return a list of terminals",
    ),
    "a definition as a text": (FORMAT.replace('Literal(" ")', '" "'), "my.py: BLANK: write Literal(' ')"),
    "a name that is not carried": (
        FORMAT.replace("carrying(", "closing("),
        "my.py: BLANK stands between FUNCTION and ARGUMENTS: make it with carrying()",
    ),
    "a section without text": (
        FORMAT.replace("calls: call\n", "calls: SECTION call\n").replace("%declare", "%declare SECTION"),
        "my.py: its template has SECTION: its class must say section_start",
    ),
    "a section that no rule has": (
        FORMAT.replace('name = "toy"', 'name = "toy"\n    section_start = "@calls"'),
        "my.py: its class says section_start: its template must have SECTION",
    ),
    "a terminal that is not declared": (
        FORMAT.replace("%declare CALL SEPARATOR", "%declare CALL"),
        "(a terminal? then it belongs into %declare)",
    ),
    "another end than is rendered": (
        FORMAT.replace('{arguments_text(arguments)}@end"', '{arguments_text(arguments)}@stop"'),
        "my.py: what render_calls writes is not read by the template: refused at byte 36 of '@call get_w",
    ),
    "an end that closes no call": (
        FORMAT.replace('closing("CALL_CLOSE"', 'carrying("CALL_CLOSE"'),
        "my.py: what render_calls writes is read as other calls by the template: '@call get_w",
    ),
    "another separator than is rendered": (
        FORMAT.replace(
            "    def render_call(",
            "    def render_calls(self, calls):\n"
            '        return ", ".join(self.render_call(*call) for call in calls)\n\n    def render_call(',
        ),
        "my.py: what render_calls writes is not read by the template: refused at byte",
    ),
    "a template that can be read in two ways": (
        FORMAT.replace("calls: call\n", "calls: call | other\nother: call\n"),
        "my.py: Lark cannot read its template: Reduce/Reduce collision",
    ),
    "a bad regular expression": (
        FORMAT.replace("    Literal,", "    Literal,\n    Pattern,").replace('Literal(" ")', 'Pattern("(")'),
        "my.py: InvalidPattern: unterminated group at offset 0",
    ),
    "an exception in a method": (FORMAT.replace('Literal(" ")', "nothing"), "NameError: name 'nothing'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_with_a_file_is_said_in_a_sentence(
    case: str, tmp_path: Path, no_formats: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, said = WRONG[case]
    monkeypatch.chdir(tmp_path)
    if text is not None:
        Path("my.py").write_text(text, encoding="utf-8")
    with pytest.raises(BrokenFormat) as caught:
        add_format_file(Path("my.py"))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "toy" not in format_names()


PARTS = {
    **dict.fromkeys(("forbidden_in_names", "arg_name_prefix"), ""),
    **dict.fromkeys(("arg_name_suffix", "arg_value_suffix", "function_close"), "[end]"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_part_of_an_element_that_lacks_or_is_of_another_kind_is_named(
    part: str, elements: WireFormat
) -> None:
    parts = {name: value for name, value in vars(type(elements)).items() if name != part}
    lacking: Any = type("Lacking", (ElementFormat,), parts)
    assert flaw_of(lacking()) == f"its class says no {part}"
    if PARTS[part]:
        wrong: Any = type("Wrong", (type(elements),), {part: "[end]"})
        assert flaw_of(wrong()) == f"{part} must be a tuple of texts: ('[end]',)"


@pytest.mark.parametrize("command", ["parse", "grammar tools.json", "check"])
def test_commands_say_it_in_one_line_and_end_with_2(folder: Path, command: str) -> None:
    done = run(folder, f"larksong {command} --format-file nothing.py < /dev/null")
    assert done.returncode == 2
    assert done.stderr == "larksong: nothing.py: there is no such file\n"


@pytest.mark.parametrize("name", format_names())
def test_larksongs_own_formats_have_no_flaw(name: str) -> None:
    assert flaw_of(wire_format(name)) == ""
