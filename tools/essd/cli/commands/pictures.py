# SPDX-License-Identifier: BSD-2-Clause
"""Commands that show an instance as a whole: top, metrics, cockpit."""

import json
import sys
from typing import Annotated

import typer

from ...instance.instance import Instance
from ..base import LOOK, Name, command

WithLatency = Annotated[bool, typer.Option(
    "--latency", help="Sample the drives' commands for 0.2 s of each second, for "
    "percentiles of their latency.  This costs the drive some of its speed.")]


@command(LOOK)
def top(name: Name = "",
        once: Annotated[bool, typer.Option(
            "--once", help="Print one frame, of one second, and exit.")] = False,
        latency: WithLatency = False,
        as_json: Annotated[bool, typer.Option(
            "--json", help="Print one frame as JSON, and exit.")] = False) -> None:
    """Show drives, ports, hosts and their load in this terminal.  Ctrl-C ends it."""
    from ...observe import metrics, top as top_module
    collector = metrics.Collector(Instance(name), latency)
    if as_json:
        print(json.dumps(collector.two_frames(), indent=2))
        return
    top_module.run(collector, once or not sys.stdout.isatty())


@command(LOOK)
def metrics(name: Name = "", latency: WithLatency = False) -> None:
    """Print the instance's metrics once, in the text format of Prometheus."""
    from ...observe import metrics as metrics_module, metrics_text
    frame = metrics_module.Collector(Instance(name), latency).frame()
    sys.stdout.write(metrics_text.text(frame).decode())


@command(LOOK)
def cockpit(name: Name = "",
            listen: Annotated[str, typer.Option(
                metavar="ADDRESS", help="Address to listen on.  With another one than the "
                "default, whoever has the link can switch the drives' power from other "
                "machines.")] = "127.0.0.1",
            port: Annotated[int, typer.Option(
                min=0, max=65535, help="TCP port; 0: a free one.")] = 0,
            latency: WithLatency = False) -> None:
    """Serve a web page that shows and switches everything (docs/cockpit.md)."""
    from ...cockpit import server
    server.run(Instance(name), listen, port, latency)
