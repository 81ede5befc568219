# SPDX-License-Identifier: BSD-2-Clause
"""`essd port`: links, link partners, cables and counters of the drive's ports."""

import dataclasses
import time
from dataclasses import dataclass
from typing import Any

from rich.table import Table
from rich.text import Text

from ..base.chosen import check_word
from ..base.errors import EssdError
from ..instance.instance import Instance
from ..machine.drive import port_get

FECS = ("none", "fc", "rs", "auto")
FEC_WORDS = {"none": "none", "fc": "FC-FEC", "rs": "RS-FEC", "auto": "auto"}
SPEEDS = (10, 25)
BER_MAX = 0.5
FLAP_S = 0.5        # seconds unplugged and plugged: the host notices both
LINK_S = 5.0


@dataclass
class Wish:
    """Changes of a port's cable and link partner; None leaves a value as it is."""

    partner_fec: str | None = None
    partner_speed: int | None = None
    present: bool | None = None
    partner_fault: bool | None = None
    ber: float | None = None
    seed: int | None = None

    def check(self) -> None:
        if self.partner_fec is not None:
            check_word("--partner-fec", self.partner_fec, FECS)
        if self.partner_speed not in (None, *SPEEDS):
            raise EssdError(f"--partner-speed {self.partner_speed}: must be 10 or 25 "
                            "(Gb/s)")
        if self.ber is not None and not 0 <= self.ber <= BER_MAX:
            raise EssdError(f"--ber {self.ber}: must be a number from 0 to {BER_MAX}, "
                            "such as 1e-6")
        if self.seed is not None and not 0 <= self.seed < 1 << 64:
            raise EssdError(f"--seed {self.seed}: must be a number from 0 to 2^64 - 1")


def number_of(instance: Instance, number: int) -> int:
    links = instance.config.ports_of(instance.drive)
    if number not in links:
        raise EssdError(f"the drive has no port {number}; its ports are "
                        f"{' and '.join(map(str, links)) or 'none'}")
    return number


def get(instance: Instance, number: int, name: str) -> Any:
    command, arguments = port_get(number, name)
    return instance.ask("qmp", part=instance.drive, execute=command, arguments=arguments)


def change(instance: Instance, number: int, wish: Wish) -> None:
    """Apply the changes; the seed goes first, because setting the bit error ratio
    restarts the random sequence from the seed."""
    wish.check()
    settings = dataclasses.asdict(wish)
    wanted = {name.replace("_", "-"): settings[name]
              for name in ("seed", *(n for n in settings if n != "seed"))
              if settings[name] is not None}
    if wanted:
        instance.ask("partner", part=instance.drive, port=number, settings=wanted)


def state(instance: Instance, number: int) -> dict[str, Any]:
    """The state of one port, as `--json` shows it."""
    link = instance.config.ports_of(instance.drive)[number]
    cable = instance.status()["cables"][str(link.number)]
    partner = {name: get(instance, number, name) for name in
               ("partner-fec", "partner-speed", "present", "partner-fault", "ber",
                "seed")}
    return {"port": number, **get(instance, number, "state"), **partner,
            "plugged": cable["plugged"], "carrier": cable["carrier"]}


def states(instance: Instance, number: int | None) -> list[dict[str, Any]]:
    ports = instance.config.ports_of(instance.drive)
    if not ports:
        raise EssdError("this instance has no drive")
    if instance.status()["parts"][instance.drive]["state"] != "running":
        raise EssdError("the drive is not powered: start it with "
                        f"{instance.drive_hint('power-on')}")
    return [state(instance, n) for n in
            (ports if number is None else [number_of(instance, number)])]


def plug(instance: Instance, number: int, plugged: bool) -> None:
    instance.ask("port", part=instance.drive, port=number, plugged=plugged)


def flap(instance: Instance, number: int, count: int) -> None:
    """Pull and plug the cable `count` times; wait until the link is up again."""
    was_up = get(instance, number, "link-up")
    for _ in range(count):
        plug(instance, number, False)
        time.sleep(FLAP_S)
        plug(instance, number, True)
        time.sleep(FLAP_S)
    deadline = time.monotonic() + LINK_S
    while was_up and not get(instance, number, "link-up"):
        if time.monotonic() > deadline:
            raise EssdError(f"port {number} did not come up again within "
                            f"{LINK_S:.0f} s: "
                            f"{get(instance, number, 'state')['reason']}")
        time.sleep(0.05)


def partner_words(port: dict[str, Any]) -> str:
    if not port["present"]:
        return "absent"
    words = f"{port['partner-speed']} Gb/s, {FEC_WORDS[port['partner-fec']]}"
    return words + (", fault" if port["partner-fault"] else "")


def table(ports: list[dict[str, Any]]) -> Table:
    found = Table(box=None, pad_edge=False)
    for heading in ("port", "link", "speed", "FEC", "partner", "BER", "frames in",
                    "frames out", "bad FCS", "corrected", "uncorrectable",
                    "link changes"):
        found.add_column(heading)
    for port in ports:
        count = port["counters"]
        link = (Text("up", "green") if port["up"]
                else Text.assemble(("down", "red"), f": {port['reason']}"))
        found.add_row(
            str(port["port"]), link, f"{port['speed']} Gb/s", FEC_WORDS[port["fec"]],
            partner_words(port), f"{port['ber']:.3g}",
            str(count["aFramesReceivedOK"]), str(count["aFramesTransmittedOK"]),
            str(count["aFrameCheckSequenceErrors"]),
            str(count["aFECCorrectedBlocks"]), str(count["aFECUncorrectableBlocks"]),
            str(count["linkChanges"]))
    return found


def counters(port: dict[str, Any]) -> Table:
    """The port's counters that are not 0, sorted by name."""
    found = Table(box=None, pad_edge=False, show_header=False)
    found.add_column()
    found.add_column(justify="right")
    for name, value in sorted(port["counters"].items()):
        if value:
            found.add_row(name, str(value))
    return found
