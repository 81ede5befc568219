/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tcp`: data in both directions, windows and acknowledgements.
 * The drive's receive window is 8 KiB: a receive ring of its services.
 */
#include "tcp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("data.echo", "RFC 9293 3.10.7.4", "take bytes and send bytes",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"
                                     "< P. 6:1006(1000) ack 6\n"
                                     "> P. 6:1006(1000) ack 1006\n"
                                     "< . 1006:1006(0) ack 1006\n"
                                     "quiet\n"),
    CONF_TEST("data.window", "RFC 9293 3.8.6",
              "take as many bytes as the window allows", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< . 1:1001(1000) ack 1\n"
                                     "< . 1001:2001(1000) ack 1\n"
                                     "< . 2001:3001(1000) ack 1\n"
                                     "< . 3001:4001(1000) ack 1\n"
                                     "< . 4001:5001(1000) ack 1\n"
                                     "< . 5001:6001(1000) ack 1\n"
                                     "< . 6001:7001(1000) ack 1\n"
                                     "< . 7001:8001(1000) ack 1\n"
                                     "< P. 8001:8193(192) ack 1\n"
                                     "received 8192\n"),
    CONF_TEST("data.discard", "RFC 9293 3.8.6.3",
              "acknowledge a single segment within half a second",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "to 9\n" TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                      "+0.001..0.5 > . 1:1(0) ack 6\n"
                      "quiet\n"),
    CONF_TEST("data.ack-second", "RFC 9293 3.8.6.3",
              "acknowledge at least every second full segment at once",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "to 9\n" TCP_OPEN_PLAIN "< . 1:1001(1000) ack 1\n"
                      "< . 1001:2001(1000) ack 1\n"
                      "> . 1:1(0) ack 2001\n"),
    CONF_TEST("data.ack-with-data", "RFC 9293 3.8.6.3",
              "acknowledge with the data that go back", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"
                                     "quiet\n"),
    CONF_TEST("data.wrap", "RFC 9293 3.4", "go on over sequence number 0",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "isn 0xfffffffa\n" TCP_OPEN_PLAIN "< P. 1:11(10) ack 1\n"
                      "> P. 1:11(10) ack 11\n"),
    CONF_TEST("data.urgent", "RFC 9293 3.8.5",
              "deliver urgent bytes with the others", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< PU. 1:6(5) ack 1 urgent 3\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("data.no-ack-bit", "RFC 9293 3.10.7.4",
              "drop data without the ACK bit", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL, .is_malformed = true,
              .text = TCP_OPEN_PLAIN "< P 1:6(5) ack 1\n"
                                     "quiet\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST(
        "data.early", "RFC 9293 3.10.7.4; RFC 5681 4.2",
        "answer early bytes at once, keep them, and deliver them in order",
        tcp_script_run, .needs = CONF_NEEDS_CONTROL,
        .text = TCP_OPEN_PLAIN "< P. 101:201(100) ack 1\n"
                               "> . 1:1(0) ack 1\n"
                               "< . 1:101(100) ack 1\n"
                               "> . 1:1(0) ack 201\n"
                               "received 200\n"),
    CONF_TEST("data.early-sack", "RFC 2018 3",
              "tell of early bytes in a SACK block", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_SACK "< P. 101:201(100) ack 1\n"
                                    "> . 1:1(0) ack 1 <sack 101:201>\n"),
    CONF_TEST("data.no-sack", "RFC 2018 2",
              "send no SACK block that was not agreed", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 101:201(100) ack 1\n"
                                     "> . 1:1(0) ack 1\n"),
    CONF_TEST("data.sack-newest", "RFC 2018 4",
              "name the block with the newest bytes first", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "to 9\n" TCP_OPEN_SACK "< . 101:201(100) ack 1\n"
                      "> . 1:1(0) ack 1 <sack 101:201>\n"
                      "< . 301:401(100) ack 1\n"
                      "> . 1:1(0) ack 1 <sack 301:401,101:201>\n"
                      "< . 501:601(100) ack 1\n"
                      "> . 1:1(0) ack 1 <sack 501:601,301:401,101:201>\n"
                      "< . 201:301(100) ack 1\n"
                      "> . 1:1(0) ack 1 <sack 101:401,501:601>\n"),
    CONF_TEST(
        "data.sack-four", "RFC 2018 3", "name four blocks without timestamps",
        tcp_script_run, .needs = CONF_NEEDS_CONTROL,
        .text = "to 9\n" TCP_OPEN_SACK "< . 101:201(100) ack 1\n"
                "> . 1:1(0) ack 1 <sack 101:201>\n"
                "< . 301:401(100) ack 1\n"
                "> . 1:1(0) ack 1 <sack 301:401,101:201>\n"
                "< . 501:601(100) ack 1\n"
                "> . 1:1(0) ack 1 <sack 501:601,301:401,101:201>\n"
                "< . 701:801(100) ack 1\n"
                "> . 1:1(0) ack 1 <sack 701:801,501:601,301:401,101:201>\n"
                "< . 901:1001(100) ack 1\n"
                "> . 1:1(0) ack 1 <sack 901:1001,701:801,501:601,301:401>\n"),
    CONF_TEST(
        "data.sack-three", "RFC 2018 3", "name three blocks with timestamps",
        tcp_script_run, .needs = CONF_NEEDS_CONTROL,
        .text = "to 9\n" TCP_OPEN "< . 101:201(100) ack 1 <TS 130 ecr last>\n"
                "> . 1:1(0) ack 1 <TS ecr 120,sack 101:201>\n"
                "< . 301:401(100) ack 1 <TS 131 ecr last>\n"
                "> . 1:1(0) ack 1 <TS ecr 120,sack 301:401,101:201>\n"
                "< . 501:601(100) ack 1 <TS 132 ecr last>\n"
                "> . 1:1(0) ack 1 <TS ecr 120,sack 501:601,301:401,101:201>\n"
                "< . 701:801(100) ack 1 <TS 133 ecr last>\n"
                "> . 1:1(0) ack 1 <TS ecr 120,sack 701:801,501:601,301:401>\n"),
    CONF_TEST("data.fill", "RFC 5681 4.2",
              "acknowledge at once when a gap is filled", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "to 9\n" TCP_OPEN_SACK "< . 101:201(100) ack 1\n"
                      "> . 1:1(0) ack 1 <sack 101:201>\n"
                      "< . 1:101(100) ack 1\n"
                      "> . 1:1(0) ack 201\n"),
    CONF_TEST("data.twice", "RFC 9293 3.10.7.4; RFC 2883 4.1",
              "acknowledge bytes that come twice, and tell of them",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_SACK "< P. 1:101(100) ack 1\n"
                                    "> P. 1:101(100) ack 101\n"
                                    "< P. 1:101(100) ack 101\n"
                                    "> . 101:101(0) ack 101 <sack 1:101>\n"
                                    "quiet\n"),
    CONF_TEST("data.twice-early", "RFC 2883 4.1",
              "tell of early bytes that come twice", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "to 9\n" TCP_OPEN_SACK "< . 101:201(100) ack 1\n"
                      "> . 1:1(0) ack 1 <sack 101:201>\n"
                      "< . 101:201(100) ack 1\n"
                      "> . 1:1(0) ack 1 <sack 101:201,101:201>\n"),
    CONF_TEST("data.left-edge", "RFC 9293 3.10.7.4",
              "take the new part of a segment that begins before the window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                                     "> P. 1:101(100) ack 101\n"
                                     "< P. 51:151(100) ack 101\n"
                                     "> . 101:101(0) ack 151\n"
                                     "> P. 101:151(50) ack 151\n"),
    CONF_TEST("data.right-edge", "RFC 9293 3.10.7.4",
              "take no byte beyond the window", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "to 9\n" TCP_OPEN_PLAIN "< P. 8001:9001(1000) ack 1\n"
                      "> . 1:1(0) ack 1\n"),
    CONF_TEST("data.beyond", "RFC 9293 3.10.7.4",
              "answer a segment beyond the window with an ACK, and drop it",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "to 9\n" TCP_OPEN_PLAIN "< . 8193:8293(100) ack 1\n"
                      "> . 1:1(0) ack 1 win 8192\n"),
    CONF_TEST("data.many-gaps", "RFC 2018 8",
              "lose nothing when more gaps come than can be kept",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< . 101:111(10) ack 1\n"
                      "< . 121:131(10) ack 1\n"
                      "< . 141:151(10) ack 1\n"
                      "< . 161:171(10) ack 1\n"
                      "< . 181:191(10) ack 1\n"
                      "< . 201:211(10) ack 1\n"
                      "< . 221:231(10) ack 1\n"
                      "< . 241:251(10) ack 1\n"
                      "< . 261:271(10) ack 1\n"
                      "< . 281:291(10) ack 1\n"
                      "< . 301:311(10) ack 1\n"
                      "< . 321:331(10) ack 1\n"
                      "< . 341:351(10) ack 1\n"
                      "< . 361:371(10) ack 1\n"
                      "< . 381:391(10) ack 1\n"
                      "< . 401:411(10) ack 1\n"
                      "< . 421:431(10) ack 1\n"
                      "< . 441:451(10) ack 1\n"
                      "drop\n"
                      "< . 1:501(500) ack 1\n"
                      "received 500\n"),
    CONF_TEST("window.counts", "RFC 9293 3.8.6",
              "tell a smaller window while bytes wait", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text =
                  TCP_OPEN_PLAIN "< . 1:1001(1000) ack 1 win 0\n"
                                 "+0.001..0.5 > . 1:1(0) ack 1001 win 7192\n"),
    CONF_TEST("window.closed", "RFC 9293 3.10.7.4",
              "close the window, and take no byte then", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
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
                  "< . 8193:8194(1) ack 1 win 0\n"
                  "> . 1:1(0) ack 8193 win 0\n"),
    CONF_TEST("window.closed-ack", "RFC 9293 3.10.7.4",
              "take an ACK although the window is closed", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
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
                  "< . 8193:8193(0) ack 1 win 65535\n"
                  "received 8192\n"),
    CONF_TEST("window.own-steps", "RFC 9293 3.8.6.2.2",
              "open the window in large steps", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101 win 8092\n"
                      "< . 101:101(0) ack 101\n"
                      "quiet\n"
                      "< P. 101:201(100) ack 101\n"
                      "> P. 101:201(100) ack 201 win 7992\n"),
    CONF_TEST("window.respected", "RFC 9293 3.8.6",
              "send no more than the peer's window", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 500 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1 win 500\n"
                      "< P. 1:1001(1000) ack 1 win 500\n"
                      "> . 1:501(500) ack 1001\n"
                      "quiet\n"
                      "< . 1001:1001(0) ack 501 win 500\n"
                      "> P. 501:1001(500) ack 1001\n"),
    CONF_TEST("window.opens", "RFC 9293 3.10.7.4",
              "send as soon as the window opens", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1 win 0\n"
                      "+0.001..0.5 > . 1:1(0) ack 101\n"
                      "< . 101:101(0) ack 1 win 1000\n"
                      "> P. 1:101(100) ack 101\n"),
    CONF_TEST("window.probe", "RFC 9293 3.8.6.1",
              "probe a closed window, with growing pauses", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1 win 0\n"
                      "+0.001..0.5 > . 1:1(0) ack 101\n"
                      "+0.1..1.1 > . 1:2(1) ack 101\n"
                      "< . 101:101(0) ack 1 win 0\n"
                      "+0.3..0.5 > . 1:2(1) ack 101\n"
                      "< . 101:101(0) ack 1 win 0\n"
                      "+0.7..0.9 > . 1:2(1) ack 101\n"
                      "< . 101:101(0) ack 2 win 1000\n"
                      "> P. 2:101(99) ack 101\n"),
    CONF_TEST("window.probe-taken", "RFC 9293 3.8.6.1",
              "go on when a probe finds the window open", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1 win 0\n"
                      "+0.001..0.5 > . 1:1(0) ack 101\n"
                      "+0.1..1.1 > . 1:2(1) ack 101\n"
                      "< . 101:101(0) ack 2 win 1000\n"
                      "> P. 2:101(99) ack 101\n"),
    CONF_TEST("window.probe-and-data", "RFC 9293 3.10.7.4",
              "acknowledge with a number inside of the closed window while a "
              "probe is out",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1 win 0\n"
                      "+0.001..0.5 > . 1:1(0) ack 101\n"
                      "+0.1..1.1 > . 1:2(1) ack 101\n"
                      "< . 101:101(0) ack 1 win 0\n"
                      "< . 101:1101(1000) ack 1 win 0\n"
                      "< . 1101:2101(1000) ack 1 win 0\n"
                      "> . 1:1(0) ack 2101\n"),
    CONF_TEST("window.never-open", "RFC 9293 3.8.6.1; 3.8.3",
              "give a peer up that answers no probe", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1 win 0\n"
                      "+99 drop\n"
                      "+22 drop\n"
                      "< . 101:101(0) ack 1 win 0\n"
                      "> R 1:1(0)\n"),
    CONF_TEST("window.silly", "RFC 9293 3.8.6.2.1",
              "send no small segment because a small window opened",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text =
                  "virtual\n" TCP_OPEN_PLAIN "< P. 1:1001(1000) ack 1 win 0\n"
                  "+0.001..0.5 > . 1:1(0) ack 1001\n"
                  "< . 1001:1001(0) ack 1 win 100\n"
                  "quiet\n"
                  "< . 1001:1001(0) ack 1 win 1000\n"
                  "> P. 1:1001(1000) ack 1001\n"),
    CONF_TEST("window.small-peer", "RFC 9293 3.8.6.2.1",
              "fill the window of a peer that never has a larger one",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "< S 0:0(0) win 200 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "< . 1:1(0) ack 1 win 200\n"
                      "< P. 1:501(500) ack 1 win 200\n"
                      "> . 1:201(200) ack 501\n"
                      "< . 501:501(0) ack 201 win 200\n"
                      "> . 201:401(200) ack 501\n"),
    CONF_TEST("window.old", "RFC 9293 3.10.7.4",
              "believe no window of an older segment", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1 win 0\n"
                      "+0.001..0.5 > . 1:1(0) ack 101\n"
                      "< . 51:51(0) ack 1 win 1000\n"
                      "> . 1:1(0) ack 101\n"
                      "quiet\n"),
    CONF_TEST("window.shrinks", "RFC 9293 3.8.6",
              "send nothing new when the peer takes its window back",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text =
                  "virtual\n" TCP_OPEN_PLAIN "< . 1:1001(1000) ack 1 win 1000\n"
                  "> P. 1:1001(1000) ack 1001\n"
                  "< P. 1001:2001(1000) ack 1 win 1000\n"
                  "+0.001..0.5 > . 1001:1001(0) ack 2001\n"
                  "< . 2001:2001(0) ack 1 win 500\n"
                  "quiet\n"
                  "< . 2001:2001(0) ack 1001 win 0\n"
                  "quiet\n"
                  "< . 2001:2001(0) ack 1001 win 1000\n"
                  "> P. 1001:2001(1000) ack 2001\n"),
    CONF_TEST("window.ack-after-early", "RFC 9293 3.8.6",
              "take the window of a segment whose ACK is new, though its data "
              "are old",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_SACK "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "< P. 201:301(100) ack 1\n"
                      "> . 101:101(0) ack 101 <sack 201:301>\n"
                      "< P. 101:201(100) ack 101 win 0\n"
                      "> . 101:101(0) ack 301\n"
                      "quiet\n"),
    CONF_TEST("ack.beyond", "RFC 9293 3.10.7.4",
              "answer an ACK of bytes that were never sent", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 100\n"
                                     "> . 1:1(0) ack 1\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("ack.old", "RFC 5961 5.2",
              "take no segment whose ACK is older than the largest window",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 4294800000\n"
                                     "> . 1:1(0) ack 1\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"),
    CONF_TEST("ack.duplicate", "RFC 9293 3.10.7.4", "answer no duplicate ACK",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< . 1:1(0) ack 1\n"
                                     "< . 1:1(0) ack 1\n"
                                     "quiet\n"),
    CONF_TEST("keepalive.answered", "RFC 9293 3.8.4",
              "answer a keep-alive without data", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< . 0:0(0) ack 1\n"
                                     "> . 1:1(0) ack 1\n"
                                     "quiet\n"),
    CONF_TEST("keepalive.with-byte", "RFC 9293 3.8.4",
              "answer a keep-alive with a byte of garbage", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"
                                     "< . 5:6(1) ack 6\n"
                                     "> . 6:6(0) ack 6\n"
                                     "quiet\n"),
    CONF_TEST("keepalive.again", "RFC 9293 3.8.4",
              "answer each of a row of keep-alive probes", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "+10 < . 0:0(0) ack 1\n"
                      "> . 1:1(0) ack 1\n"
                      "+1 < . 0:0(0) ack 1\n"
                      "> . 1:1(0) ack 1\n"
                      "+1 < . 0:0(0) ack 1\n"
                      "> . 1:1(0) ack 1\n"),
};
CONF_TESTS(conf_tests_tcp_data, "tcp", tests);
