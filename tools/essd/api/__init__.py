# SPDX-License-Identifier: BSD-2-Clause
"""The Python interface to emulated drives.  `import essd` exports all of it."""

from ..instance import Result
from ..trace import Event
from .drive import Drive, Port
from .faults import FaultRule, Faults
from .host import Host
from .part import Part, Switch
from .system import System, attach, up
from .trace import Trace

__all__ = ["Drive", "Event", "FaultRule", "Faults", "Host", "Part", "Port", "Result",
           "Switch", "System", "Trace", "attach", "up"]
