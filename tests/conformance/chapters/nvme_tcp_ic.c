/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `nvme-tcp`: ICReq and ICResp, and what comes instead of ICReq. */
#include "nvme_tcp_script.h"

/* clang-format off */
static const struct conf_test tests[] = {
    NVME_TCP_TEST("ic.plain", "NVMe TCP 1.0 3.6.2.3",
                  "answer ICReq",
                  IC("00") "quiet\n"),
    NVME_TCP_TEST("ic.header-digest", "NVMe TCP 1.0 3.3.1.1",
                  "agree to header digests alone",
                  IC("01") "quiet\n"),
    NVME_TCP_TEST("ic.data-digest", "NVMe TCP 1.0 3.3.1.1",
                  "agree to data digests alone",
                  IC("02") "quiet\n"),
    NVME_TCP_TEST("ic.both-digests", "NVMe TCP 1.0 3.3.1.1",
                  "agree to both digests",
                  IC("03") "quiet\n"),
    NVME_TCP_TEST("ic.discovery-port", "NVMe TCP 1.0 3.1.2",
                  "answer at port 8009",
                  "to 8009\n"
                  IC("00")),
    NVME_TCP_TEST("ic.ipv6", "NVMe TCP 1.0 3.1",
                  "answer over IPv6",
                  "v6\n"
                  IC("03")),
    NVME_TCP_TEST("ic.second-port", "NVMe TCP 1.0 3.1",
                  "answer at the other port",
                  "port 1\n"
                  IC("00")),
    NVME_TCP_TEST("ic.second-port-ipv6", "NVMe TCP 1.0 3.1",
                  "answer at the other port over IPv6",
                  "port 1\nv6\nto 8009\n"
                  IC("00")),
    NVME_TCP_TEST("ic.maxr2t", "NVMe TCP 1.0 3.6.2.2",
                  "take a host that allows many R2Ts",
                  "< 00008000 80000000 0000 00 00 ffffffff zero 112\n"
                  IC_RESP("00")),
    NVME_TCP_TEST("ic.hpda", "NVMe TCP 1.0 3.6.2.2",
                  "take the largest alignment of data",
                  IC_REQ("1f", "00") IC_RESP("00")),
    NVME_TCP_TEST("ic.reserved", "NVMe TCP 1.0 3.6.2.2",
                  "ignore reserved bytes, and those after the fields",
                  "< 00ff80ff 80000000 0000 00 00 00000000 data 1 112 0\n"
                  IC_RESP("00")),
    NVME_TCP_TEST("ic.single-bytes", "NVMe TCP 1.0 3.1",
                  "take ICReq in segments of one byte",
                  "<1 00008000 80000000 0000 00 03 00000000 zero 112\n"
                  IC_RESP("03")),
    NVME_TCP_TEST("ic.two-segments", "NVMe TCP 1.0 3.1",
                  "wait for the rest of ICReq",
                  "< 00008000 80000000 0000 00 00\n"
                  "quiet\n"
                  "< 00000000 zero 112\n"
                  IC_RESP("00")),
    NVME_TCP_TEST("ic.with-connect", "NVMe TCP 1.0 3.1",
                  "take a capsule in the segment of ICReq",
                  "< 00008000 80000000 0000 00 00 00000000 zero 112 04004848 "
                  "48040000 "
                  CONNECT_SQE("00", "1f", "00", IN_CAPSULE("00040000"))
                  CONNECT_DATA("ffff", "subnqn") "\n"
                  IC_RESP("00") RESPONSE("cntlid 0000", "0001", "0000")),

    /* ---- Refused. */
    NVME_TCP_WRONG("ic.pfv", "NVMe TCP 1.0 3.5.1; 3.6.2.2",
                   "refuse PFV 1 as an unsupported parameter",
                   "< 00008000 80000000 0100 00 00 00000000 zero 112\n"
                   TERM("98000000", "0600", "08000000",
                        "00008000 80000000 0100 00 00 00000000 zero 112")),
    NVME_TCP_WRONG("ic.pfv-high", "NVMe TCP 1.0 3.5.1; 3.6.2.2",
                   "read both bytes of PFV",
                   "< 00008000 80000000 0001 00 03 00000000 zero 112\n"
                   TERM("98000000", "0600", "08000000",
                        "00008000 80000000 0001 00 03 00000000 zero 112")),
    NVME_TCP_WRONG("ic.hpda-32", "NVMe TCP 1.0 3.5.1; 3.6.2.2",
                   "refuse HPDA 32",
                   IC_REQ("20", "00")
                   TERM("98000000", "0100", "0a000000",
                        "00008000 80000000 0000 20 00 00000000 zero 112")),
    NVME_TCP_WRONG("ic.hlen-low", "NVMe TCP 1.0 3.5.1",
                   "refuse HLEN 127",
                   "< 00007f00 80000000 zero 120\n"
                   TERM("20000000", "0100", "02000000", "00007f00 80000000")),
    NVME_TCP_WRONG("ic.hlen-high", "NVMe TCP 1.0 3.5.1",
                   "refuse HLEN 129",
                   "< 00008100 81000000 zero 121\n"
                   TERM("20000000", "0100", "02000000", "00008100 81000000")),
    NVME_TCP_WRONG("ic.hlen-zero", "NVMe TCP 1.0 3.5.1",
                   "refuse HLEN 0",
                   "< 00000000 80000000 zero 120\n"
                   TERM("20000000", "0100", "02000000", "00000000 80000000")),
    NVME_TCP_WRONG("ic.plen-low", "NVMe TCP 1.0 3.5.1",
                   "refuse PLEN 127",
                   "< 00008000 7f000000 zero 119\n"
                   TERM("20000000", "0100", "04000000", "00008000 7f000000")),
    NVME_TCP_WRONG("ic.plen-high", "NVMe TCP 1.0 3.5.1",
                   "refuse PLEN 129",
                   "< 00008000 81000000 zero 121\n"
                   TERM("20000000", "0100", "04000000", "00008000 81000000")),
    NVME_TCP_WRONG("ic.plen-zero", "NVMe TCP 1.0 3.5.1",
                   "refuse PLEN 0",
                   "< 00008000 00000000 zero 120\n"
                   TERM("20000000", "0100", "04000000", "00008000 00000000")),
    NVME_TCP_WRONG("ic.plen-4gib", "NVMe TCP 1.0 3.5.1",
                   "refuse a PLEN of 4 GiB at once",
                   "< 00008000 ffffffff\n"
                   TERM("20000000", "0100", "04000000", "00008000 ffffffff")),
    NVME_TCP_WRONG("ic.second", "NVMe TCP 1.0 3.5.1; 3.6.2.2",
                   "refuse a second ICReq as out of sequence",
                   IC("00") IC_REQ("00", "00")
                   TERM("20000000", "0200", "00000000", "00008000 80000000")),
    NVME_TCP_WRONG("ic.capsule-first", "NVMe TCP 1.0 3.5.1",
                   "refuse a capsule before ICReq",
                   CAPSULE(KEEP_ALIVE_SQE("0100"))
                   TERM("20000000", "0200", "00000000", "04004800 48000000")),
    NVME_TCP_WRONG("ic.data-first", "NVMe TCP 1.0 3.5.1",
                   "refuse H2CData before ICReq",
                   "< 06041818 1c000000 zero 20\n"
                   TERM("20000000", "0200", "00000000", "06041818 1c000000")),
    NVME_TCP_WRONG("ic.resp", "NVMe TCP 1.0 3.5.1",
                   "refuse an ICResp, which no host sends",
                   "< 01008000 80000000 zero 120\n"
                   TERM("20000000", "0100", "00000000", "01008000 80000000")),
    NVME_TCP_WRONG("ic.tls", "NVMe TCP 1.0 3.5.1",
                   "refuse a TLS handshake",
                   "< 16030100 c8010000 c40303\n"
                   TERM("20000000", "0100", "00000000", "16030100 c8010000")),
    NVME_TCP_WRONG("ic.mpa", "NVMe TCP 1.0 3.5.1",
                   "refuse an MPA request, which iWARP begins with",
                   "< 4d504120 49442052 65712046 72616d65\n"
                   "ends\n"),
    NVME_TCP_WRONG("ic.http", "NVMe TCP 1.0 3.5.1",
                   "refuse a request of HTTP",
                   "< 47455420 2f204854 54502f31\n"
                   "ends\n"),
    NVME_TCP_WRONG("ic.term-first", "NVMe TCP 1.0 3.5.2",
                   "end quietly when the host ends before ICReq",
                   "< 02001800 18000000 0100 00000000 zero 10\n"
                   "closes\n"),
    NVME_TCP_TEST("ic.fin", "NVMe TCP 1.0 3.1",
                  "close when the host closes before ICReq",
                  "to 4420\n<\nfin\ncloses\n"),
    NVME_TCP_TEST("ic.fin-within", "NVMe TCP 1.0 3.1",
                  "close when the host closes within ICReq",
                  "< 00008000 80000000 0000\nfin\ncloses\n"),
    NVME_TCP_TEST("ic.fin-after", "NVMe TCP 1.0 3.1",
                  "close when the host closes after ICResp",
                  IC("00") "fin\ncloses\n"),
    NVME_TCP_TEST("ic.half", "NVMe TCP 1.0 3.1",
                  "reset a connection whose ICReq stays incomplete",
                  "virtual\n< 00008000 80000000 0000\npass 8\nquiet\n"
                  "pass 4\nresets\n"),
    NVME_TCP_TEST("ic.silent", "NVMe TCP 1.0 3.1",
                  "end a connection on which nothing comes within 30 s",
                  "virtual\n<\npass 28\nquiet\npass 8\nends\n"),
    NVME_TCP_TEST("ic.no-connect", "NVMe-oF 1.1 4.1",
                  "end a connection without Connect after 30 s",
                  "virtual\n"
                  IC("00") "pass 28\nquiet\npass 8\nends\n"),
    NVME_TCP_TEST("ic.others", "NVMe TCP 1.0 3.1",
                  "serve others while ICReqs stay incomplete",
                  "conn 2\n< 00\nconn 3\n< 00008000\nconn 4\n"
                  "< 00008000 80000000 zero 119\nconn 0\n"
                  HOST WORKS),
};
/* clang-format on */

CONF_TESTS(conf_tests_nvme_tcp_ic, "nvme-tcp", tests);
