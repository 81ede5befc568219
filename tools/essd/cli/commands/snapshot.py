# SPDX-License-Identifier: BSD-2-Clause
"""Commands that list, remove and fork snapshots; `save` and `load` are in run.py."""

from typing import Annotated

import typer

from ...base import chosen, show
from .. import completion
from ..base import AsJson, RUN, command

Of = Annotated[str, typer.Option(
    "--name", metavar="NAME", show_default=False, autocompletion=completion.instances,
    help="Name of the instance.  Default: the only one that runs, or default.")]


def instance_of(name: str) -> str:
    """The instance that is meant; it need not be running."""
    return chosen.instance(name)


@command(RUN, "snapshots")
def list_snapshots(remove: Annotated[str, typer.Option(
                       "--remove", metavar="SNAPSHOT", help="Delete this snapshot.")] = "",
                   name: Of = "",
                   as_json: AsJson = False) -> None:
    """List the snapshots of an instance, or delete one."""
    from ...storage import snapshots
    name = instance_of(name)
    if remove:
        snapshots.remove(name, remove)
        show.note(f"{remove}: deleted")
        return
    show.listing(snapshots.list_all(name), as_json, snapshots.table,
                 f"{name} has no snapshots: {chosen.hint(name, 'save', 'NAME')} saves one")


@command(RUN)
def fork(snapshot: Annotated[str, typer.Argument(help="Name of the snapshot.")],
         new: Annotated[str, typer.Argument(help="Name of the new instance.")],
         name: Of = "") -> None:
    """Start a second instance from a snapshot: both go on from the same state."""
    from ...storage import snapshots
    with show.busy(f"starting {new}"):
        instance = snapshots.fork(instance_of(name), snapshot, new)
    show.note(f"{new} runs from the snapshot {snapshot}: {instance.hint('status')}")
