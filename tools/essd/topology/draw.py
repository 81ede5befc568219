# SPDX-License-Identifier: BSD-2-Clause
"""`essd topology`: pictures of a topology, for the terminal and as SVG.

The SVG has hosts in the first row, then the switches, then the drives.  Parts of the
same kind whose cables lead to the same places are one box, such as "drive[0-23]".
"""

import ipaddress
import re
from dataclasses import dataclass, field
from html import escape

from rich.text import Text
from rich.tree import Tree

from ..instance.config import Config, End
from .topology import Cable, Drive, Host, Mark, Switch, Topology

COLOURS = {"host": "cyan", "switch": "yellow", "drive": "green", "": "magenta"}
FILLS = {"host": "#d6ecfa", "switch": "#fdf0c4", "drive": "#d9f2d9", "": "#f3dcf3"}
ROWS = ("host", "switch", "drive", "")
BOX_WIDTH, BOX_HEIGHT = 200, 44
GAP_X, GAP_Y, MARGIN = 30, 90, 20


@dataclass
class Box:
    """One or more parts of a kind that are cabled alike."""

    kind: str
    names: list[str]
    details: list[str]
    addresses: dict[int, list[str]] = field(default_factory=dict)   # by port

    def port_text(self, port: int) -> str:
        """A drive's port or a host's card, with its addresses."""
        word = {"drive": "port", "host": "card"}[self.kind]
        return " ".join([f"{word} {port}", ", ".join(self.addresses.get(port, []))]).rstrip()

    @property
    def facts(self) -> list[str]:
        """All that is known of it, with the addresses of each port."""
        return [*self.details, *(self.port_text(port) for port in sorted(self.addresses)
                                 if self.addresses[port])]

    @property
    def title(self) -> str:
        """The names in short: "drive[0-23]", or the name itself."""
        if len(self.names) == 1:
            return self.names[0]
        numbers = [re.fullmatch(r"(.*?)(\d+)", name) for name in self.names]
        stems = {found[1] for found in numbers if found}
        if None in numbers or len(stems) > 1:
            return ", ".join(self.names)
        values = [int(found[2]) for found in numbers if found]
        if values == list(range(values[0], values[-1] + 1)):
            return f"{stems.pop()}[{values[0]}-{values[-1]}]"
        return f"{stems.pop()}[{','.join(map(str, values))}]"


def of_config(config: Config) -> Topology:
    """The topology of an instance, however it was started."""
    nowhere = Mark(1, 1)
    found = Topology(config.name)
    found.drives = {name: Drive(name, nowhere) for name in config.drives}
    found.hosts = {name: Host(name, nowhere)
                   for name in (*config.hosts, *(["peer"] if config.peer else []))}
    found.switches = {name: Switch(name, nowhere) for name in config.switches}
    for link in config.links:
        words: dict[str, str] = {}
        for end in link.ends:
            if end.part in config.switches:
                said = config.switches[end.part].words.get(end.port, "")
                words |= dict(word.split("=", 1) for word in said.split(",") if word)
            elif end.part in config.drives:
                found.drives[end.part].ports[end.port] = [
                    ipaddress.ip_interface(text) for text in link.targets]
            elif end.part in found.hosts:
                found.hosts[end.part].cards[end.port] = [
                    ipaddress.ip_interface(text) for text in
                    (link.targets if end.part == "peer" else link.hosts)]
        known = all(not end.part or found.kind(end.part) for end in link.ends)
        if known:               # Without a host, the drive's cable leads nowhere.
            found.cables.append(Cable(nowhere, (link.ends[0], link.ends[1]), words))
    return found


def far_ends(found: Topology, name: str) -> list[tuple[End, End, Cable]]:
    """The cables of a part: its own end, the far end, and the cable."""
    return [(cable.ends[n], cable.ends[1 - n], cable) for cable in found.cables
            for n in (0, 1) if cable.ends[n].part == name]


def words_of(cable: Cable) -> str:
    return " ".join(f"{key} {value}" for key, value in cable.words.items())


@dataclass
class Line:
    """One or more cables between two boxes."""

    words: list[str] = field(default_factory=list)      # settings of the cables
    ports: dict[int, set[int]] = field(default_factory=dict)    # by the box's number

    def ports_of(self, n: int, box: Box) -> list[str]:
        """Where the cables are at this box: each port with its addresses."""
        return [box.port_text(port) for port in sorted(self.ports.get(n, ()))]


def details_of(found: Topology, name: str) -> list[str]:
    """What is worth knowing of a part besides its addresses."""
    size = found.drives[name].size if name in found.drives else None
    return [size] if size else []


