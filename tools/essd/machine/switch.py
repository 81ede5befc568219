# SPDX-License-Identifier: BSD-2-Clause
"""The command line of a switch of a topology: the program essd-switch."""

from pathlib import Path

from ..instance.config import Config, part_file
from .vm import option

SWITCH_LINE_MAX = 4000      # characters of one request
SWITCH_ANSWER_MAX = 2 << 20     # of one answer: more than a switch sends
SWITCH_ANSWER_S = 30.0


def switch_control(folder: Path, part: str) -> Path:
    return part_file(folder, part, "control")


def switch_command(config: Config, part: str, folder: Path) -> list[str]:
    """The command that starts a switch; its ports are numbered from 0."""
    switch = config.switches[part]
    command = [switch.program, "--control", str(switch_control(folder, part)),
               *switch.options]
    for number, link in config.ports_of(part).items():
        far = link.far_end(part)
        if far.outside:
            place = option(far.outside)
        else:
            kind = "listen" if link.listens(part) else "dial"
            place = f"{kind}={option(link.socket(folder))}"
        words = [place, f"name={far.part}.{far.port}" if far.part else f"name=outside{number}"]
        if switch.words.get(number):
            words.append(switch.words[number])
        if link in config.captures(part):
            words.append(f"capture={option(link.pcap(folder))}")
            if config.capture_bytes:
                words.append(f"capture-size={config.capture_bytes}")
        command += ["--port", ",".join(words)]
    return command
