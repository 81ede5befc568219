# SPDX-License-Identifier: BSD-2-Clause
"""A fake supervisor whose drive answers everything that essd top and cockpit ask."""

from typing import Any

from fake_supervisor import PORT_STATE, FakeSupervisor

HOSTNQN = "nqn.2014-08.org.nvmexpress:uuid:1"
MEDIA = {"reads": 5, "writes": 3, "cache-full": 2}
RNIC = {"packets-in": 100, "bad-icrc": 1}
TCP = {"retransmitted": 4, "timeouts": 0}
FLASH: dict[str, Any] = {
    "ftl": {"free-superblocks": 12, "erasures": 3, "dead-dies": 0},
    "nand": {"units-programmed": 9},
    "flash": {"written-bytes": 1 << 20, "erased-blocks": 24, "failed-blocks": 2,
              "spare-percent": 97}}


def superblock(number: int, state: str = "closed", valid: int = 50, **more: Any
               ) -> dict[str, Any]:
    return {"superblock": number, "state": state, "valid": valid, "capacity": 100,
            "erasures": number % 7, "age-rows": 0, **more}
AOE = {"repeated-writes": 3}


class LookedAt(FakeSupervisor):
    """Its counters grow by `grows` with each look; text can be made hostile."""

    def __init__(self, name: str, hostnqn: str = HOSTNQN, neighbour: str = "leaf-1") -> None:
        super().__init__(name)
        self.reads = 1000
        self.grows = 50
        self.critical_warning = 0
        self.superblocks: list[dict[str, Any]] = []     # of the flash; []: it has none
        self.dead_dies: list[int] = []
        self.rules: list[dict[str, Any]] = [
            {"name": "bad-start", "rule": "nvme do drop", "on": True, "matched": 4,
             "fired": 2}]
        self.mgmt = {
            "status": {"firmware": "0.1.0", "serial": "S1", "model": "essd", "subsystem": "nqn.x",
                       "boot": 1, "uptime-ms": 2500, "controllers": 1, "queue-pairs": 2},
            "pools": {"capsules": {"used": 3, "all": 64}},
            "controllers": {"controllers": [
                {"cntlid": 1, "state": "ready", "discovery": False, "hostnqn": hostnqn,
                 "queue-pairs": 2, "keep-alive-ms": 5000}]},
            "queue-pairs": {"queue-pairs": [
                {"qpn": 7, "qid": qid, "state": "live", "peer": "10.0.0.1", "cntlid": 1,
                 "entries": 32, "in-flight": qid} for qid in (0, 1)]},
            "sensors": {"sensors": [
                {"address": 0x48, "answers": True, "millikelvin": 313150},
                {"address": 0x49, "answers": False}], "bmc": {}},
            "neighbours": {"ports": [{"port": 0, "neighbours": [
                {"chassis": "00:11", "port": "eth7", "system": neighbour}]}]}}
        self.replies["faults"] = self.ask_faults

    def qmp(self, request: dict[str, Any]) -> Any:
        if request["arguments"]["property"] == "state":
            return PORT_STATE | {"counters": {
                "aOctetsReceivedOK": 10 * self.reads, "aOctetsTransmittedOK": 20 * self.reads,
                **PORT_STATE["counters"], "linkChanges": 3}}
        return super().qmp(request)

    def ask_drive(self, request: dict[str, Any]) -> Any:
        if request["request"] == "counters":
            self.reads += self.grows
            return {"reads": self.reads, "writes": 7, "read-bytes": 4096 * self.reads,
                    "written-bytes": 8192, "media-errors": 0, "error-log-entries": 1,
                    "critical-warning": self.critical_warning,
                    "media": MEDIA, "rnic": RNIC, "tcp": TCP,
                    "nvme-tcp": {"r2ts-out": 7}, "nvme-tls": {"handshakes": 5},
                    "aoe": AOE,
                    **(FLASH if self.superblocks else {})}
        if request["request"] == "superblocks" and self.superblocks:
            first = request["arguments"].get("from", 0)
            return {"mounted": True, "channels": 2, "dies": 2, "dead-dies": self.dead_dies,
                    "superblocks": self.superblocks[first:first + 64],
                    **({"next": first + 64} if first + 64 < len(self.superblocks) else {})}
        return super().ask_drive(request)

    def ask_faults(self, request: dict[str, Any]) -> Any:
        for rule in self.rules:
            if request.get("do") in ("on", "off") and rule["name"] in request["names"]:
                rule["on"] = request["do"] == "on"
        return self.rules
