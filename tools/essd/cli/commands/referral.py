# SPDX-License-Identifier: BSD-2-Clause
"""`essd referral`: other discovery services that the drive's discovery log names."""

import json
from typing import Annotated

import typer

from ...base import show
from ...instance import fleet
from ...instance.instance import Instance
from ..base import AsJson, DISTURB, Name, command


@command(DISTURB)
def referral(address: Annotated[str, typer.Argument(
                 metavar="[ADDRESS]", show_default=False,
                 help="IP address of the other discovery service.  Default: show the "
                 "list.")] = "",
             service: Annotated[int, typer.Option(
                 min=1, max=65535, metavar="PORT", help="Its service ID.")] = 4420,
             remove: Annotated[bool, typer.Option(
                 "--remove", help="Remove the referral.")] = False,
             drive: Annotated[str, typer.Option(
                 "--part", metavar="DRIVE", show_default=False,
                 help="Drive of a topology.  Default: the only one.")] = "",
             name: Name = "",
             as_json: AsJson = False) -> None:
    """Show or change the referrals of the drive's discovery log (docs/nvme.md, "Discovery")."""
    from ...drive import mgmt
    instance = fleet.one(Instance(name), drive)
    if address:
        mgmt.ask(instance, "referral-remove" if remove else "referral-add",
                 address=address, service=service)
    found = mgmt.ask(instance, "referrals")
    if as_json:
        print(json.dumps(found, indent=2))
        return
    for entry in found["referrals"]:
        show.line(f"{entry['address']} {entry['service']}")
    if not found["referrals"]:
        show.note("the discovery log refers to no other discovery service")
