/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tcp`: what is around a segment: checksums, IP, VLANs, both ports,
 * ICMP.
 */
#include "tcp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("frame.checksum", "RFC 9293 3.1",
              "drop a segment with a wrong checksum", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< S 0:0(0) win 65535 <mss 1000> sum\n"
                      "quiet\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"),
    CONF_TEST("frame.checksum-data", "RFC 9293 3.1",
              "drop data with a wrong checksum", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1 sum\n"
                                     "quiet\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("frame.checksum-zero", "RFC 9293 3.1",
              "take a segment whose checksum is 0", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1 zerosum\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("frame.checksum-odd", "RFC 9293 3.1",
              "take and send an odd number of bytes", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:1(0) ack 1\n"
                                     "< P. 1:2(1) ack 1\n"
                                     "> P. 1:2(1) ack 2\n"
                                     "< P. 2:5(3) ack 2\n"
                                     "> P. 2:5(3) ack 5\n"),
    CONF_TEST("frame.offset-small", "RFC 9293 3.1",
              "drop a segment with a data offset of 4", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1 words 4\n"
                                     "quiet\n"
                                     "works\n"),
    CONF_TEST("frame.offset-large", "RFC 9293 3.1",
              "drop a segment whose header is longer than itself",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1 words 15\n"
                                     "quiet\n"
                                     "works\n"),
    CONF_TEST("frame.cut", "RFC 9293 3.1",
              "drop a segment that is shorter than a header", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< S 0:0(0) win 65535 cut 1\n"
                      "quiet\n"
                      "works\n"),
    CONF_TEST("frame.longest-options", "RFC 9293 3.1",
              "take 40 bytes of options", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000,bytes "
                      "fd24aabbccddaabbccddaabbccddaabbccddaabbccddaabbccddaabb"
                      "ccddaabbccddaabb>\n"
                      "> S. 0:0(0) ack 1\n"),
    CONF_TEST("frame.v6", "RFC 8200 8.1", "serve IPv6", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "v6\n" TCP_OPEN
                      "< P. 1:6(5) ack 1 win 512 <TS 130 ecr last>\n"
                      "> P. 1:6(5) ack 6 <TS ecr 130>\n"
                      "< F. 6:6(0) ack 6 win 512 <TS 131 ecr last>\n"
                      "> . 6:6(0) ack 7 <TS ecr 131>\n"
                      "> F. 6:6(0) ack 7 <TS ecr 131>\n"),
    CONF_TEST("frame.v6-closed-port", "RFC 9293 3.5.2",
              "refuse a SYN over IPv6", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "v6\n"
                      "to 4321\n"
                      "< S 0:0(0) win 65535\n"
                      "abs > R. 0:0(0) ack 1\n"),
    CONF_TEST("frame.v6-checksum", "RFC 8200 8.1",
              "drop a segment over IPv6 with a wrong checksum", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "v6\n"
                      "< S 0:0(0) win 65535 <mss 1000> sum\n"
                      "quiet\n"),
    CONF_TEST("frame.port1", "RFC 9293 3.10.7", "serve the second port",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "port 1\n" TCP_OPEN
                      "< P. 1:6(5) ack 1 win 512 <TS 130 ecr last>\n"
                      "> P. 1:6(5) ack 6 <TS ecr 130>\n"),
    CONF_TEST("frame.port1-v6", "RFC 8200 8.1", "serve IPv6 at the second port",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "port 1\n"
                      "v6\n" TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("frame.both-ports", "RFC 9293 3.3.1",
              "tell apart connections with equal TCP ports at both ports",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "from 45000\n" TCP_OPEN_PLAIN "conn 1\n"
                      "port 1\n"
                      "from 45000\n" TCP_OPEN_PLAIN "conn 0\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"
                      "conn 1\n"
                      "< P. 1:11(10) ack 1\n"
                      "> P. 1:11(10) ack 11\n"),
    CONF_TEST("frame.peers", "RFC 9293 3.3.1",
              "tell apart peers with equal TCP ports", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "from 45000\n" TCP_OPEN_PLAIN "conn 1\n"
                      "from 45000\n" TCP_OPEN_PLAIN "conn 0\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"
                      "conn 1\n"
                      "< P. 1:11(10) ack 1\n"
                      "> P. 1:11(10) ack 11\n"),
    CONF_TEST("frame.services", "RFC 862; RFC 863",
              "serve echo at port 7 and discard at port 9", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text =
                  TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                                 "> P. 1:6(5) ack 6\n"
                                 "conn 1\n"
                                 "to 9\n" TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                                 "+0.001..0.5 > . 1:1(0) ack 6\n"),
    CONF_TEST("frame.priority", "IEEE 802.1Q 6.9.1",
              "answer with the priority of a priority-tagged frame",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "priority 5\n" TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("frame.fragments", "RFC 791 3.2",
              "drop TCP in fragments without an ICMP error, as documented",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:401(400) ack 1 fragment 200\n"
                                     "quiet\n"
                                     "noicmp\n"
                                     "< P. 1:401(400) ack 1\n"
                                     "> P. 1:401(400) ack 401\n"),
    CONF_TEST("frame.ip-options", "RFC 791 3.1",
              "drop TCP with IPv4 options without an ICMP error, as documented",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1 ipoption\n"
                                     "quiet\n"
                                     "noicmp\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("frame.dont-care", "RFC 9293 3.9.2",
              "take a segment with any type of service", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1 ect\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("icmp.port-unreachable", "RFC 5927 5.2; RFC 1122 4.2.3.9",
              "keep a connection although its port is unreachable",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "icmp 3 3 0 1\n"
                      "+0.1 quiet\n"
                      "< . 101:101(0) ack 101\n"
                      "< P. 101:106(5) ack 101\n"
                      "> P. 101:106(5) ack 106\n"),
    CONF_TEST("icmp.protocol-unreachable", "RFC 5927 5.2",
              "keep a connection although its protocol is unreachable",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "icmp 3 2 0 1\n"
                      "+0.1 quiet\n"
                      "< . 101:101(0) ack 101\n"
                      "< P. 101:106(5) ack 101\n"
                      "> P. 101:106(5) ack 106\n"),
    CONF_TEST("icmp.host-unreachable", "RFC 1122 4.2.3.9",
              "keep a connection although its host is unreachable",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "icmp 3 1 0 1\n"
                      "+0.1 quiet\n"),
    CONF_TEST("icmp.source-quench", "RFC 6633 3", "ignore a source quench",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "icmp 4 0 0 1\n"
                      "+0.1 quiet\n"),
    CONF_TEST("icmp.too-big", "RFC 5927 7",
              "keep the size of segments, as documented: IPv4 packets may be "
              "fragmented",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:1001(1000) ack 1\n"
                      "> P. 1:1001(1000) ack 1001\n"
                      "icmp 3 4 68 1\n"
                      "+0.15..0.3 > P. 1:1001(1000) ack 1001\n"),
    CONF_TEST("icmp.too-big-v6", "RFC 8201 4",
              "keep the size of segments over IPv6, as documented",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "v6\n" TCP_OPEN_PLAIN "< P. 1:1001(1000) ack 1\n"
                      "> P. 1:1001(1000) ack 1001\n"
                      "icmp 2 0 1280 1\n"
                      "+0.15..0.3 > P. 1:1001(1000) ack 1001\n"),
    CONF_TEST("icmp.half-open", "RFC 5927 5.2",
              "keep a half-open connection although its port is unreachable",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "icmp 3 3 0 0\n"
                      "quiet\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("off.unreachable", "RFC 1122 3.2.2.1",
              "answer TCP as an unknown protocol while the services are off",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "off\n"
                      "< S 0:0(0) win 65535\n"
                      "quiet\n"),
};
CONF_TESTS(conf_tests_tcp_frame, "tcp", tests);
