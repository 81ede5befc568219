#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Generate tables of the firmware from settings.toml.

With --check, no file is written: the names of outdated files are printed, and the
exit status is 1 if there are any.
"""

import re
import sys
import textwrap
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from essd.base.paths import TOP  # noqa: E402
from essd.settings.schema import Field, Part, Schema, Setting, schema  # noqa: E402

HEAD = ("/* SPDX-License-Identifier: BSD-2-Clause */\n"
        "/* Made from firmware/settings/settings.toml by tools/settings_gen.py. */\n")
COMMENT_WIDTH = 80 - 4      # of a comment that is indented as an enumerator
C_KINDS = {"name": "word", "network4": "port_ipv4", "network6": "port_ipv6",
           "network": "extra", "address4": "ipv4", "address6": "ipv6",
           "address": "server", "switch": "switch", "priorities": "mask",
           "namespaces": "nsids"}


# C

def record_bytes(found: Schema, setting: Setting) -> int:
    """The number of bytes that the block has for a number."""
    part, _, name = setting.record[0].partition(".")
    return next((field.size for field in found.parts[part].fields
                 if field.name == name), 1)


def c_kind(found: Schema, setting: Setting) -> str:
    if setting.names:
        return setting.names
    if setting.kind == "number":
        return "byte" if record_bytes(found, setting) == 1 else "short"
    if setting.kind == "choice":
        numbers = list(setting.numbers)
        return "byte" if numbers == list(range(len(numbers))) else "speed"
    return C_KINDS[setting.kind]


def c_range(setting: Setting) -> tuple[int, int]:
    if setting.kind == "choice" and not setting.names:
        return min(setting.numbers), max(setting.numbers)
    return setting.min, setting.max


def rows(found: Schema) -> str:
    """The firmware's table of keys."""
    lines = [HEAD]
    for setting in found.settings.values():
        least, most = c_range(setting)
        field = setting.field.replace("#", "0")
        stride = (f"SIZE_OF({setting.field.partition('#')[0]}0])"
                  if "#" in setting.field else "0")
        zero = setting.default if setting.zero_is_default else "0"
        lines.append(
            "{" f'\n    .name = "{setting.key.replace(".N.", ".#.")}",\n'
            f"    .kind = &config_{c_kind(found, setting)},\n"
            f"    .at = OFFSET_OF({field}),\n"
            f'    .allowed = "{setting.allowed}",\n'
            f"    .stride = {stride},\n"
            f"    .min = {least},\n    .max = {most},\n    .zero = {zero},\n"
            f"    .is_live = {'true' if setting.live else 'false'},\n" "},\n")
    return "".join(lines)


def groups(found: Schema) -> str:
    lines = [HEAD]
    for group in found.groups.values():
        lines.append(f'{{"{group.prefix}.#.", {group.count},\n'
                     f' "{group.too_many}"}},\n')
    return "".join(lines)


def names(found: Schema) -> str:
    """The words of choices that are enums, in the enums' order."""
    lines = [HEAD]
    for setting in found.settings.values():
        if not setting.names:
            continue
        words = ", ".join(f'"{word}"' for word in setting.by_number)
        lines.append(f"static const char *const {setting.names}_names[] = "
                     f"{{{words}, NULL}};\n")
        for number, word in sorted(zip(setting.numbers, setting.values, strict=True)):
            constant = f"CONFIG_{setting.names}_{word}".upper().replace("-", "_")
            lines.append(f'_Static_assert({constant} == {number}, "{setting.key}");\n')
    return "".join(lines)


def comment_lines(field: Field) -> list[str]:
    """What a field is, as a comment of C."""
    doc = re.sub("[*`]", "", field.doc)         # marks of Markdown
    size = field.end - field.at
    text = f"{size} bytes: {doc}" if size > 1 else doc
    if len(text) <= COMMENT_WIDTH - len("/*  */"):
        return [f"    /* {text} */"]
    lines = textwrap.wrap(text, COMMENT_WIDTH - len(" * "), break_on_hyphens=False)
    return ["    /*", *(f"     * {line}" for line in lines), "     */"]


def part_lines(part: Part) -> list[str]:
    prefix = part.name.upper()
    lines = []
    for field in part.fields:
        lines += [*comment_lines(field), f"    {prefix}_{field.name} = {field.at},"]
    lines.append(f"    {prefix}_LEN = {part.len},")
    for field in part.fields:
        for number, bit in enumerate(field.bits):
            lines.append(f"    {bit} = {1 << number:#04x},")
        if field.bits:
            common = field.bits[0].partition("_")[0]
            name = field.name if field.name.endswith("FLAGS") else common
            name = f"{prefix}_FLAGS" if field.name == "FLAGS" else name
            lines.append(f"    {name}_ALL = {(1 << len(field.bits)) - 1:#04x},")
    return lines


def limit_lines(setting: Setting) -> list[str]:
    default = (str(setting.numbers[setting.values.index(setting.default)])
               if setting.values else setting.default)
    lines = [f"    {setting.limits}_DEFAULT = {default},"]
    if setting.kind == "number":
        lines += [f"    {setting.limits}_MIN = {setting.min},",
                  f"    {setting.limits}_MAX = {setting.max},"]
    elif setting.kind == "choice":
        lines.append(f"    {setting.limits}_MAX = {max(setting.numbers)},")
    return lines


def layout(found: Schema) -> str:
    """Offsets, bits and limits of the configuration block."""
    lines = ["#ifndef ESSD_STORE_CONFIG_LAYOUT_H", "#define ESSD_STORE_CONFIG_LAYOUT_H",
             "", "/*", " * Byte offsets in each part of the configuration block, and bits; numbers",
             " * are little-endian.  A field without a size has one byte.  Other bytes are",
             " * reserved and zero.", " */"]
    for part in found.parts.values():
        lines += ["enum {", *part_lines(part), "};", ""]
    lines += ["/* Defaults and limits, as the block has them. */", "enum {"]
    for setting in found.settings.values():
        if setting.limits:
            lines += limit_lines(setting)
    return HEAD + "\n".join([*lines, "};", "", "#endif"]) + "\n"


def outputs(found: Schema) -> dict[Path, str]:
    folder = TOP / "firmware/settings"
    return {
        folder / "config_rows.inc": rows(found),
        folder / "config_groups.inc": groups(found),
        folder / "config_names.inc": names(found),
        TOP / "firmware/store/config_layout.h": layout(found)}


def stale(found: Schema) -> dict[Path, str]:
    """The files that do not agree with the schema, with their new text."""
    return {path: text for path, text in outputs(found).items()
            if not path.exists() or path.read_text(encoding="utf-8") != text}


def main(words: list[str]) -> int:
    if words not in ([], ["--check"]):
        print("usage: tools/settings_gen.py [--check]", file=sys.stderr)
        return 2
    changes = stale(schema())
    for path, text in changes.items():
        name = path.relative_to(TOP)
        if words:
            print(f"{name} does not follow firmware/settings/settings.toml: "
                  "run tools/settings_gen.py")
        else:
            path.write_text(text, encoding="utf-8")
            print(f"{name}: written")
    return 1 if words and changes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
