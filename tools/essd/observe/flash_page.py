# SPDX-License-Identifier: BSD-2-Clause
"""`essd media map --html`: the map of the flash as one page that needs nothing else."""

import html
from typing import Any

from . import flash_map

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title><style>
:root {{ color-scheme: light dark; --ink: #1c2733; --paper: #fff; --line: #8a97a5;
  --free: #d9efe0; --valid: 31 95 166; --bad: #b3261e; --moves: #b26a00; }}
@media (prefers-color-scheme: dark) {{ :root {{ --ink: #e6edf3; --paper: #14191f;
  --line: #5f6c7a; --free: #1f3b2a; --valid: 92 158 230; --bad: #ff6b61;
  --moves: #ffb454; }} }}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper);
  margin: 2em auto; max-width: 60em; padding: 0 1em; }}
ul.map {{ list-style: none; padding: 0; display: grid; gap: 2px;
  grid-template-columns: repeat(auto-fill, minmax(1.5em, 1fr)); }}
ul.map li {{ aspect-ratio: 1; border: 1px solid var(--line); font-size: .75em;
  display: grid; place-items: center; background: rgb(var(--valid) / var(--share, 0)); }}
ul.map li.free {{ background: var(--free); }}
ul.map li.retired {{ background: var(--bad); }}
ul.map li.moves {{ outline: 2px solid var(--moves); }}
table {{ border-collapse: collapse; }} td, th {{ padding: .2em 1em .2em 0; text-align: left; }}
tr.dead td {{ color: var(--bad); font-weight: bold; }}
meter {{ width: 12em; }}
</style></head><body>
"""


def cell(row: dict[str, Any]) -> str:
    share = row["valid"] / max(1, row["capacity"])
    words = [f"superblock {row['superblock']}: {row['state']}"]
    if row["stream"]:
        words.append(f"for {row['stream']}s" if row["stream"] == "host" else "for moves")
    words.append(f"{row['valid']} of {row['capacity']} units valid ({100 * share:.0f}%)")
    words.append(f"{row['erasures']} erasures")
    if row["age-rows"]:
        words.append(f"closed {row['age-rows']} rows ago")
    if row["moves-for"]:
        words.append(f"moved for {row['moves-for']}")
    kinds = " ".join([row["state"], *["moves"] * bool(row["moves-for"])])
    label = html.escape(", ".join(words), quote=True)
    return (f'<li class="{kinds}" style="--share: {share:.2f}" title="{label}" '
            f'aria-label="{label}">{flash_map.letter(row)}</li>')


def die_row(die: dict[str, Any]) -> str:
    place = f"channel {die['channel']} die {die['die']}"
    if die["dead"]:
        return f'<tr class="dead"><td>{place}</td><td>dead</td></tr>'
    if die["busy"] is None:
        return f"<tr><td>{place}</td><td>alive</td></tr>"
    percent = 100 * die["busy"]
    return (f'<tr><td>{place}</td><td><meter value="{die["busy"]}" aria-label="{place}: '
            f'{percent:.1f}% busy"></meter> {percent:.1f}% busy</td></tr>')


def page(facts: dict[str, Any]) -> str:
    title = html.escape(f"Flash of {facts['drive']} of {facts['name']}")
    lines = "".join(f"<p>{html.escape(line)}</p>\n"
                    for line in flash_map.totals(facts["superblocks"]))
    return (HEAD.format(title=title) + f"<h1>{title}</h1>\n{lines}"
            + "<h2>Dies</h2>\n<table>" + "".join(map(die_row, facts["dies"]))
            + "</table>\n<h2>Superblocks</h2>\n<ul class=\"map\">"
            + "".join(map(cell, facts["superblocks"]))
            + f"</ul>\n<p>{html.escape(flash_map.LEGEND)}; dark: many valid units; framed: is "
              "moved soon.</p>\n</body></html>\n")
