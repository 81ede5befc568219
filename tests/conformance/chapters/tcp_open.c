/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tcp`: how connections begin.  The drive listens; it opens none.
 * Numbers: see tcp_script.h.
 */
#include "tcp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("open.options", "RFC 9293 3.5; RFC 7323 1.3; RFC 2018 2",
              "agree on all options that the peer offers", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN
              "quiet\n"
              "< P. 1:6(5) ack 1 win 512 <nop,nop,TS 130 ecr last>\n"
              "> P. 1:6(5) ack 6 <TS ecr 130>\n"),
    CONF_TEST("open.plain", "RFC 9293 3.2",
              "use no option that the peer has not offered", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text =
                  "< S 0:0(0) win 65535\n"
                  "> S. 0:0(0) ack 1 win 8192 <mss own,no ws,no TS,no sackOK>\n"
                  "< . 1:1(0) ack 1 win 65535\n"
                  "< P. 1:6(5) ack 1\n"
                  "> P. 1:6(5) ack 6 <no TS>\n"),
    CONF_TEST("open.times-only", "RFC 7323 3.2", "agree on timestamps alone",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <TS 7 ecr 0>\n"
                      "> S. 0:0(0) ack 1 <mss own,TS ecr 7,no ws,no sackOK>\n"
                      "< . 1:1(0) ack 1 <TS 8 ecr last>\n"
                      "< P. 1:6(5) ack 1 <TS 9 ecr last>\n"
                      "> P. 1:6(5) ack 6 <TS ecr 9>\n"),
    CONF_TEST("open.scale-only", "RFC 7323 2.2",
              "agree on window scaling alone", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <ws 3>\n"
                      "> S. 0:0(0) ack 1 win 8192 <ws 0,no TS,no sackOK>\n"),
    CONF_TEST("open.sack-only", "RFC 2018 2", "agree on SACK alone",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <sackOK>\n"
                      "> S. 0:0(0) ack 1 <sackOK,no TS,no ws>\n"),
    CONF_TEST("open.scale-used", "RFC 7323 2.3",
              "multiply the window of later segments", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000,ws 7>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1 win 2\n"
                      "< P. 1:1001(1000) ack 1 win 2\n"
                      "> . 1:257(256) ack 1001\n"),
    CONF_TEST("open.scale-beyond-14", "RFC 7323 2.3",
              "take a shift of 15 as 14", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000,ws 15>\n"
                      "> S. 0:0(0) ack 1 <ws 0>\n"
                      "< . 1:1(0) ack 1 win 1\n"
                      "< P. 1:6(5) ack 1 win 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.mss-default", "RFC 9293 3.7.1",
              "send 536 bytes without the option MSS", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:601(600) ack 1\n"
                      "> . 1:537(536) ack 601\n"
                      "> P. 537:601(64) ack 601\n"),
    CONF_TEST("open.mss-default-v6", "RFC 9293 3.7.1",
              "send 1220 bytes over IPv6 without the option MSS",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "v6\n"
                      "< S 0:0(0) win 65535\n"
                      "> S. 0:0(0) ack 1 <mss own>\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:1301(1300) ack 1\n"
                      "> . 1:1221(1220) ack 1301\n"
                      "> P. 1221:1301(80) ack 1301\n"),
    CONF_TEST("open.mss-least", "RFC 9293 3.7.1",
              "send no tiny segments, whatever the peer asks for",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1\n"
                      "> . 1:65(64) ack 101\n"
                      "> P. 65:101(36) ack 101\n"),
    CONF_TEST("open.mss-zero", "RFC 9293 3.7.1", "take an MSS of 0 as none",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 0>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:601(600) ack 1\n"
                      "> . 1:537(536) ack 601\n"
                      "> P. 537:601(64) ack 601\n"),
    CONF_TEST("open.mss-less-options", "RFC 9293 3.7.1; RFC 6691 2",
              "leave room for options within the MSS", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000,TS 1 ecr 0>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1 <TS 2 ecr last>\n"
                      "< P. 1:1101(1100) ack 1 <TS 3 ecr last>\n"
                      "> . 1:989(988) ack 1101\n"
                      "> P. 989:1101(112) ack 1101\n"),
    CONF_TEST("open.unknown-option", "RFC 9293 3.2",
              "skip an option of an unknown kind", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <bytes fd06aabbccdd,mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"),
    CONF_TEST("open.end-of-options", "RFC 9293 3.2",
              "read no option after the end of the list", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000,eol,bytes 030307>\n"
                      "> S. 0:0(0) ack 1 <no ws>\n"),
    CONF_TEST("open.option-length-zero", "RFC 9293 3.2",
              "drop a segment with an option of length 0", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< S 0:0(0) win 65535 <bytes fd00>\n"
                      "quiet\n"
                      "works\n"),
    CONF_TEST("open.option-overrun", "RFC 9293 3.2",
              "drop a segment whose option is longer than the header",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< S 0:0(0) win 65535 <nop,nop,bytes 0206>\n"
                      "quiet\n"
                      "works\n"),
    CONF_TEST("open.option-length-wrong", "RFC 9293 3.2",
              "drop a segment with an MSS of wrong length", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< S 0:0(0) win 65535 <bytes 02060000aabb>\n"
                      "quiet\n"
                      "works\n"),
    CONF_TEST("open.syn-again", "RFC 9293 3.10.7.4",
              "answer a repeated SYN with the same SYN-ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "+0.5 < S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.syn-again-rate", "RFC 5961 7",
              "send fewer SYN-ACKs than a peer sends SYNs", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< S 0:0(0) win 65535 <mss 1000> x 10\n"
                      "> S. 0:0(0) ack 1\n"
                      "quiet\n"),
    CONF_TEST("open.syn-ack-lost", "RFC 9293 3.8.1; RFC 6298 2.1",
              "repeat the SYN-ACK with growing pauses", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "+1 > S. 0:0(0) ack 1\n"
                      "+2 > S. 0:0(0) ack 1\n"
                      "+4 > S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.syn-ack-limit", "RFC 9293 3.8.3",
              "give a SYN up when its answers are not acknowledged",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "+70 drop\n"
                      "< . 1:1(0) ack 1\n"
                      "> R 1:1(0)\n"),
    CONF_TEST("open.no-ack-no-data", "RFC 9293 3.10.7.4",
              "send no data before the handshake is complete", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "quiet\n"),
    CONF_TEST("open.rst", "RFC 9293 3.10.7.4",
              "end a half-open connection by RST, without an answer",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< R 1:1(0)\n"
                      "quiet\n"
                      "< . 1:1(0) ack 1\n"
                      "> R 1:1(0)\n"),
    CONF_TEST("open.rst-elsewhere", "RFC 5961 3.2",
              "ignore a RST with another number in SYN-RECEIVED",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< R 5:5(0)\n"
                      "quiet\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.ack-wrong", "RFC 9293 3.10.7.4",
              "answer an ACK of something else in SYN-RECEIVED with RST",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 5\n"
                      "> R 5:5(0)\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.ack-of-nothing", "RFC 9293 3.10.7.4",
              "answer an ACK of the ISN alone with RST", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 0\n"
                      "> R 0:0(0)\n"),
    CONF_TEST("open.data-in-syn", "RFC 9293 3.10.7.2",
              "lose no byte that came with a SYN", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:100(100) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"),
    CONF_TEST("open.data-with-ack", "RFC 9293 3.10.7.4",
              "take data of the segment that ends the handshake",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.fin-with-ack", "RFC 9293 3.10.7.4",
              "take a FIN of the segment that ends the handshake",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< F. 1:1(0) ack 1\n"
                      "> . 1:1(0) ack 2\n"
                      "> F. 1:1(0) ack 2\n"),
    CONF_TEST("open.other-syn", "RFC 5961 4.2",
              "let no other SYN end a handshake", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< S 100:100(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.old-times", "RFC 7323 5.3",
              "complete no handshake with an old timestamp", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000,TS 100 ecr 0>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1 <TS 50 ecr last>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1 <TS 101 ecr last>\n"
                      "< P. 1:6(5) ack 1 <TS 102 ecr last>\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.closed-port", "RFC 9293 3.5.2",
              "refuse a SYN to a port without listener", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "to 4321\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "abs > R. 0:0(0) ack 1\n"
                      "noicmp\n"),
    CONF_TEST("open.closed-port-ack", "RFC 9293 3.5.2",
              "answer an ACK to a closed port with RST and its number",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "to 4321\n"
                      "< . 1:1(0) ack 77\n"
                      "> R 77:77(0)\n"),
    CONF_TEST("open.closed-port-data", "RFC 9293 3.5.2",
              "count data in the RST of a segment without ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "to 4321\n"
                      "< S 0:10(10) win 65535\n"
                      "abs > R. 0:0(0) ack 11\n"),
    CONF_TEST("open.closed-port-fin", "RFC 9293 3.5.2",
              "answer a FIN to a closed port with RST", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "to 4321\n"
                      "< F. 1:1(0) ack 9\n"
                      "> R 9:9(0)\n"),
    CONF_TEST("open.closed-port-rst", "RFC 9293 3.5.2", "answer no RST",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "to 4321\n"
                      "< R 1:1(0)\n"
                      "< R. 1:1(0) ack 1\n"
                      "quiet\n"),
    CONF_TEST("open.listen-ack", "RFC 9293 3.10.7.2",
              "answer an ACK to a listener with RST", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< . 1:1(0) ack 33\n"
                      "> R 33:33(0)\n"),
    CONF_TEST("open.listen-syn-ack", "RFC 9293 3.10.7.2",
              "answer a SYN-ACK to a listener with RST", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S. 0:0(0) ack 33\n"
                      "> R 33:33(0)\n"),
    CONF_TEST("open.listen-rst", "RFC 9293 3.10.7.2",
              "ignore a RST to a listener", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< R 1:1(0)\n"
                      "quiet\n"),
    CONF_TEST("open.listen-data", "RFC 9293 3.10.7.2",
              "answer data without a connection with RST", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< P. 1:6(5) ack 33\n"
                      "> R 33:33(0)\n"),
    CONF_TEST("open.flags-none", "RFC 9293 3.10.7",
              "drop a segment without any flag", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< - 1:1(0)\n"
                      "quiet\n"),
    CONF_TEST("open.flags-syn-fin", "RFC 9293 3.10.7.2", "drop SYN with FIN",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< SF 0:0(0)\n"
                      "quiet\n"
                      "works\n"),
    CONF_TEST("open.flags-syn-rst", "RFC 9293 3.10.7.2", "drop SYN with RST",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< SR 0:0(0)\n"
                      "quiet\n"
                      "works\n"),
    CONF_TEST("open.flags-xmas", "RFC 9293 3.10.7",
              "drop FIN, PSH and URG without ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "< FPU 1:1(0)\n"
                      "quiet\n"),
    CONF_TEST("open.source-port-zero", "RFC 6335 6",
              "answer no segment from port 0", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "from 0\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "quiet\n"),
    CONF_TEST("open.destination-port-zero", "RFC 6335 6",
              "answer no segment to port 0", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = "to 0\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "quiet\n"),
    CONF_TEST("open.ecn", "RFC 3168 6.1.1", "agree on ECN", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1\n"
                      "> P. 1:6(5) ack 6 ect\n"),
    CONF_TEST("open.ecn-not-offered", "RFC 3168 6.1.1",
              "use no ECN that the peer has not offered", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:6(5) ack 1 ect\n"
                      "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.ecn-half", "RFC 3168 6.1.1",
              "take a SYN with ECE alone as one without ECN", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< SE 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"),
    CONF_TEST("open.ecn-repeated", "RFC 3168 6.1.1.1",
              "repeat the SYN-ACK without ECN", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "+1 > S. 0:0(0) ack 1\n"),
    CONF_TEST("open.established-syn", "RFC 5961 4.2",
              "answer a SYN on a connection with an ACK, and go on",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< S 500:500(0)\n"
                                     "> . 1:1(0) ack 1\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("open.again-at-once", "RFC 9293 3.6.1",
              "take a new SYN when the last connection is over", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< F. 1:1(0) ack 1\n"
                                     "> . 1:1(0) ack 2\n"
                                     "> F. 1:1(0) ack 2\n"
                                     "< . 2:2(0) ack 2\n"
                                     "quiet\n"
                                     "< S 5000:5000(0) win 65535 <mss 1000>\n"
                                     "> S. 0:0(0) ack 5001\n"),
};
CONF_TESTS(conf_tests_tcp_open, "tcp", tests);
