# SPDX-License-Identifier: BSD-2-Clause
"""`essd access`: who may connect to a drive."""

import json
from pathlib import Path
from typing import Annotated

import typer

from ...base import chosen, show
from ...base.errors import EssdError
from ...instance.instance import Instance
from ..base import App, AsJson, DISTURB, app

access = App(
    help="Who may connect: the drive's list of hosts, with their secrets (docs/nvme.md, "
         "\"Who may connect\").", no_args_is_help=False, invoke_without_command=True)
app.add_typer(access, name="access", rich_help_panel=DISTURB)

Name = Annotated[str, typer.Option(
    "--name", metavar="NAME", show_default=False,
    help="Name of the instance.  Default: the only one that runs.")]
Nqn = Annotated[str, typer.Argument(metavar="NQN", help="The host's NQN.")]


def drive_of(ctx: typer.Context, name: str) -> Instance:
    """The instance; --name may stand before the subcommand, too."""
    return Instance(chosen.instance(name or (ctx.obj or {}).get("name", "")))


@access.callback()
def list_hosts(ctx: typer.Context, name: Name = "", as_json: AsJson = False) -> None:
    """Show the list.  Secrets are never shown."""
    from rich.table import Table

    from ...drive import access as core
    ctx.obj = {"name": name}
    if ctx.invoked_subcommand is not None:
        return
    found = core.read(drive_of(ctx, name))
    if as_json:
        print(json.dumps(found, indent=2))
        return
    show.note("only hosts on the list may connect" if found["exclusive"]
              else "every host may connect")
    table = Table(box=None, pad_edge=False)
    for heading in ("host", "authenticates", "drive proves itself", "TLS key", "at least"):
        table.add_column(heading)
    for host in found["hosts"]:
        table.add_row(host["nqn"], "yes" if host["secret"] else "no",
                      "yes" if host["drive-secret"] else "no",
                      "yes" if host.get("tls-key") else "no",
                      f"{host['least-hash']}, {host['least-group']}")
    if found["hosts"]:
        show.console.print(table)
    for host in found["hosts"]:
        for identity in host.get("tls-identities", []):
            digest = " and the key's digest" if identity.startswith("NVMe1") else ""
            show.note(f"TLS identity of {host['nqn']}: {identity}{digest}")


@access.command()
def add(ctx: typer.Context, nqn: Nqn, name: Name = "",
        secret_file: Annotated[str, typer.Option(
            metavar="FILE", help="File with the host's secret, as nvme gen-dhchap-key "
                                 "prints it; - reads standard input.")] = "",
        drive_secret_file: Annotated[str, typer.Option(
            metavar="FILE", help="The same for the drive's secret towards the host.")] = "",
        tls_key_file: Annotated[str, typer.Option(
            metavar="FILE", help="File with the host's key of TLS, as nvme gen-tls-key "
                                 "prints it, or \"none\" to remove it.")] = "",
        least_hash: Annotated[str, typer.Option(
            metavar="HASH", help="The weakest hash function that is accepted.")] = "",
        least_group: Annotated[str, typer.Option(
            metavar="GROUP", help="The weakest group that is accepted.")] = "") -> None:
    """Add a host, or change what is named of its entry."""
    from ...drive import access as core
    named = {"nqn": nqn, "secret": core.secret_of(secret_file),
             "drive-secret": core.secret_of(drive_secret_file),
             "tls-key": core.tls_key_of(tls_key_file),
             "least-hash": least_hash or None, "least-group": least_group or None}
    core.change(drive_of(ctx, name),
                {key: value for key, value in named.items() if value is not None})
    show.note(f"saved {nqn}")


@access.command(name="new-tls-key")
def new_tls_key(ctx: typer.Context, nqn: Nqn, name: Name = "",
                digest: Annotated[int, typer.Option(
                    "--hash", metavar="N", help="As --hmac of nvme gen-tls-key: 0 none, "
                                                "1 SHA-256, 2 SHA-384.")] = 1) -> None:
    """Give a host a new random key of TLS.  It is printed once, here, and never again."""
    from ...drive import access as core
    key = core.new_tls_key(digest)
    core.change(drive_of(ctx, name), {"nqn": nqn, "tls-key": key})
    print(key)
    show.note(f"saved {nqn}")


@access.command()
def remove(ctx: typer.Context, nqn: Nqn, name: Name = "") -> None:
    """Remove a host from the list; its connections go on."""
    from ...drive import mgmt
    mgmt.ask(drive_of(ctx, name), "host-remove", nqn=nqn)
    show.note(f"removed {nqn}")


@access.command()
def disconnect(ctx: typer.Context,
               nqn: Annotated[str, typer.Argument(
                   metavar="[NQN]", show_default=False,
                   help="The host's NQN.")] = "",
               everybody: Annotated[bool, typer.Option(
                   "--all", help="End the associations of all hosts.")] = False,
               name: Name = "") -> None:
    """End the associations of a host, or of all (--all); they may connect again."""
    from ...drive import mgmt
    if everybody == bool(nqn):
        raise EssdError("name one host, or use --all")
    drive = drive_of(ctx, name)
    reply = (mgmt.ask(drive, "disconnect", all=True) if everybody else
             mgmt.ask(drive, "disconnect", hostnqn=nqn))
    count = reply["ended"]
    show.note(f"ended {count} association{'' if count == 1 else 's'}")


@access.command()
def exclusive(ctx: typer.Context, name: Name = "") -> None:
    """From now on only hosts on the list may connect."""
    from ...drive import mgmt
    mgmt.ask(drive_of(ctx, name), "hosts-exclusive", on=True)
    show.note("only hosts on the list may connect")


@access.command(name="open")
def open_to_all(ctx: typer.Context, name: Name = "") -> None:
    """From now on hosts that are not on the list may connect, too."""
    from ...drive import mgmt
    mgmt.ask(drive_of(ctx, name), "hosts-exclusive", on=False)
    show.note("every host may connect")


@access.command()
def load(ctx: typer.Context,
         file: Annotated[Path, typer.Argument(metavar="FILE", help="YAML file.")],
         name: Name = "") -> None:
    """Make the list that of a YAML file."""
    from ...drive import access as core
    count = core.apply_file(drive_of(ctx, name), file)
    show.note(f"the list has {count} host{'' if count == 1 else 's'} now")
