# SPDX-License-Identifier: BSD-2-Clause
"""What the management requests of a drive are: `essd fields requests`.

docs/management.md has the form of requests and replies.
"""

import textwrap

COLUMNS = 100

# Each request or several alike: their arguments, and the members of the result.
REQUESTS: dict[str, tuple[str, str]] = {
    "status":
        ("",
         "firmware, serial, model, subsystem (NQN), boot (its number), uptime-ms, "
         "controllers, queue-pairs, tcp-connections (established; only with a TCP offload "
         "engine), nvme-tcp-queues (connected; only if NVMe/TCP is on)"),
    "pools":
        ("",
         "for each pool, such as capsules: used, all"),
    "controllers":
        ("from",
         "controllers: cntlid, state, discovery, hostnqn, queue-pairs, keep-alive-ms"),
    "disconnect":
        ("hostnqn, or all (true)",
         "ends associations of one host or all, as if keep-alive had failed; they may connect "
         "again at once. ended: their number"),
    "queue-pairs":
        ("from",
         "queue-pairs: qpn, qid, state, peer, cntlid (once connected), entries, in-flight"),
    "requests":
        ("from",
         "commands that hosts wait for, requests: fields of essd requests. There may be next "
         "without an entry"),
    "tcp-connections":
        ("from",
         "tcp-connections of the TCP offload engine, half-open and TIME-WAIT included: fields "
         "of essd tcp"),
    "aoe":
        ("from (an NSID)",
         "on (whether ATA over Ethernet is), shelf (only then), devices, for each namespace "
         "of aoe.export: fields of essd aoe"),
    "aoe-forget":
        ("",
         "drops config strings, mask lists and reservations"),
    "namespaces":
        ("from (an NSID)",
         "fields of essd namespaces"),
    "ana":
        ("",
         "groups, all 16 ANA groups: fields of essd ana"),
    "ana-set":
        ("state (optimized, non-optimized, inaccessible, persistent-loss, change), group "
         "(absent: all), port (absent: both), transition-ms (up to 10000: change for this "
         "time)",
         ""),
    "referrals":
        ("",
         "referrals of the discovery log: address, service"),
    "referral-add, referral-remove":
        ("address, service (absent: 4420)",
         ""),
    "counters":
        ("",
         "see the end of this list"),
    "superblocks":
        ("from",
         "mounted, channels, dies (of a channel), dead-dies (numbers over all channels), "
         "superblocks: fields of essd media map; one that would be null is left out. Without "
         "NAND flash: error no-flash"),
    "crashes":
        ("",
         "crash dumps, newest first: crashes: number, cause, text, line, mcause, mtval, boot, "
         "time-ns, firmware, build-id as of essd dump, pc, ra, bytes"),
    "crash-data":
        ("number, from (absent: 0)",
         "data: hexadecimal"),
    "crash-now":
        ("how (assertion, trap, watchdog)",
         "makes the firmware fail in this way; there is no reply"),
    "hardware-errors":
        ("",
         "numbers of kinds, since power-on memory-corrected, memory-lost, since the start "
         "nand-transfer, rnic-transfer, nand-rule; dropped (no room in the buffer); errors, "
         "newest first: number, kind (its name), fatal, boot, time-us, address, info, repeats"),
    "modules":
        ("",
         "modules: port, state (absent, identified, unreadable), insertions, removals (since "
         "the start); if identified type, vendor, part, serial, diagnostics (read, none, "
         "external-calibration, unanswered, damaged), values if known: temperature "
         "(thousandths of a kelvin), voltage (microvolts), bias (microamperes), tx-power, "
         "rx-power (nanowatts), each with value, those of its four limits that are watched, "
         "and the limits exceeded"),
    "sensors":
        ("",
         "sensors: address (I2C), answers, and if so (its temperature is at most 5 s old) "
         "millikelvin; bmc, counters of the BMC's messages: requests, responses, bad-pec, "
         "bad-packets, bad-checks, unsent"),
    "addresses":
        ("",
         "addresses: port, address, prefix, state"),
    "neighbours":
        ("",
         "ports: fields of essd port --neighbours (LLDP)"),
    "lag":
        ("",
         "mode (off, active-standby, lacp); unless off also up, moves, frames-without-port, "
         "ports: port, role, roce-out, roce-dropped, raw-dropped, and for LACP lacp, partner, "
         "lacpdus-in, lacpdus-out, lacpdus-illegal"),
    "config":
        ("",
         "staged (whether there is a draft), keys: key, draft, saved, in-force, live (a saved "
         "change takes effect at once, not at the next start)"),
    "config-set":
        ("key, value",
         "changes the draft; live as above"),
    "config-save":
        ("",
         "checks and saves the draft; later: keys that take effect at the next start"),
    "config-discard":
        ("",
         "discards the draft"),
    "faults":
        ("",
         "rules for NVMe commands and PDUs, faults: rule, matched, fired"),
    "fault-add":
        ("rule (a number), do (status, delay, drop), status, delay-us, queue (any, admin, io) "
         "or qid, opcode, nsid, controller, first-lba, last-lba, nth, every, after, times, "
         "chance (2^-32 units), seed; with place pdu: do (header-digest, data-digest, reset), "
         "type, directions (1: in, 2: out, 3: both)",
         ""),
    "fault-remove":
        ("rule",
         ""),
    "fault-turn":
        ("rule, on (true, false)",
         ""),
    "hosts":
        ("from",
         "the list of hosts: fields of essd access"),
    "host-set":
        ("nqn, secret, drive-secret, tls-key, least-hash, least-group",
         "adds a host, or changes what is named; \"\" removes a secret or key. No request "
         "returns one"),
    "host-remove":
        ("nqn",
         ""),
    "hosts-exclusive":
        ("on (true, false)",
         ""),
    "authentication":
        ("",
         "authentications since power-on: proven, refused, expired, displaced; skipped "
         "(commands refused because they came before one), disallowed (Connects of hosts that "
         "are not on an exclusive list)"),
    "shutdown":
        ("",
         "informs neighbours and DHCP servers, and writes counters to flash"),
}
# Members of the result of `counters`.  They count since power-on, if it is not said otherwise.
COUNTERS = {
    "reads, writes, read-bytes, written-bytes, media-errors, error-log-entries":
        "what hosts have done over the drive's life, as SMART has it",
    "critical-warning":
        "SMART's now. 0: none; a sum of 1: the spare is low, 2: a temperature, 4: the "
        "reliability, 8: read-only, 16: the capacitors",
    "media":
        "media engine, in blocks of 512 bytes; counts nothing with NAND flash",
    "ftl, nand":
        "with NAND flash: translation layer, in units of 4096 bytes, and NAND controller",
    "flash":
        "with NAND flash, over its life: written-bytes, read-bytes, erased-blocks, "
        "failed-blocks, spare-percent, free-percent",
    "rnic, tcp":
        "RNIC; TCP offload engine, if there is one, its protocol since that was switched on, "
        "its services",
    "nvme-tcp, nvme-tls":
        "since the start, if NVMe/TCP, TLS is on",
    "iwarp, aoe":
        "iWARP, ATA over Ethernet at both ports, if on",
    "connection-manager":
        "its messages that were received, dropped, could not be sent",
    "stack":
        "both ports' frames other than of queue pairs; each dropped-… names a reason, such as "
        "dropped-source-mac: zero, a group or the port's own",
}


def indented(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent="    ", subsequent_indent="    ",
                         break_on_hyphens=False)


def text() -> str:
    """All requests for people."""
    lines = ["requests of the management channel"]
    for name, (arguments, members) in REQUESTS.items():
        lines += ["", name, *(indented(f"arguments: {arguments}") if arguments else []),
                  *indented(members)]
    lines += ["", "members of counters, since power-on if it is not said otherwise"]
    for name, meaning in COUNTERS.items():
        lines += [f"  {name}", *indented(meaning)]
    return "\n".join(lines)
