/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tcp`: retransmission and congestion.  Segments of the drive have 100
 * bytes, and its round trip is 20 ms, but for handshakes of a test's own.
 */
#include "tcp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("rto.first", "RFC 6298 2.2, 5.1",
              "send bytes again that are never acknowledged", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "+0.15..0.3 > P. 1:101(100) ack 101\n"),
    CONF_TEST("rto.backoff", "RFC 6298 5.5",
              "double the pause after each retransmission", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "+0.15..0.3 > P. 1:101(100) ack 101\n"
                      "+0.3..0.5 > P. 1:101(100) ack 101\n"
                      "+0.7..0.9 > P. 1:101(100) ack 101\n"
                      "+1.5..1.7 > P. 1:101(100) ack 101\n"),
    CONF_TEST("rto.backoff-ends", "RFC 6298 5.7",
              "begin with a short pause again after an ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "+2 drop\n"
                      "+0.1 < . 101:101(0) ack 101\n"
                      "< P. 101:201(100) ack 101\n"
                      "> P. 101:201(100) ack 201\n"
                      "+0.15..0.5 > P. 101:201(100) ack 201\n"),
    CONF_TEST("rto.merged", "RFC 9293 3.8.1",
              "take an ACK in the middle of what was sent again",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:301(300) ack 1\n"
                      "> P. 1:301(300) ack 301\n"
                      "< . 301:301(0) ack 151\n"
                      "+0.15..0.3 > P. 151:301(150) ack 301\n"),
    CONF_TEST("rto.one-segment", "RFC 5681 3.1",
              "send one segment after a time-out", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:801(800) ack 1\n"
                      "+0.001 least 8\n"
                      "+0.5 drop\n"
                      "< . 801:801(0) ack 1\n"
                      "+3 most 4\n"),
    CONF_TEST("rto.limit", "RFC 9293 3.8.3", "give up after 100 s or more",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "+99 least 7\n"
                      "+30 drop\n"
                      "< . 101:101(0) ack 1\n"
                      "> R 1:1(0)\n"),
    CONF_TEST("rto.handshake", "RFC 6298 5.7",
              "wait longer when the SYN-ACK had to be repeated", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "+1 > S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "+2.9..3.2 > P. 1:101(100) ack 101\n"),
    CONF_TEST("rto.reneged", "RFC 2018 8", "forget SACK blocks at a time-out",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:301(300) ack 1\n"
                      "> . 1:101(100) ack 301\n"
                      "> . 101:201(100) ack 301\n"
                      "> P. 201:301(100) ack 301\n"
                      "< . 301:301(0) ack 1 <sack 101:201>\n"
                      "+0.1 drop\n"
                      "+1 drop\n"
                      "< . 301:301(0) ack 101\n"
                      "+0.001 least 1\n"
                      "< . 301:301(0) ack 201\n"
                      "+1 least 1\n"),
    CONF_TEST("tlp.tail", "RFC 8985 7.3",
              "probe a lost tail before the time-out", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:301(300) ack 1\n"
                      "> . 1:101(100) ack 301\n"
                      "> . 101:201(100) ack 301\n"
                      "> P. 201:301(100) ack 301\n"
                      "+0.02 < . 301:301(0) ack 101\n"
                      "+0.02..0.15 > P. 201:301(100) ack 301\n"
                      "+0.02 < . 301:301(0) ack 101 <sack 201:301>\n"
                      "+0..0.05 > . 101:201(100) ack 301\n"
                      "< . 301:301(0) ack 301\n"
                      "+2 quiet\n"),
    CONF_TEST("tlp.once", "RFC 8985 7.2",
              "send one probe for a flight, then wait for the time-out",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:301(300) ack 1\n"
                      "+0.001 drop\n"
                      "+0.15 most 1\n"),
    CONF_TEST("fast.sack", "RFC 8985 6.2",
              "send a lost segment again when later ones have come",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:501(500) ack 1\n"
                      "+0.001 least 5\n"
                      "+0.019 < . 501:501(0) ack 1 <sack 101:201>\n"
                      "< . 501:501(0) ack 1 <sack 101:301>\n"
                      "< . 501:501(0) ack 1 <sack 101:401>\n"
                      "+0..0.02 > . 1:101(100) ack 501\n"
                      "< . 501:501(0) ack 501\n"
                      "+2 quiet\n"),
    CONF_TEST("fast.holes-only", "RFC 6675 5",
              "send only what was not reported", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:801(800) ack 1\n"
                      "+0.001 least 8\n"
                      "+0.019 < . 801:801(0) ack 101 <sack 201:301>\n"
                      "< . 801:801(0) ack 101 <sack 401:501,201:301>\n"
                      "< . 801:801(0) ack 101 <sack 401:801,201:301>\n"
                      "+0..0.02 > . 101:201(100) ack 801\n"
                      "> . 301:401(100) ack 801\n"
                      "< . 801:801(0) ack 801\n"
                      "+2 quiet\n"),
    CONF_TEST("fast.reordered", "RFC 8985 6.2",
              "wait for a segment that may be late, without a retransmission",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:501(500) ack 1\n"
                      "+0.001 least 5\n"
                      "+0.019 < . 501:501(0) ack 1 <sack 101:201>\n"
                      "+0.001 < . 501:501(0) ack 501\n"
                      "+2 quiet\n"),
    CONF_TEST("fast.three", "RFC 5681 3.2",
              "take three duplicate ACKs as a loss without SACK",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 100>\n"
                      "> S. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1 win 65535\n"
                      "< P. 1:501(500) ack 1\n"
                      "+0.001 least 5\n"
                      "+0.019 < . 501:501(0) ack 1\n"
                      "< . 501:501(0) ack 1\n"
                      "quiet\n"
                      "< . 501:501(0) ack 1\n"
                      "> . 1:101(100) ack 501\n"),
    CONF_TEST("fast.partial", "RFC 6582 3.2",
              "send the next hole at a partial ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 100>\n"
                      "> S. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1 win 65535\n"
                      "< P. 1:601(600) ack 1\n"
                      "+0.001 least 6\n"
                      "+0.019 < . 601:601(0) ack 1 x 3\n"
                      "> . 1:101(100) ack 601\n"
                      "< . 601:601(0) ack 201\n"
                      "> . 201:301(100) ack 601\n"
                      "< . 601:601(0) ack 601\n"
                      "+2 quiet\n"),
    CONF_TEST("fast.limited-dups", "RFC 5681 3.2",
              "send no more for duplicate ACKs than were in flight",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 100>\n"
                      "> S. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1 win 65535\n"
                      "< P. 1:1001(1000) ack 1\n"
                      "< P. 1001:2001(1000) ack 1\n"
                      "+0.001 drop\n"
                      "< . 2001:2001(0) ack 1 x 100\n"
                      "+0.001 most 10\n"),
    CONF_TEST("congestion.initial", "RFC 6928 2", "send ten segments at first",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< . 1:1001(1000) ack 1\n"
                      "< P. 1001:2001(1000) ack 1\n"
                      "+0.005 least 10\n"),
    CONF_TEST("congestion.initial-exact", "RFC 6928 2",
              "send no eleventh segment at first", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< . 1:1001(1000) ack 1\n"
                      "< P. 1001:2001(1000) ack 1\n"
                      "+0.005 most 10\n"),
    CONF_TEST("congestion.slow-start", "RFC 5681 3.1",
              "send more with each ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< . 1:1001(1000) ack 1\n"
                      "< . 1001:2001(1000) ack 1\n"
                      "< P. 2001:3001(1000) ack 1\n"
                      "+0.005 most 10\n"
                      "+0.015 < . 3001:3001(0) ack 201\n"
                      "+0.001 least 3\n"),
    CONF_TEST("congestion.halved", "RFC 5681 3.2; RFC 9937 5",
              "send less after a loss", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< . 1:1001(1000) ack 1\n"
                      "< . 1001:2001(1000) ack 1\n"
                      "< P. 2001:3001(1000) ack 1\n"
                      "+0.005 most 10\n"
                      "+0.015 < . 3001:3001(0) ack 1 <sack 101:1001>\n"
                      "+0.001 least 1\n"
                      "< . 3001:3001(0) ack 1001\n"
                      "+0.001 most 8\n"),
    CONF_TEST("congestion.idle", "RFC 5681 4.1",
              "send a burst of no more than ten segments after a pause",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< . 1:1001(1000) ack 1\n"
                      "< . 1001:2001(1000) ack 1\n"
                      "received 2000\n"
                      "< . 2001:3001(1000) ack 2001\n"
                      "< . 3001:4001(1000) ack 2001\n"
                      "received 4000\n"
                      "+30 drop\n"
                      "< . 4001:5001(1000) ack 4001\n"
                      "< . 5001:6001(1000) ack 4001\n"
                      "+0.001 most 10\n"),
    CONF_TEST("ecn.echo", "RFC 3168 6.1.3",
              "echo a mark until the peer has reduced its window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "to 9\n"
                      "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1 ce\n"
                      "> E. 1:1(0) ack 101\n"
                      "< P. 101:201(100) ack 1 ect\n"
                      "< P. 201:301(100) ack 1 ect\n"
                      "> E. 1:1(0) ack 301\n"
                      "< PW. 301:401(100) ack 1 ect\n"
                      "< P. 401:501(100) ack 1 ect\n"
                      "> . 1:1(0) ack 501\n"),
    CONF_TEST("ecn.not-agreed", "RFC 3168 6.1.1",
              "echo no mark without agreement", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "to 9\n" TCP_OPEN_PLAIN "< . 1:101(100) ack 1 ce\n"
                      "< P. 101:201(100) ack 1 ce\n"
                      "> . 1:1(0) ack 201\n"),
    CONF_TEST("ecn.data-marked", "RFC 3168 6.1.2", "mark new data as ECT",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101 ect\n"),
    CONF_TEST("ecn.ack-not-marked", "RFC 3168 6.1.4", "mark no bare ACK as ECT",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "to 9\n"
                      "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< . 1:101(100) ack 1 ect\n"
                      "< . 101:201(100) ack 1 ect\n"
                      "> . 1:1(0) ack 201\n"),
    CONF_TEST("ecn.again-not-marked", "RFC 3168 6.1.5",
              "mark no retransmission as ECT", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101 ect\n"
                      "+0.1..1 > P. 1:101(100) ack 101\n"),
    CONF_TEST("ecn.cwr", "RFC 3168 6.1.2",
              "tell the peer of a reduced window in the next new data",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101 ect\n"
                      "< E. 101:101(0) ack 101\n"
                      "< P. 101:201(100) ack 101\n"
                      "> PW. 101:201(100) ack 201 ect\n"
                      "< P. 201:301(100) ack 201\n"
                      "> P. 201:301(100) ack 301 ect\n"),
    CONF_TEST("ecn.once", "RFC 3168 6.1.2",
              "reduce the window once in a round trip", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< SEW 0:0(0) win 65535 <mss 100,sackOK>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1\n"
                      "< . 1:1001(1000) ack 1\n"
                      "< . 1001:2001(1000) ack 1\n"
                      "+0.005 least 10\n"
                      "+0.015 < E. 2001:2001(0) ack 101\n"
                      "< E. 2001:2001(0) ack 201\n"
                      "< E. 2001:2001(0) ack 301\n"
                      "< E. 2001:2001(0) ack 401\n"
                      "< E. 2001:2001(0) ack 501\n"
                      "< E. 2001:2001(0) ack 601\n"
                      "+0.001 least 2\n"),
    CONF_TEST("ecn.probe-not-marked", "RFC 3168 6.1.6",
              "mark no window probe as ECT", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1 win 0\n"
                      "+0.001..0.5 > . 1:1(0) ack 101\n"
                      "+0.1..1.1 > . 1:2(1) ack 101\n"),
    CONF_TEST("ecn.timeout-cwr", "RFC 3168 6.1.2",
              "tell the peer of a window that a time-out has reduced",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< SEW 0:0(0) win 65535 <mss 1000>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1\n"
                      "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101 ect\n"
                      "+0.1..1 > P. 1:101(100) ack 101\n"
                      "< . 101:101(0) ack 101\n"
                      "< P. 101:201(100) ack 101\n"
                      "> PW. 101:201(100) ack 201 ect\n"),
    CONF_TEST("ecn.one-segment", "RFC 3168 6.1.2", "let a mark raise no window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< SEW 0:0(0) win 65535 <mss 100>\n"
                      "> SE. 0:0(0) ack 1\n"
                      "+0.02 < . 1:1(0) ack 1\n"
                      "< P. 1:301(300) ack 1\n"
                      "> . 1:101(100) ack 301 ect\n"
                      "> . 101:201(100) ack 301 ect\n"
                      "> P. 201:301(100) ack 301 ect\n"
                      "+0.1..1 > . 1:101(100) ack 301\n"
                      "< P. 301:1301(1000) ack 301\n"
                      "> W. 301:401(100) ack 1301 ect\n"
                      "+0.02 < E. 1301:1301(0) ack 401\n"
                      "+0.001 most 1\n"),
};
CONF_TESTS(conf_tests_tcp_loss, "tcp", tests);
