# SPDX-License-Identifier: BSD-2-Clause
"""Manual pages made from the help of the commands, for `essd man`.

A page uses only the macros of man(7) that man-db and mandoc both know: TH, SH, SS, TP,
PP, B.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECTION = "1"
MARKUP = re.compile(r"\[(/?)bold\]")


def roff(text: str) -> str:
    """Plain text as roff input; [bold] becomes a bold font."""
    text = text.replace("\\", r"\e").replace("-", r"\-")
    text = MARKUP.sub(lambda found: r"\fR" if found[1] else r"\fB", text)
    return "\n".join(rf"\&{line}" if line[:1] in (".", "'") else line
                     for line in text.splitlines())


def paragraphs(text: str) -> Iterator[str]:
    """The paragraphs of a help text, each in one line."""
    for paragraph in re.split(r"\n\s*\n", text.strip()):
        yield " ".join(paragraph.split())


def bold(text: str) -> str:
    return rf"\fB{roff(text)}\fR"


def italic(text: str) -> str:
    return rf"\fI{roff(text)}\fR"


def is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def value_word(parameter: Any) -> str:
    """What stands for the value of an option or an argument."""
    if is_argument(parameter):
        word = str(parameter.metavar or parameter.name.upper())
        return word if parameter.required or word.startswith("[") else f"[{word}]"
    if parameter.is_flag:
        return ""
    return str(parameter.metavar or "VALUE")


def heading(parameter: Any) -> str:
    """The option with its spellings and its value, or the argument."""
    word = value_word(parameter)
    if is_argument(parameter):
        return italic(word)
    names = ", ".join(bold(name) for name in
                      (*parameter.opts, *parameter.secondary_opts))
    return f"{names} {italic(word)}" if word else names


def shown_parameters(command: Any) -> list[Any]:
    return [parameter for parameter in command.params
            if not getattr(parameter, "hidden", False)]


def parameters(command: Any) -> Iterator[str]:
    """The sections about arguments and options."""
    for title, wanted in (("ARGUMENTS", True), ("OPTIONS", False)):
        found = [p for p in shown_parameters(command) if is_argument(p) == wanted]
        if found:
            yield f".SH {title}"
        for parameter in found:
            yield ".TP"
            yield heading(parameter)
            yield roff(" ".join((parameter.help or "").split())) or r"\&"


def synopsis(name: str, command: Any) -> str:
    words = [bold(name)]
    if any(not is_argument(p) for p in shown_parameters(command)):
        words.append(f"[{italic('OPTION')}]...")
    words += [italic(value_word(p)) for p in shown_parameters(command)
              if is_argument(p)]
    if hasattr(command, "commands"):
        words.append(f"[{italic('COMMAND')}]")
    return " ".join(words)


def subcommands(command: Any, context: Any, page: str) -> Iterator[str]:
    """The sections about the commands of a group, by their place in the help."""
    last = ""
    yield ".SH COMMANDS"
    for name in command.list_commands(context):
        one = command.commands[name]
        panel = getattr(one, "rich_help_panel", None)
        if isinstance(panel, str) and panel != last:
            yield f".SS {roff(panel)}"
            last = panel
        yield ".TP"
        yield f"{bold(f'{page}-{name}')}({SECTION})"
        yield roff(next(paragraphs(one.help or ""), ""))


def page(name: str, command: Any, context: Any, version: str,
         others: list[str]) -> str:
    """One manual page."""
    file = name.replace(" ", "-")
    texts = list(paragraphs(command.help or ""))
    summary = MARKUP.sub("", texts[0] if texts else "").removesuffix(".")
    lines = [f'.TH "{roff(file.upper())}" "{SECTION}" "" "essd {roff(version)}" "essd"',
             ".SH NAME", rf"{roff(file)} \- {roff(summary)}",
             ".SH SYNOPSIS", synopsis(name, command), ".SH DESCRIPTION"]
    for text in texts:
        lines += [".PP", roff(text)]
    lines += parameters(command)
    if hasattr(command, "commands"):
        lines += subcommands(command, context, file)
    if others:
        lines += [".SH SEE ALSO",
                  ", ".join(f"{bold(other)}({SECTION})" for other in others)]
    return "\n".join(lines) + "\n"


def walk(command: Any, name: str, parent: Any = None) -> Iterator[tuple[str, Any, Any]]:
    """Name, command and context of a command and of all below it."""
    context = command.context_class(command, info_name=name.split()[-1], parent=parent)
    yield name, command, context
    for word, below in getattr(command, "commands", {}).items():
        yield from walk(below, f"{name} {word}", context)


def pages(root: Any, version: str) -> dict[str, str]:
    """File name and content of every page."""
    found = list(walk(root, "essd"))
    made = {}
    for name, command, context in found:
        above = name.rpartition(" ")[0].replace(" ", "-")
        made[f"{name.replace(' ', '-')}.{SECTION}"] = page(
            name, command, context, version, [above] if above else [])
    return made


def write(folder: Path, root: Any, version: str) -> list[Path]:
    """Write all pages into man1 of this folder, where man(1) looks for them."""
    place = folder / f"man{SECTION}"
    place.mkdir(parents=True, exist_ok=True)
    written = []
    for name, text in pages(root, version).items():
        (place / name).write_text(text, encoding="utf-8")
        written.append(place / name)
    return written
