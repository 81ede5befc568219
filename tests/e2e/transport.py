# SPDX-License-Identifier: BSD-2-Clause
"""The counters of a drive's RNIC that say what went wrong on the wire during a test.

In real time, a busy computer makes packets late, so that most of them are only printed.
An RNR NAK says that the drive had no receive buffer for a command, which happens to no
host that keeps within its queue depth, however busy the computer is.
"""

from essd.base.errors import EssdError
from essd.drive import mgmt
from essd.instance.instance import Instance

RNR = "rnr-naks-out"
SHOWN = ("bad-icrc", "malformed", "out-of-order", "dropped", "sequence-naks-out",
         "other-naks-out", RNR, "naks-in", "rnr-naks-in", "timeouts", "retransmitted",
         "cq-overflows", "parity-errors")


def read(instance: Instance) -> dict[str, int]:
    """The counters of the RNIC since its last reset; {} from a drive that is off."""
    try:
        return dict(mgmt.ask(instance, "counters")["rnic"])
    except EssdError:
        return {}


def check(instance: Instance, before: dict[str, int], may_be_rnr: bool = False) -> None:
    """Print what was counted since `before`, and check that no RNR NAK was sent."""
    after = read(instance)
    # The counters begin at 0 when the drive has started again.
    if after.get("packets-in", 0) < before.get("packets-in", 0):
        before = {}
    grown = {name: after[name] - before.get(name, 0) for name in SHOWN if name in after}
    text = ", ".join(f"{name} {count}" for name, count in grown.items() if count > 0)
    print(f"transport of {instance.name}: {text or 'nothing went wrong'}")
    assert may_be_rnr or grown.get(RNR, 0) <= 0, "the drive has sent RNR NAKs"
