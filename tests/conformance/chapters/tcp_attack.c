/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tcp`: blind attacks and old duplicates.
 * Challenge ACKs of a connection are at least half a second apart.
 */
#include "tcp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("rst.in-window", "RFC 5961 3.2",
              "challenge a RST in the window that is not exact", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< R 2:2(0)\n"
                                     "> . 1:1(0) ack 1\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("rst.window-end", "RFC 5961 3.2",
              "challenge a RST at the window's last number", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< R 8192:8192(0)\n"
                                     "> . 1:1(0) ack 1\n"),
    CONF_TEST("rst.beyond", "RFC 5961 3.2", "drop a RST beyond the window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< R 8193:8193(0)\n"
                                     "quiet\n"),
    CONF_TEST("rst.before", "RFC 5961 3.2", "drop a RST before the window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"
                                     "< R 5:5(0)\n"
                                     "quiet\n"
                                     "< P. 6:11(5) ack 6\n"
                                     "> P. 6:11(5) ack 11\n"),
    CONF_TEST("rst.rate", "RFC 5961 7", "send one challenge ACK for many RSTs",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< R 2:2(0) x 20\n"
                      "> . 1:1(0) ack 1\n"
                      "quiet\n"),
    CONF_TEST("rst.rate-again", "RFC 5961 7",
              "challenge again after half a second", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< R 2:2(0) x 20\n"
                      "> . 1:1(0) ack 1\n"
                      "+0.4 < R 2:2(0)\n"
                      "quiet\n"
                      "+0.2 < R 2:2(0)\n"
                      "> . 1:1(0) ack 1\n"),
    CONF_TEST("rst.rate-apart", "RFC 5961 7",
              "limit the challenge ACKs of each connection by itself",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< R 2:2(0) x 20\n"
                      "> . 1:1(0) ack 1\n"
                      "conn 1\n" TCP_OPEN_PLAIN "< R 2:2(0)\n"
                      "> . 1:1(0) ack 1\n"),
    CONF_TEST("rst.closed-window", "RFC 9293 3.10.7.4",
              "take a RST with the exact number although the window is closed",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text =
                  "virtual\n" TCP_OPEN_PLAIN "< . 1:1001(1000) ack 1 win 0\n"
                  "< . 1001:2001(1000) ack 1 win 0\n"
                  "< . 2001:3001(1000) ack 1 win 0\n"
                  "< . 3001:4001(1000) ack 1 win 0\n"
                  "< . 4001:5001(1000) ack 1 win 0\n"
                  "< . 5001:6001(1000) ack 1 win 0\n"
                  "< . 6001:7001(1000) ack 1 win 0\n"
                  "< . 7001:8001(1000) ack 1 win 0\n"
                  "< P. 8001:8193(192) ack 1 win 0\n"
                  "drop\n"
                  "< R 8194:8194(0)\n"
                  "quiet\n"
                  "< R 8193:8193(0)\n"
                  "quiet\n"
                  "< . 8193:8193(0) ack 1\n"
                  "> R 1:1(0)\n"),
    CONF_TEST("rst.sack-gap", "RFC 5961 3.2",
              "take no RST that follows early bytes", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_SACK "< . 101:201(100) ack 1\n"
                                    "> . 1:1(0) ack 1 <sack 101:201>\n"
                                    "< R 201:201(0)\n"
                                    "> . 1:1(0) ack 1 <sack 101:201>\n"
                                    "< P. 1:101(100) ack 1\n"
                                    "> . 1:1(0) ack 201\n"),
    CONF_TEST("syn.exact", "RFC 5961 4.2",
              "challenge a SYN with the exact number", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< S 1:1(0)\n"
                                     "> . 1:1(0) ack 1\n"),
    CONF_TEST("syn.outside", "RFC 5961 4.2",
              "challenge a SYN outside of the window", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< S 20000:20000(0)\n"
                                     "> . 1:1(0) ack 1\n"),
    CONF_TEST("syn.ack", "RFC 5961 4.2", "challenge a SYN-ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< S. 0:0(0) ack 1\n"
                                     "> . 1:1(0) ack 1\n"),
    CONF_TEST("syn.rate", "RFC 5961 7", "send one challenge ACK for many SYNs",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< S 1:1(0) x 20\n"
                      "> . 1:1(0) ack 1\n"
                      "quiet\n"),
    CONF_TEST("syn.rebooted", "RFC 9293 3.5.1",
              "let a peer that has rebooted find out, and connect again",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< S 30000:30000(0) win 65535 <mss 1000>\n"
                                     "> . 1:1(0) ack 1\n"
                                     "< R 1:1(0)\n"
                                     "quiet\n"
                                     "< S 30000:30000(0) win 65535 <mss 1000>\n"
                                     "> S. 0:0(0) ack 30001\n"),
    CONF_TEST("blind.data", "RFC 9293 3.10.7.4",
              "take no data outside of the window", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 8500:8600(100) ack 1\n"
                                     "> . 1:1(0) ack 1\n"
                                     "quiet\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("blind.data-rate", "RFC 5961 7",
              "send one ACK for many segments outside of the window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text =
                  "virtual\n" TCP_OPEN_PLAIN "< P. 8500:8600(100) ack 1 x 20\n"
                  "> . 1:1(0) ack 1\n"
                  "quiet\n"),
    CONF_TEST("blind.ack-rate", "RFC 5961 7",
              "send one ACK for many wrong ACKs", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< . 1:1(0) ack 5000 x 20\n"
                      "> . 1:1(0) ack 1\n"
                      "quiet\n"),
    CONF_TEST("blind.ack-edge", "RFC 5961 5.2",
              "take an ACK that is older by less than the largest window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 0\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("blind.fin", "RFC 9293 3.10.7.4",
              "take no FIN outside of the window", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< F. 9000:9000(0) ack 1\n"
                                     "> . 1:1(0) ack 1\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("blind.urgent", "RFC 9293 3.8.5",
              "ignore an urgent pointer far beyond the data", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< PU. 1:6(5) ack 1 urgent 65535\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("paws.old", "RFC 7323 5.3",
              "drop a segment with an old timestamp, and answer it",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN "< P. 1:6(5) ack 1 win 512 <TS 119 ecr last>\n"
                               "> . 1:1(0) ack 1 <TS ecr 120>\n"
                               "quiet\n"
                               "< P. 1:6(5) ack 1 win 512 <TS 121 ecr last>\n"
                               "> P. 1:6(5) ack 6 <TS ecr 121>\n"),
    CONF_TEST("paws.same", "RFC 7323 5.3",
              "take a segment with the same timestamp as the last one",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN "< P. 1:6(5) ack 1 win 512 <TS 120 ecr last>\n"
                               "> P. 1:6(5) ack 6 <TS ecr 120>\n"),
    CONF_TEST("paws.rst", "RFC 7323 5.2", "take a RST whatever its timestamp",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN "< R 1:1(0) <TS 1 ecr 0>\n"
                               "quiet\n"
                               "< . 1:1(0) ack 1 <TS 130 ecr last>\n"
                               "> R 1:1(0)\n"),
    CONF_TEST("paws.missing", "RFC 7323 3.2",
              "drop a segment without the agreed timestamp in silence",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN "< P. 1:6(5) ack 1 win 512\n"
                               "quiet\n"
                               "< P. 1:6(5) ack 1 win 512 <TS 121 ecr last>\n"
                               "> P. 1:6(5) ack 6 <TS ecr 121>\n"),
    CONF_TEST("paws.not-agreed", "RFC 7323 3.2",
              "ignore a timestamp that was not agreed", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1 <TS 5 ecr 5>\n"
                                     "> P. 1:6(5) ack 6 <no TS>\n"
                                     "< P. 6:11(5) ack 6 <TS 4 ecr 5>\n"
                                     "> P. 6:11(5) ack 11\n"),
    CONF_TEST("paws.wrap", "RFC 7323 5.2",
              "compare timestamps that have wrapped", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000,TS 0xfffffff0 ecr 0>\n"
                      "> S. 0:0(0) ack 1 <TS ecr 0xfffffff0>\n"
                      "< . 1:1(0) ack 1 <TS 0xfffffffe ecr last>\n"
                      "< P. 1:6(5) ack 1 <TS 3 ecr last>\n"
                      "> P. 1:6(5) ack 6 <TS ecr 3>\n"
                      "< P. 6:11(5) ack 6 <TS 0xffffffff ecr last>\n"
                      "> . 6:6(0) ack 6 <TS ecr 3>\n"),
    CONF_TEST("paws.rate", "RFC 5961 7",
              "send few ACKs for many segments with old timestamps",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN
                      "< P. 9001:9006(5) ack 1 win 512 <TS 1 ecr last> x 20\n"
                      "> . 1:1(0) ack 1 <TS ecr 120>\n"
                      "quiet\n"),
    CONF_TEST("times.early", "RFC 7323 4.3",
              "echo the timestamp of the segment that filled the last gap, not "
              "of an early one",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text =
                  "to 9\n" TCP_OPEN "< . 101:201(100) ack 1 <TS 150 ecr last>\n"
                  "> . 1:1(0) ack 1 <TS ecr 120,sack 101:201>\n"
                  "< . 1:101(100) ack 1 <TS 151 ecr last>\n"
                  "> . 1:1(0) ack 201 <TS ecr 151>\n"),
    CONF_TEST(
        "times.delayed", "RFC 7323 4.3",
        "echo the timestamp of the first of the segments that an ACK covers",
        tcp_script_run, .needs = CONF_NEEDS_CONTROL,
        .text = "virtual\n"
                "to 9\n" TCP_OPEN "< . 1:101(100) ack 1 <TS 150 ecr last>\n"
                "< . 101:201(100) ack 1 <TS 160 ecr last>\n"
                "> . 1:1(0) ack 201 <TS ecr 150>\n"),
    CONF_TEST("sack.outside", "RFC 2018 4",
              "ignore SACK blocks of bytes that are not in flight",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:301(300) ack 1\n"
                      "> . 1:101(100) ack 301\n"
                      "> . 101:201(100) ack 301\n"
                      "> P. 201:301(100) ack 301\n"
                      "< . 301:301(0) ack 1 <sack 1000:2000>\n"
                      "< . 301:301(0) ack 1 <sack 1000:2000>\n"
                      "< . 301:301(0) ack 1 <sack 1000:2000>\n"
                      "quiet\n"),
    CONF_TEST("sack.inverted", "RFC 2018 3",
              "ignore SACK blocks whose ends are swapped", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:301(300) ack 1\n"
                      "> . 1:101(100) ack 301\n"
                      "> . 101:201(100) ack 301\n"
                      "> P. 201:301(100) ack 301\n"
                      "< . 301:301(0) ack 1 <sack 301:201>\n"
                      "< . 301:301(0) ack 1 <sack 301:201>\n"
                      "< . 301:301(0) ack 1 <sack 301:201>\n"
                      "quiet\n"),
    CONF_TEST("sack.malformed", "RFC 2018 3",
              "drop a segment whose SACK option has an impossible length",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text =
                  TCP_OPEN_SACK "< P. 1:6(5) ack 1 <bytes 0507112233445566>\n"
                                "quiet\n"
                                "< P. 1:6(5) ack 1\n"
                                "> P. 1:6(5) ack 6\n"),
};
CONF_TESTS(conf_tests_tcp_attack, "tcp", tests);
