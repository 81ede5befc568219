# SPDX-License-Identifier: BSD-2-Clause
"""Numbers in trace events, as names."""


def name_of(table: tuple[str, ...] | dict[int, str], number: int) -> str:
    if isinstance(table, dict):
        return table.get(number, f"{number:#x}")
    return table[number] if number < len(table) else str(number)
