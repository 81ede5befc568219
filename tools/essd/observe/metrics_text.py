# SPDX-License-Identifier: BSD-2-Clause
"""A frame of metrics.py in the text format of Prometheus (docs/cockpit.md)."""

from collections.abc import Iterable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (CounterMetricFamily, GaugeMetricFamily,
                                    InfoMetricFamily, Metric)

from .metrics import WARNINGS, write_amplification

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PART_STATES = ("off", "running", "crashed")


def gauge(name: str, text: str, labels: Iterable[str]) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"essd_{name}", text, labels=list(labels))


def counter(name: str, text: str, labels: Iterable[str]) -> CounterMetricFamily:
    return CounterMetricFamily(f"essd_{name}", text, labels=list(labels))


def add_if(family: Any, labels: list[str], value: float | None) -> None:
    """A value that nobody knows is left out."""
    if value is not None:
        family.add_metric(labels, value)


def parts(frame: dict[str, Any]) -> Iterator[Metric]:
    labels = ("part", "kind")
    state = gauge("part_state", "1 for the state that the part is in.", (*labels, "state"))
    halted = gauge("part_halted", "Whether the part's virtual time stands still.", labels)
    restarts = counter("part_restarts", "Restarts that nobody asked for.", labels)
    seconds = counter("part_cpu_seconds", "CPU time of the part's process.", labels)
    memory = gauge("part_resident_bytes", "Resident memory of the part's process.", labels)
    for name, part in frame["parts"].items():
        values = [name, part["kind"]]
        for word in PART_STATES:
            state.add_metric([*values, word], float(part["state"] == word))
        halted.add_metric(values, float(part["halted"]))
        restarts.add_metric(values, len(part["restarts"]))
        add_if(seconds, values, part["cpu-seconds"])
        add_if(memory, values, part["memory-bytes"])
    yield from (state, halted, restarts, seconds, memory)


def cables(frame: dict[str, Any]) -> Iterator[Metric]:
    labels = ("cable", "from", "to")
    plugged = gauge("cable_plugged", "Whether the cable is plugged in.", labels)
    carrier = gauge("cable_carrier", "Whether the host's end has a carrier.", labels)
    for number, cable in frame["cables"].items():
        values = [number, *cable["ends"]]
        plugged.add_metric(values, float(cable["plugged"]))
        carrier.add_metric(values, float(cable["carrier"]))
    yield from (plugged, carrier)


def ports(frame: dict[str, Any]) -> Iterator[Metric]:
    labels = ("drive", "port")
    up = gauge("port_up", "Whether the port's link is up.", labels)
    speed = gauge("port_speed_bits_per_second", "Speed of the port.", labels)
    fec = gauge("port_fec", "1 for the FEC that the port uses.", (*labels, "fec"))
    events = counter("port_events", "Counters of the port (docs/hardware/port.md).",
                     (*labels, "counter"))
    for name, drive in frame["drives"].items():
        for port in drive["ports"]:
            values = [name, str(port["port"])]
            up.add_metric(values, float(port["up"]))
            speed.add_metric(values, port["speed"] * 1e9)
            fec.add_metric([*values, str(port["fec"])], 1)
            for key, value in port["counters"].items():
                events.add_metric([*values, key], value)
    yield from (up, speed, fec, events)


def counters(frame: dict[str, Any]) -> Iterator[Metric]:
    answers = gauge("drive_answers", "Whether the drive's firmware answers.", ("drive",))
    commands = counter("commands", "Read and write commands of hosts, over the drive's "
                       "life.", ("drive", "operation"))
    data = counter("data_bytes", "Bytes that hosts have read and written, over the "
                   "drive's life.", ("drive", "operation"))
    errors = counter("media_errors", "Media errors, over the drive's life.", ("drive",))
    log = counter("error_log_entries", "Entries of the error log, over the drive's life.",
                  ("drive",))
    warning = gauge("critical_warning", "1 if SMART has this critical warning.",
                    ("drive", "warning"))
    media = counter("media_events", "Counters of the media engine since the power is on.",
                    ("drive", "counter"))
    rnic = counter("rnic_events", "Counters of the RNIC since the power is on.",
                   ("drive", "counter"))
    tcp = counter("tcp_events", "Counters of the TCP offload engine since its start.",
                  ("drive", "counter"))
    iwarp = counter("iwarp_events", "Counters of iWARP since the power is on, if it is on.",
                    ("drive", "counter"))
    nvme_tcp = counter("nvme_tcp_events", "Counters of NVMe/TCP since the drive's start: "
                       "connections, PDUs, digests.", ("drive", "counter"))
    nvme_tls = counter("nvme_tls_events", "Counters of TLS since the drive's start, if it is "
                       "on: handshakes, refused connections and records.",
                       ("drive", "counter"))
    aoe = counter("aoe_events", "Counters of ATA over Ethernet since the firmware's start.",
                  ("drive", "counter"))
    flash = counter("flash_events", "Counters of the NAND controller and of the "
                    "translation layer since the power is on.", ("drive", "counter"))
    free = gauge("flash_free_superblocks", "Superblocks of the NAND flash that hold "
                 "nothing.", ("drive",))
    more = gauge("write_amplification", "Bytes that the NAND flash has written for each "
                 "byte of a host, over the drive's life.", ("drive",))
    spare = gauge("flash_spare_percent", "Spare blocks of the NAND flash that are left.",
                  ("drive",))
    dead = gauge("flash_dead_dies", "Dies of the NAND flash that have died.", ("drive",))
    for name, drive in frame["drives"].items():
        found = drive["counters"]
        answers.add_metric([name], float(not drive["why"]))
        if not found:
            continue
        commands.add_metric([name, "read"], found["reads"])
        commands.add_metric([name, "write"], found["writes"])
        data.add_metric([name, "read"], found["read-bytes"])
        data.add_metric([name, "write"], found["written-bytes"])
        errors.add_metric([name], found["media-errors"])
        log.add_metric([name], found["error-log-entries"])
        if drive["warnings"] is not None:
            for word in dict.fromkeys((*WARNINGS.values(), *drive["warnings"])):
                warning.add_metric([name, word], float(word in drive["warnings"]))
        for family, key in ((media, "media"), (rnic, "rnic"), (tcp, "tcp"), (iwarp, "iwarp"),
                            (nvme_tcp, "nvme-tcp"), (nvme_tls, "nvme-tls"), (aoe, "aoe")):
            for word, value in found.get(key, {}).items():
                family.add_metric([name, word], value)
        if "flash" not in found:
            continue
        free.add_metric([name], found["ftl"]["free-superblocks"])
        spare.add_metric([name], found["flash"]["spare-percent"])
        add_if(dead, [name], found["ftl"].get("dead-dies"))
        add_if(more, [name], write_amplification(found))
        for word, value in (found["nand"] | found["ftl"]).items():
            if word not in ("free-superblocks", "dead-dies"):
                flash.add_metric([name, word], value)
    yield from (answers, commands, data, errors, log, warning, media, rnic, tcp, iwarp,
                nvme_tcp, nvme_tls, aoe, flash, free, more, spare, dead)


