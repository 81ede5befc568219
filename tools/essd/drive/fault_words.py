# SPDX-License-Identifier: BSD-2-Clause
"""What the keys and actions of fault rules mean: `essd faults words`.

fault_rules.py reads the rules; a test compares the words of both.  docs/faults.md says how
rules are used.
"""

import textwrap

from ..base import chosen
from ..base.errors import EssdError

COLUMNS = 100
WHEN = "when"
WIDTH = 14      # of the names; a longer one has a line of its own

PLACES = {
    "wire": "each Ethernet frame between a port and its cable",
    "rdma": "each request message that the RNIC is about to execute, each packet's data between "
            "RNIC and DRAM, each FPDU of iWARP",
    "pdu": "each PDU of NVMe/TCP, in or out",
    "nvme": "each command that the firmware has checked",
    "media": "with a block medium: each request of the media engine to the medium below its "
             "volatile write cache, and each read of this cache.  A write is when the cache "
             "writes to the medium; reads that the cache answers are not seen",
    "nand": "each operation of the NAND array.  For error and bits, each plane of a program or "
            "an erasure, and each unit of a read, is one event; else each operation, with the "
            "place of its first plane and unit",
}
DIRECTION = "in (to the drive) or out; default: both"
QUEUE = "admin, io, or a queue's QID"
KEYS: dict[str, dict[str, str]] = {
    WHEN: {
        "after": "not the first N events that match; the keys below do not count them",
        "nth": "only the Nth, from 1",
        "every": "each Nth event",
        "times": "at most N times",
        "probability": "with this probability, 0 to 1",
        "seed": "of the pseudo-random numbers, default 1: the same seed and events give the same "
                "faults",
    },
    "wire": {
        "port": "0 or 1; default: both",
        "direction": DIRECTION,
        "eth.dst": "destination MAC address",
        "eth.src": "source MAC address",
        "eth.type": "the type after VLAN tags, or ipv4, arp, ipv6, lldp, slow, roce-v1, aoe",
        "vlan.id": "of the first tag",
        "vlan.priority": "of the first tag",
        "ip.dscp": "IPv4", "ip.protocol": "IPv4", "ip.src": "IPv4", "ip.dst": "IPv4",
        "ip6.src": "IPv6", "ip6.dst": "IPv6",
        "udp.src": "UDP port", "udp.dst": "UDP port",
        "tcp.src": "TCP port", "tcp.dst": "TCP port", "tcp.seq": "TCP", "tcp.ack": "TCP",
        "tcp.flags": "fin, syn, rst, psh, ack, urg, ece, cwr, separated by commas: these are set; "
                     "no- before a flag: it is not set.  syn,no-ack is the first segment of a "
                     "connection",
        "tcp.window": "as on the wire",
        "tcp.data": "yes: the segment has data",
        "aoe.answer": "1: an answer, 0: a request",
        "aoe.major": "ATA over Ethernet", "aoe.minor": "ATA over Ethernet",
        "aoe.command": "ata, config, mask, reserve",
        "aoe.tag": "ATA over Ethernet",
        "aoe.ata": "the ATA command of a request: read, read-ext, write, write-ext, identify or a "
                   "number; of an answer, the status",
        "bth.opcode": "RoCE; a number, or a name such as send-only, write-first, read-request, "
                      "read-response-last, ack, ud-send, cnp",
        "bth.ack-requested": "RoCE", "bth.qpn": "RoCE", "bth.psn": "RoCE",
        "nvme.opcode": "of the command capsule in an RC SEND to the drive; with direction=out, "
                       "the bytes at the same offset in a response capsule",
        "nvme.cid": "the same", "nvme.nsid": "the same", "nvme.slba": "the same",
    },
    "rdma": {
        "qpn": "the drive's queue pair number, as essd trace and the console show it",
        "request": "send (the only one of NVMe-oF hosts), write or read",
        "direction": "of transfer, instead of request: in to DRAM (capsules, data of writes), out "
                     "from DRAM (responses, data of reads); default: both",
    },
    "pdu": {
        "direction": "in (PDUs of the host) or out (of the drive); default: both",
        "type": "ic-req, capsule-cmd, h2c-data, h2c-term of a host; ic-resp, capsule-resp, "
                "c2h-data, r2t, c2h-term of the drive; or a number",
        "queue": f"{QUEUE}; before Connect, a connection counts as admin",
    },
    "nvme": {
        "queue": QUEUE,
        "opcode": "a number or a name; queue=admin selects the names of admin commands",
        "nsid": "the namespace",
        "lba": "a range of LBAs that the command touches",
        "controller": "the controller's CNTLID",
    },
    "media": {
        "operation": "one or more of read, write, zeroes, flush, separated by commas; not with "
                     "bits",
        "lba": "a range of 512-byte blocks",
    },
    "nand": {
        "operation": "one or more of read, program, erase, separated by commas",
        "channel": "a number or range from 0, as those below (essd media info shows how many).  "
                   "One that the operation does not have always matches",
        "die": "of the channel", "plane": "of the die", "block": "of the plane",
        "wordline": "of the block", "page": "of the wordline", "unit": "of the page",
    },
}
POWER_CUT = "the power fails before the event; see docs/faults.md"
ACTIONS: dict[str, dict[str, str]] = {
    "wire": {
        "drop": "the frame is lost",
        "corrupt": "=BIT inverts this bit of the frame, 1 being the first; without a number, a "
                   "random one.  The FCS stays right, so only IP and UDP checksums and the ICRC "
                   "notice; for errors of the cable: essd port 0 --ber",
        "duplicate": "the frame comes twice",
        "delay": "=TIME; delay and reorder hold at most 64 frames of a port together, and further "
                 "ones pass.  Held frames are lost when the cable is pulled",
        "reorder": "=FRAMES holds a frame until FRAMES (default 1) later ones have passed in its "
                   "direction, 100 ms at most",
        "bad-checksum": "TCP segments only: a wrong checksum",
        "zero-window": "TCP segments only: window 0, with the right checksum.  The next segment "
                       "opens it again, so times=20 holds up the data longer",
        "power-cut": POWER_CUT,
    },
    "rdma": {
        "nak": "=psn-sequence (the host sends the message again), invalid-request, remote-access "
               "or remote-operation (the connection ends)",
        "rnr": "=TIMER, the RNR timer's code, 0 to 31; the default 14 makes the host wait 1 ms",
        "transfer": "parity error in a packet's data of a reliable connection between RNIC and "
                    "DRAM; each transfer is an event.  The connection ends; it is logged",
        "bad-checksum": "iWARP only, key qpn: a wrong CRC of the host's FPDU; also ends a "
                        "connection without CRC",
        "power-cut": POWER_CUT,
    },
    "pdu": {
        "header-digest": "only PDUs with this digest match (nvme connect -g).  One of the host "
                         "counts as wrong, which ends the connection; the drive's own is sent "
                         "inverted",
        "data-digest": "the same (nvme connect -G); one of the host fails the command with "
                       "Transient Transport Error",
        "reset": "a RST takes the place of the PDU, and of those that wait before it",
    },
    "nvme": {
        "status": "=STATUS: the command is refused before it is executed.  A name "
                  "(internal-error, unrecovered-read-error, ...; a wrong one lists all), or type "
                  "and code as a number, such as 0x281.  With ,dnr, or 4000h in the number: Do "
                  "Not Retry.  Without, Linux retries up to five times, so a rule that fires once "
                  "goes unnoticed",
        "delay": "=TIME: executed, but the response comes late (up to 4 ms later than the rule "
                 "says)",
        "drop": "executed, without response",
    },
    "media": {
        "error": "the request fails",
        "bits": "=N (no key operation): a word of the write cache has N wrong bits when the engine "
                "reads it, for a host or to write it; each such read is an event.  1 is corrected "
                "and counted (cache-corrected).  More is cache-lost: a host's read ends with "
                "Unrecovered Read Error; data to be written stays, is tried again each second and "
                "at each Flush, which ends with Write Fault until that succeeds",
        "delay": "=TIME",
        "stuck": "the request ends when the rule is removed or turned off, when the machine stops "
                 "(save, down, a breakpoint), and at a reset",
        "power-cut": POWER_CUT,
    },
    "nand": {
        "error": "a unit cannot be corrected; a program or an erasure fails in the plane, and the "
                 "block is bad from then on",
        "bits": "=N: a unit that is read has N wrong bits: with many, it needs soft decoding, or "
                "cannot be corrected",
        "die": "the die never answers again, also after the rule's removal or a power cut",
        "transfer": "parity error between DRAM and die at a read or program; it changes nothing, "
                    "and the firmware repeats it up to three times",
        "power-cut": "=before (the default): the power fails before the operation changes "
                     "anything.  =during: in the middle of a program or an erasure, also with "
                     "timing=fast: in each plane, the wordline stays half programmed, or the block "
                     "half erased; at a read, as before.  With capacitors the operation is "
                     "completed",
    },
}


def lines(heading: str, words: dict[str, str]) -> list[str]:
    found = [f"  {heading}"]
    for name, meaning in words.items():
        head = f"    {name:{WIDTH}}  "
        if len(name) > WIDTH:
            found.append(f"    {name}")
            head = " " * (WIDTH + 6)
        found += textwrap.wrap(meaning, COLUMNS, initial_indent=head, break_on_hyphens=False,
                               subsequent_indent=" " * (WIDTH + 6))
    return found


def text(place: str) -> str:
    """The words of a place, or of what may follow `when`."""
    if place == WHEN:
        return "\n".join(lines("when it fires; without these, at each event", KEYS[WHEN]))
    if place not in PLACES:
        raise EssdError(f"{place}: no such place for faults; "
                        f"{chosen.mean_or(place, (*PLACES, WHEN))}")
    head = textwrap.wrap(f"{place}: {PLACES[place]}", COLUMNS, subsequent_indent="  ",
                         break_on_hyphens=False)
    return "\n".join([*head, *lines("keys", KEYS[place]), *lines("actions", ACTIONS[place])])
