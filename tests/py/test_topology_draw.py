# SPDX-License-Identifier: BSD-2-Clause
"""Drawings of topologies: each part and each cable is in them."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

from essd.base import paths, show
from essd.instance.config import Config, Drive, Host
from essd.setup import setup
from essd.setup.setup import Wish
from essd.topology import draw as topology_draw, reader as topology_yaml, topology
from essd.topology.topology import Topology

EXAMPLES = sorted((paths.TOP / "examples/topologies").glob("*.yaml"))


def four() -> Topology:
    return topology_yaml.load(topology.of_drives(4, "64M", None, 1, True), "t", Path())


def in_terminal(found: Topology) -> str:
    with show.console.capture() as captured:
        show.console.print(topology_draw.tree(found))
    return captured.get()


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda x: x.stem)
def test_each_part_of_an_example_is_in_one_box_and_each_cable_is_a_line(path: Path) -> None:
    found = topology_yaml.read(path)
    boxes = topology_draw.boxes(found)
    names = [name for box in boxes for name in box.names]
    assert sorted(names) == sorted({*found.parts(), *(
        end.outside for cable in found.cables for end in cable.ends if end.outside)})
    lines = topology_draw.lines_between(found, boxes)
    for cable in found.cables:
        ends = {n for n, box in enumerate(boxes) for end in cable.ends
                if (end.part or end.outside) in box.names}
        assert any(set(key) == ends for key in lines), cable
    drawing = ElementTree.fromstring(topology_draw.svg(found))
    space = "{http://www.w3.org/2000/svg}"
    texts = [text.text for text in drawing.iter(f"{space}text")]
    assert all(box.title in texts for box in boxes)
    assert len(list(drawing.iter(f"{space}path"))) == len(lines)


def test_switches_further_from_the_hosts_are_in_lower_rows() -> None:
    found = topology_yaml.read(paths.TOP / "examples/topologies/rack.yaml")
    assert topology_draw.switch_levels(found) == {
        "spine0": 1, "spine1": 1, "ebof0-switch0": 2, "ebof0-switch1": 2,
        "ebof1-switch0": 2, "ebof1-switch1": 2}


def test_drives_that_are_cabled_alike_are_one_box() -> None:
    said = in_terminal(four())
    assert "1 hosts, 2 switches, 4 drives, 10 cables" in said
    assert "drive[0-3]  4 drives  64M  port 0 10.0.0.10/24 ..10.0.0.13" in said
    assert said.count("drive[0-3]") == 2        # once for each switch


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda x: x.stem)
def test_each_address_is_drawn_at_its_own_switch_only(path: Path) -> None:
    found = topology_yaml.read(path)
    said = in_terminal(found).splitlines()
    for name in (*found.drives, *found.hosts):
        for port, addresses in topology_draw.addresses_of(found, name).items():
            at = {end.part or end.outside for own, end, _ in topology_draw.far_ends(found, name)
                  if own.port == port}
            for address in addresses:
                places, here = [], ""
                for line in said:
                    indent, _, text = line.partition("── ")
                    if len(indent) <= 1:
                        here = text.partition(" ")[0]
                    elif re.search(rf"[ ,]{re.escape(address)}\b", text):
                        places.append(here)
                assert set(places) <= at, (name, port, address, places)


def test_the_addresses_of_two_switches_are_apart() -> None:
    first, second = in_terminal(four()).split("switch1")
    assert "10.0.0." in first and "10.0.1." not in first
    assert "10.0.1." in second and "10.0.0." not in second


def test_a_box_names_the_port_of_each_address() -> None:
    drawing = topology_draw.svg(four())
    assert "port 0 10.0.0.10/24 ..10.0.0.13" in drawing
    assert "port 1 10.0.1.10/24 ..10.0.1.13" in drawing
    assert "card 1 10.0.1.1/24" in drawing


def test_settings_of_cables_are_shown_and_text_is_escaped() -> None:
    found = topology_yaml.load(
        "drives: {d: {}}\nswitches: {s: {}}\ncables:\n- {cable: 'd:0 - s', loss: 0.01}\n"
        "- s - dial=/tmp/<&>\n", "t", Path())
    assert re.search(r"port 0 [0-9./]+  loss 0\.01", in_terminal(found))
    drawing = topology_draw.svg(found)
    assert "dial=/tmp/&lt;&amp;&gt;" in drawing
    ElementTree.fromstring(drawing)


def test_an_instance_that_no_file_describes_is_drawn_too() -> None:
    links = setup.links(Wish(), setup.wanted(Wish(), None))
    config = Config("x", "/guest", "tcg", links,
                    {"drive": Drive("q", "f", "m", "raw", "nqn")}, {"host": Host()})
    found = topology_draw.of_config(config)
    assert len(found.cables) == 2
    assert "port 0 10.0.0.10/24, port 1 10.0.1.10/24" in in_terminal(found)
    assert "10.0.1.1/24" in topology_draw.svg(found)
    config.hosts.clear()
    assert topology_draw.of_config(config).cables == []