def addresses_of(found: Topology, name: str) -> dict[int, list[str]]:
    """The addresses of each port of a drive, or of each card of a host."""
    ports = (found.drives[name].ports if name in found.drives else
             found.hosts[name].cards if name in found.hosts else {})
    return {port: [str(address) for address in own] for port, own in ports.items()}


def signature(found: Topology, name: str) -> object:
    """Parts with the same signature are drawn as one box."""
    kind = found.kind(name)
    if kind == "switch":
        return name
    return (kind, tuple(sorted((own.port, far.part or far.outside, words_of(cable),
                                far.port if found.kind(far.part) == "drive" else 0)
                               for own, far, cable in far_ends(found, name))))


def boxes(found: Topology) -> list[Box]:
    groups: dict[object, Box] = {}
    for name in found.parts():
        key = signature(found, name)
        if key in groups:
            groups[key].names.append(name)
            groups[key].details = range_of(groups[key].details, details_of(found, name))
            more = addresses_of(found, name)
            groups[key].addresses = {port: range_of(own, more.get(port, [])) for port, own
                                     in groups[key].addresses.items()}
        else:
            groups[key] = Box(found.kind(name), [name], details_of(found, name),
                              addresses_of(found, name))
    for cable in found.cables:
        for end in cable.ends:
            if end.outside and ("", end.outside) not in groups:
                groups["", end.outside] = Box("", [end.outside], [])
    return list(groups.values())


def range_of(first: list[str], last: list[str]) -> list[str]:
    """The details of several parts: "10.0.0.10/24 ..10.0.0.33"."""
    return [one if one == other else f"{one.partition(' ..')[0]} ..{other.partition('/')[0]}"
            for one, other in zip(first, last, strict=False)]


def lines_between(found: Topology, all_boxes: list[Box]) -> dict[tuple[int, int], Line]:
    """Which boxes are connected, and by which cables."""
    place = {name: n for n, box in enumerate(all_boxes) for name in box.names}
    lines: dict[tuple[int, int], Line] = {}
    for cable in found.cables:
        near, far = sorted(cable.ends, key=lambda end: ROWS.index(found.kind(end.part)))
        key = (place[near.part or near.outside], place[far.part or far.outside])
        line = lines.setdefault(key, Line())
        for end, n in zip((near, far), key, strict=True):
            if found.kind(end.part) in ("drive", "host"):
                line.ports.setdefault(n, set()).add(end.port)
        if cable.words and words_of(cable) not in line.words:
            line.words.append(words_of(cable))
    return lines


# The terminal

def tree(found: Topology) -> Tree:
    """A tree: each switch with what is connected to it, then cables without a switch."""
    all_boxes = boxes(found)
    root = Tree(Text(f"{len(found.hosts)} hosts, {len(found.switches)} switches, "
                     f"{len(found.drives)} drives, {len(found.cables)} cables"))
    lines = lines_between(found, all_boxes)
    done = set()
    for n, box in enumerate(all_boxes):
        if box.kind != "switch":
            continue
        branch = root.add(Text(box.title, COLOURS["switch"]))
        for key, line in lines.items():
            if n in key:
                done.add(key)
                other = key[0] if key[1] == n else key[1]
                branch.add(box_text(all_boxes[other], line.ports_of(other, all_boxes[other]),
                                    line.words))
    for key, line in lines.items():
        if key not in done:
            near, far = (all_boxes[n] for n in key)
            branch = root.add(box_text(near, line.ports_of(key[0], near), []))
            branch.add(box_text(far, line.ports_of(key[1], far), line.words))
    return root


def box_text(box: Box, ports: list[str], words_of_cables: list[str]) -> Text:
    """A part as an entry of the tree: at these ports, by cables with these settings."""
    text = Text(box.title, COLOURS[box.kind])
    if len(box.names) > 1:
        text.append(f"  {len(box.names)} {box.kind}s", "default")
    for words, style in ((box.details, "dim default"), (ports, "bold default"),
                         (words_of_cables, "default")):
        if words:
            text.append(f"  {', '.join(words)}", style)
    return text


# SVG

def switch_levels(found: Topology) -> dict[str, int]:
    """The row of each switch: 1 if a host or the outside is at it, else further down."""
    near = {end.part: other.part for cable in found.cables
            for end, other in (cable.ends, reversed(cable.ends))
            if end.part in found.switches and other.part not in found.switches
            and found.kind(other.part) != "drive"}
    levels = dict.fromkeys(near or found.switches, 1)
    while True:
        more = {end.part: levels[other.part] + 1 for cable in found.cables
                for end, other in (cable.ends, reversed(cable.ends))
                if end.part in found.switches and end.part not in levels
                and other.part in levels}
        if not more:
            return levels | {name: 1 for name in found.switches if name not in levels}
        levels |= more