def tables(frame: dict[str, Any]) -> Iterator[Metric]:
    info = InfoMetricFamily("essd_drive", "Identity of the drive.", labels=["drive"])
    uptime = gauge("drive_uptime_seconds", "Virtual time since the firmware started.",
                   ("drive",))
    controllers = gauge("controllers", "Controllers that hosts have made.", ("drive",))
    queue_pairs = gauge("queue_pairs", "Queue pairs of hosts.", ("drive",))
    in_flight = gauge("commands_in_flight", "Commands that hosts wait for.", ("drive",))
    used = gauge("pool_used", "Used entries of a pool of the firmware.", ("drive", "pool"))
    size = gauge("pool_size", "Entries of a pool of the firmware.", ("drive", "pool"))
    for name, drive in frame["drives"].items():
        if "status" not in drive:
            continue
        status = drive["status"]
        info.add_metric([name], {key: str(status[key]) for key in
                                 ("firmware", "serial", "model", "subsystem")})
        uptime.add_metric([name], status["uptime-ms"] / 1000)
        controllers.add_metric([name], status["controllers"])
        queue_pairs.add_metric([name], status["queue-pairs"])
        in_flight.add_metric([name], sum(row["in-flight"] for row in
                                         drive["queue-pairs"]["rows"]))
        for word, pool in drive["pools"].items():
            used.add_metric([name, word], pool["used"])
            size.add_metric([name, word], pool["all"])
    yield from (info, uptime, controllers, queue_pairs, in_flight, used, size)


def faults(frame: dict[str, Any]) -> Iterator[Metric]:
    labels = ("drive", "rule")
    is_on = gauge("fault_rule_on", "Whether the fault rule is on.", labels)
    matched = counter("fault_rule_matched", "Events that the rule has matched.", labels)
    fired = counter("fault_rule_fired", "Events at which the rule has acted.", labels)
    for name, drive in frame["drives"].items():
        for rule in drive.get("faults", []):
            values = [name, rule["name"]]
            is_on.add_metric(values, float(rule["on"]))
            matched.add_metric(values, rule["matched"])
            fired.add_metric(values, rule["fired"])
    yield from (is_on, matched, fired)


def latency(frame: dict[str, Any]) -> Iterator[Metric]:
    family = gauge("command_latency_seconds", "Percentiles of sampled commands, in virtual "
                   "time; only while somebody samples.", ("drive", "operation", "quantile"))
    for name, drive in frame["drives"].items():
        for operation, facts in drive.get("latency", {}).items():
            for key, micros in facts.items():
                if key.startswith("p"):
                    quantile = f"{float(key[1:]) / 100:g}"
                    family.add_metric([name, operation, quantile], micros / 1e6)
    yield family


class FrameCollector:
    """Hands one frame to Prometheus's library."""

    def __init__(self, frame: dict[str, Any]) -> None:
        self.frame = frame

    def collect(self) -> Iterator[Metric]:
        for make in (parts, cables, ports, counters, tables, faults, latency):
            yield from make(self.frame)
        cost = gauge("look_seconds", "How long it took to collect these metrics.", ())
        cost.add_metric([], self.frame["cost"]["seconds"])
        yield cost


def text(frame: dict[str, Any]) -> bytes:
    registry = CollectorRegistry(auto_describe=False)
    registry.register(FrameCollector(frame))
    return generate_latest(registry)
