# SPDX-License-Identifier: BSD-2-Clause
"""The essd command, and the Python interface to emulated drives (docs/python.md).

    import essd

    with essd.up(drives=2, size="256M") as system:
        print(system.host.run("nvme list").output)

The names below are loaded when they are first used, so that the command line
starts quickly.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api import (Background, Drive, Event, FaultRule, Faults, Fio, Host, Io, Load, Part,
                      Port, Report, Result, Scenario, Switch, System, Trace, attach, up)
    from .base.errors import EssdError

__all__ = ["Background", "Drive", "EssdError", "Event", "FaultRule", "Faults", "Fio", "Host",
           "Io", "Load", "Part", "Port", "Report", "Result", "Scenario", "Switch", "System",
           "Trace", "__version__", "attach", "up"]

__version__: str


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from .build.fw_build import version
        return version()
    if name == "EssdError":
        from .base.errors import EssdError
        return EssdError
    if name in __all__:
        from . import api
        return getattr(api, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
