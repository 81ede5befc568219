# SPDX-License-Identifier: BSD-2-Clause
"""Clauses that have no test in the suite, or too few: the end of `essd conform --clauses`."""

# What the drive does not implement; where the specification asks for a refusal, it is tested.
NOT_IMPLEMENTED = (
    ("IBTA 9.4.5 atomics; 9.3 immediate data; 9.8 and A14: UC, RD, XRC, UD other than "
     "QP 1; 9.7.7.2 end-to-end credits; 10.2.9 shared receive queues",
     "9.3 has unit tests, since a target may accept it; credits are 31 (not used)"),
    ("IBTA 12.8, 17.2.8 alternate paths and migration; 12.11 SIDR; A16 RoCE v1",
     "a RoCEv2 target has no service over v1"),
    ("NVMe-oF 1.1 7.3.6.4 statuses 1 and 8; 7.2 Fibre Channel; Disconnect command",
     "a REQ's private data always has 92 bytes; the drive serves hosts that issue no "
     "READs"),
    ("Base 2.1 bit ASCR of Connect; NVMe TCP 1.1 generated keys of version 0",
     ""),
    ("NVMe 1.4 3.1.6 to 3.1.10, 4.3, 5.3 to 5.6, 7.6.1; 5.9, 5.10, 5.25, 5.26",
     "doorbells, PRPs, queue commands; Directives, Security"),
)
# Mandatory for the drive: what is missing in the suite, and where it is tested instead.
FEW_TESTS = (
    ("IBTA 9.2 reserved bits of sent packets; 9.7.6.1.3 retry timer; 9.11 static rate",
     "Wireshark; close bounds in virtual time only; CNPs instead of rates, and unit "
     "tests of the reaction"),
    ("IBTA 13.4 MADs of other classes",
     "one test of each kind"),
    ("NVMe 1.4 5.2, 5.14.1.2 health events and counters over days",
     "a peer cannot make SMART reach its limits; unit tests do"),
    ("NVMe 1.4 7.6.2, 6.8 shutdown and Flush before a power cut",
     "tests/e2e/test_power_cut.py"),
    ("RFC 9293 states of a side that opens or closes first; RFC 6191, 1337; 8985, "
     "9937, 9438 exact windows",
     "tests/unit/net/tcp"),
    ("RFC 1122 3.3.1, 3.2.2.2; RFC 1191, 8201; RFC 3810; RFC 4862 5.5",
     "routing, path MTU, MLD and addresses from prefixes have unit tests; redirects "
     "are ignored"),
    ("RFC 2131, 3927; RFC 4330 5, 6",
     "DHCP, link-local addresses, chrony: tests/e2e"),
    ("RFC 4861 7.3; RFC 5227 2.1.1",
     "the random part of timers; probes need --control"),
    ("IEEE 802.1AX, 802.1Qbb, 802.3 31B",
     "unit tests, tests/e2e/test_lag.py"),
    ("IEEE 802.3 clauses 49, 74, 91, 107, 108",
     "only whether there is a link: the model has no code blocks"),
)


def table(heading: str, rows: tuple[tuple[str, str], ...]) -> list[str]:
    return [f"| {heading} | |", "| --- | --- |", *(f"| {a} | {b} |" for a, b in rows)]


def text() -> str:
    return "\n".join(["", "", *table("not implemented; refusals are tested", NOT_IMPLEMENTED), "",
                      *table("mandatory, with few tests or none here", FEW_TESTS), "",
                      "Not checked either: the rate after a CNP, the interval between CNPs, how "
                      "long a pause lasts."])
