# SPDX-License-Identifier: BSD-2-Clause
"""What the cockpit's switches do: a few commands of the supervisor, and no others."""

from typing import Any

from ..instance.instance import Instance
from ..observe.metrics import Collector
from .rules import Saved
from .tails import TraceTail


def word(body: dict[str, Any], key: str) -> str:
    value = body.get(key)
    if not isinstance(value, str) or not value:
        raise ValueError(f"the action needs {key}, a string")
    return value


def switch(body: dict[str, Any]) -> bool:
    value = body.get("on")
    if not isinstance(value, bool):
        raise ValueError("the action needs on, true or false")
    return value


class Actions:
    """Each action of the page; ValueError if its arguments make no sense."""

    def __init__(self, instance: Instance, collector: Collector, trace: TraceTail,
                 saved: Saved) -> None:
        self.instance = instance
        self.collector = collector
        self.trace = trace
        self.saved = saved

    def do(self, body: dict[str, Any]) -> None:
        table = {"power": self.power, "reset": self.reset, "cable": self.cable,
                 "fault": self.fault, "fault-add": self.add_fault,
                 "fault-remove": self.remove_fault, "rule-save": self.save_rule,
                 "rule-forget": self.forget_rule, "latency": self.latency,
                 "trace": self.follow_trace}
        name = word(body, "do")
        if name not in table:
            raise ValueError(f"there is no action {name}")
        table[name](body)

    def power(self, body: dict[str, Any]) -> None:
        command = "power-on" if switch(body) else "power-cut"
        self.instance.ask(command, part=word(body, "part"))

    def reset(self, body: dict[str, Any]) -> None:
        self.instance.ask("reset", part=word(body, "part"))

    def cable(self, body: dict[str, Any]) -> None:
        number = word(body, "number")
        if not number.isdecimal():
            raise ValueError("the action needs number, that of a cable")
        self.instance.ask("port", port=int(number), plugged=switch(body))

    def fault(self, body: dict[str, Any]) -> None:
        self.instance.ask("faults", part=word(body, "part"), names=[word(body, "name")],
                          do="on" if switch(body) else "off")
        self.collector.count = 0        # The next frame asks for the rules again.

    def add_fault(self, body: dict[str, Any]) -> None:
        name = word(body, "name") if body.get("name") else ""
        self.instance.ask("faults", part=word(body, "part"), do="add",
                          rules=[{"rule": word(body, "rule"), "name": name}])
        self.collector.count = 0

    def remove_fault(self, body: dict[str, Any]) -> None:
        self.instance.ask("faults", part=word(body, "part"), names=[word(body, "name")],
                          do="remove")
        self.collector.count = 0

    def save_rule(self, body: dict[str, Any]) -> None:
        self.saved.save(word(body, "name"), word(body, "rule"))

    def forget_rule(self, body: dict[str, Any]) -> None:
        self.saved.forget(word(body, "name"))

    def latency(self, body: dict[str, Any]) -> None:
        self.collector.has_latency = switch(body)

    def follow_trace(self, body: dict[str, Any]) -> None:
        self.trace.stop()
        if switch(body):
            self.trace.start(word(body, "part"))
