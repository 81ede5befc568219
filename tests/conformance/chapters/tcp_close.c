/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `tcp`: how connections end.  The services close after their peers, so
 * that the drive is never in FIN-WAIT, CLOSING or TIME-WAIT.
 */
#include "tcp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("close.both", "RFC 9293 3.6",
              "close after the peer, and forget the connection", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< F. 1:1(0) ack 1\n"
                                     "> . 1:1(0) ack 2\n"
                                     "> F. 1:1(0) ack 2\n"
                                     "< . 2:2(0) ack 2\n"
                                     "quiet\n"
                                     "< . 2:2(0) ack 2\n"
                                     "> R 2:2(0)\n"),
    CONF_TEST("close.with-data", "RFC 9293 3.6",
              "echo what came with the FIN, then close", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< FP. 1:101(100) ack 1\n"
                                     "> . 1:1(0) ack 102\n"
                                     "> FP. 1:101(100) ack 102\n"
                                     "< . 102:102(0) ack 102\n"
                                     "quiet\n"),
    CONF_TEST("close.fin-again", "RFC 9293 3.10.7.4",
              "acknowledge a FIN that comes again in LAST-ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< F. 1:1(0) ack 1\n"
                                     "> . 1:1(0) ack 2\n"
                                     "> F. 1:1(0) ack 2\n"
                                     "< F. 1:1(0) ack 1\n"
                                     "> . 2:2(0) ack 2\n"),
    CONF_TEST("close.fin-lost", "RFC 9293 3.8.1",
              "send the FIN again until it is acknowledged", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< F. 1:1(0) ack 1\n"
                      "> . 1:1(0) ack 2\n"
                      "> F. 1:1(0) ack 2\n"
                      "+0.15..0.3 > F. 1:1(0) ack 2\n"
                      "+0.35..0.5 > F. 1:1(0) ack 2\n"
                      "< . 2:2(0) ack 2\n"
                      "+5 quiet\n"),
    CONF_TEST("close.last-ack-limit", "RFC 9293 3.8.3",
              "give a connection up whose FIN is never acknowledged",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< F. 1:1(0) ack 1\n"
                      "+130 drop\n"
                      "< . 2:2(0) ack 2\n"
                      "> R 2:2(0)\n"),
    CONF_TEST("close.fin-early", "RFC 9293 3.10.7.4",
              "take no FIN before the bytes ahead of it", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< FP. 101:201(100) ack 1\n"
                                     "> . 1:1(0) ack 1\n"
                                     "quiet\n"
                                     "< . 1:101(100) ack 1\n"
                                     "> . 1:1(0) ack 202\n"
                                     "> FP. 1:201(200) ack 202\n"),
    CONF_TEST("close.fin-beyond", "RFC 9293 3.10.7.4",
              "take no FIN beyond the window", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< F. 8194:8194(0) ack 1\n"
                                     "> . 1:1(0) ack 1\n"
                                     "quiet\n"),
    CONF_TEST("close.data-after-fin", "RFC 9293 3.10.7.4",
              "ignore data after the FIN", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text =
                  "virtual\n" TCP_OPEN_PLAIN "< FP. 1:101(100) ack 1 win 0\n"
                  "> . 1:1(0) ack 102\n"
                  "< P. 102:202(100) ack 1 win 0\n"
                  "> . 1:1(0) ack 102\n"),
    CONF_TEST("close.wait", "RFC 9293 3.6",
              "send what is left in CLOSE-WAIT, then close", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text =
                  "virtual\n" TCP_OPEN_PLAIN "< FP. 1:101(100) ack 1 win 0\n"
                  "> . 1:1(0) ack 102\n"
                  "quiet\n"
                  "< . 102:102(0) ack 1 win 1000\n"
                  "> FP. 1:101(100) ack 102\n"),
    CONF_TEST("close.rst", "RFC 9293 3.10.7.4",
              "end a connection by RST, without an answer", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< R 1:1(0)\n"
                                     "quiet\n"
                                     "< . 1:1(0) ack 1\n"
                                     "> R 1:1(0)\n"),
    CONF_TEST("close.rst-ack", "RFC 9293 3.10.7.4", "take a RST with ACK, too",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< R. 1:1(0) ack 1\n"
                                     "quiet\n"
                                     "< . 1:1(0) ack 1\n"
                                     "> R 1:1(0)\n"),
    CONF_TEST("close.rst-with-data", "RFC 9293 3.5.3", "take a RST with data",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< R. 1:11(10) ack 1\n"
                                     "quiet\n"
                                     "< . 1:1(0) ack 1\n"
                                     "> R 1:1(0)\n"),
    CONF_TEST(
        "close.rst-close-wait", "RFC 9293 3.10.7.4", "take a RST in CLOSE-WAIT",
        tcp_script_run, .needs = CONF_NEEDS_CONTROL,
        .text = "virtual\n" TCP_OPEN_PLAIN "< FP. 1:101(100) ack 1 win 0\n"
                "> . 1:1(0) ack 102\n"
                "< R 102:102(0)\n"
                "quiet\n"
                "< . 102:102(0) ack 1\n"
                "> R 1:1(0)\n"),
    CONF_TEST("close.rst-last-ack", "RFC 9293 3.10.7.4",
              "take a RST in LAST-ACK", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< F. 1:1(0) ack 1\n"
                                     "> . 1:1(0) ack 2\n"
                                     "> F. 1:1(0) ack 2\n"
                                     "< R 2:2(0)\n"
                                     "quiet\n"
                                     "< . 2:2(0) ack 2\n"
                                     "> R 2:2(0)\n"),
    CONF_TEST("close.rst-flight", "RFC 9293 3.10.7.4",
              "send nothing more after a RST", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1\n"
                      "> P. 1:101(100) ack 101\n"
                      "< R 101:101(0)\n"
                      "+5 quiet\n"),
    CONF_TEST("close.off", "RFC 9293 3.10.5",
              "reset a connection that the user aborts", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "< P. 1:6(5) ack 1\n"
                                     "> P. 1:6(5) ack 6\n"
                                     "< . 6:6(0) ack 6\n"
                                     "off\n"
                                     "> R. 6:6(0) ack 6\n"),
    CONF_TEST("close.off-half", "RFC 9293 3.10.5",
              "reset a half-open connection that the user aborts",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n"
                      "< S 0:0(0) win 65535 <mss 1000>\n"
                      "> S. 0:0(0) ack 1\n"
                      "off\n"
                      "> R. 1:1(0) ack 1\n"),
    CONF_TEST("close.off-closed-window", "RFC 9293 3.10.5",
              "send a RST that a peer with a closed window takes",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = "virtual\n" TCP_OPEN_PLAIN "< P. 1:101(100) ack 1 win 0\n"
                      "+0.001..0.5 > . 1:1(0) ack 101\n"
                      "+0.1..1.1 > . 1:2(1) ack 101\n"
                      "< . 101:101(0) ack 1 win 0\n"
                      "off\n"
                      "> R. 1:1(0) ack 101\n"),
    CONF_TEST("close.off-on", "RFC 9293 3.10.1",
              "take new connections after the service was off", tcp_script_run,
              .needs = CONF_NEEDS_CONTROL,
              .text = "off\n"
                      "on\n"
                      "works\n"),
    CONF_TEST("close.silent", "RFC 9293 3.8.3",
              "end a connection on which nothing is sent for 120 s",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text =
                  "virtual\n" TCP_OPEN_PLAIN "+119.9..121 > R. 1:1(0) ack 1\n"),
    CONF_TEST("close.half-dead", "RFC 9293 3.5.1",
              "reset a peer that has forgotten nothing after the drive has",
              tcp_script_run, .needs = CONF_NEEDS_CONTROL,
              .text = TCP_OPEN_PLAIN "off\n"
                                     "> R. 1:1(0) ack 1\n"
                                     "on\n"
                                     "< P. 1:6(5) ack 1\n"
                                     "> R 1:1(0)\n"),
};
CONF_TESTS(conf_tests_tcp_close, "tcp", tests);