def svg(found: Topology) -> str:
    """A drawing of its own, without scripts and without references to other files."""
    all_boxes = boxes(found)
    levels = switch_levels(found)
    last = max(levels.values(), default=0) + 1
    at = [{"host": 0, "": 0, "drive": last}.get(box.kind, levels.get(box.names[0], 1))
          for box in all_boxes]
    rows = [[n for n, level in enumerate(at) if level == one] for one in sorted({*at})]
    heights = [max(BOX_HEIGHT + 16 * len(all_boxes[n].facts) for n in row) for row in rows]
    width = 2 * MARGIN + max(len(row) * (BOX_WIDTH + GAP_X) - GAP_X for row in rows)
    height = 2 * MARGIN + sum(heights) + GAP_Y * (len(rows) - 1)
    places: dict[int, tuple[float, float, float]] = {}      # centre x, top, bottom
    top = float(MARGIN)
    for row, tall in zip(rows, heights, strict=True):
        step = (width - 2 * MARGIN) / len(row)
        for n, index in enumerate(row):
            own = BOX_HEIGHT + 16 * len(all_boxes[index].facts)
            places[index] = (MARGIN + step * (n + 0.5), top, top + own)
        top += tall + GAP_Y
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" '
             f'height="{height:.0f}" viewBox="0 0 {width:.0f} {height:.0f}" '
             'font-family="sans-serif" font-size="13">',
             '<rect width="100%" height="100%" fill="white"/>']
    for (one, other), line in lines_between(found, all_boxes).items():
        ports = [f"port {port}" for n in (one, other) if all_boxes[n].kind == "drive"
                 for port in sorted(line.ports.get(n, ()))]
        parts += line_svg(places[one], places[other], [*ports, *line.words])
    for index, box in enumerate(all_boxes):
        parts += box_svg(box, *places[index])
    return "\n".join([*parts, "</svg>"]) + "\n"


def line_svg(one: tuple[float, float, float], other: tuple[float, float, float],
             label: list[str]) -> list[str]:
    """A line from the lower edge of one box to the upper edge of another one."""
    x1, y1, x2, y2 = one[0], one[2], other[0], other[1]
    if one[1] == other[1]:          # in the same row: below the boxes
        bottom = max(one[2], other[2])
        y1, y2 = one[2], other[2]
        path = f"M {x1:.0f} {y1:.0f} C {x1:.0f} {bottom + 50:.0f} {x2:.0f} " \
               f"{bottom + 50:.0f} {x2:.0f} {y2:.0f}"
        middle = ((x1 + x2) / 2, bottom + 40)
    else:
        path = f"M {x1:.0f} {y1:.0f} L {x2:.0f} {y2:.0f}"
        # Labels of lines that cross are not at the same place.
        middle = (x1 + 0.7 * (x2 - x1), y1 + 0.7 * (y2 - y1))
    found = [f'<path d="{path}" stroke="#555" fill="none"/>']
    if label:
        found.append(f'<text x="{middle[0]:.0f}" y="{middle[1]:.0f}" font-size="11" '
                     'text-anchor="middle" stroke="white" stroke-width="4" '
                     f'paint-order="stroke">{escape(", ".join(label))}</text>')
    return found


def box_svg(box: Box, x: float, top: float, bottom: float) -> list[str]:
    left = x - BOX_WIDTH / 2
    found = []
    if len(box.names) > 1:          # a second sheet behind the first one
        found.append(rect_svg(left + 5, top + 5, bottom - top, FILLS[box.kind]))
    found.append(rect_svg(left, top, bottom - top, FILLS[box.kind]))
    title = escape(box.title)
    size = 13 if len(box.title) < 20 else 10
    found.append(f'<text x="{x:.0f}" y="{top + 20:.0f}" text-anchor="middle" '
                 f'font-weight="bold" font-size="{size}">{title}</text>')
    kind = box.kind or "outside"
    many = f"{len(box.names)} {kind}s" if len(box.names) > 1 else kind
    for n, words in enumerate([many, *box.facts]):
        found.append(f'<text x="{x:.0f}" y="{top + 36 + 16 * n:.0f}" font-size="11" '
                     f'text-anchor="middle" fill="#444">{escape(words)}</text>')
    return found


def rect_svg(left: float, top: float, height: float, fill: str) -> str:
    return (f'<rect x="{left:.0f}" y="{top:.0f}" width="{BOX_WIDTH}" height="{height:.0f}" '
            f'rx="6" fill="{fill}" stroke="#555"/>')
