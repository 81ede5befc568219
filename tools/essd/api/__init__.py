# SPDX-License-Identifier: BSD-2-Clause
"""The Python interface to emulated drives.  `import essd` exports all of it."""

from ..instance.instance import Result
from ..observe.trace import Event
from .background import Background
from .drive import Drive, Port
from .faults import FaultRule, Faults
from .fio import Fio, Io, Load
from .host import Host
from .part import Part, Switch
from .report import Report
from .scenarios import Scenario
from .system import System, attach, up
from .trace import Trace

__all__ = ["Background", "Drive", "Event", "FaultRule", "Faults", "Fio", "Host", "Io", "Load",
           "Part", "Port", "Report", "Result", "Scenario", "Switch", "System", "Trace",
           "attach", "up"]
