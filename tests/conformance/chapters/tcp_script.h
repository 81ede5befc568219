/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Scripts of what a peer sends and what the drive has to answer, in the manner
 * of packetdrill: most tests of the chapter `tcp` are such a text.  A script
 * has one command a line; "#" begins a comment.
 *
 * Sequence numbers are relative: the peer's to its SYN, the drive's to its own.
 * Bytes are tcp_peer_byte() of their place in the stream, both ways: the echo
 * service sends back what it gets.
 *
 * "+0.2" before a command lets 0.2 seconds pass first.  Before ">" it is the
 * time since the last segment in either direction; without it the segment has
 * to come at once, within 5 ms.  In real time, only that it comes is checked.
 * "+0.2..0.4" is a range.
 *
 *   < FLAGS SEQ:END(LEN) [ack N] [win N] [<OPTIONS>] [HOW]
 *                   the peer sends; OPTIONS are written in their order
 *   > FLAGS SEQ:END(LEN) [ack N] [win N] [<OPTIONS>] [ect]
 *                   the drive's next segment; what is not named is not
 *                   compared, except SACK blocks and ECT.  In real time, bare
 *                   ACKs before data, and what is sent again, are skipped
 *   FLAGS           of S F R P U E W and "." for ACK, "-" for none
 *   OPTIONS         mss N ("own": what the drive's MTU allows), ws N, sackOK,
 *                   TS V [ecr] E, sack L:R ..., nop, eol, bytes HEX
 *                   sent: E may be "last", the drive's newest timestamp
 *                   received: only E is compared ("any": not even that);
 *                   no mss, no ws, no sackOK, no TS
 *   HOW             ect, ce, sum (wrong checksum), zerosum (a segment whose
 *                   checksum is 0), words N (data offset), cut N (bytes missing
 *                   at the end), urgent N, fragment N, ipoption, x N (so often)
 *   abs             before the segment: numbers of the drive are as they are
 *   quiet           the drive sends this peer nothing more now
 *   drop            forget what the drive has sent
 *   received N      the drive has sent its bytes up to N, in any segments; ACKs
 *                   are sent for them
 *   most N          at most N segments with data have come that no other
 *                   command has taken; forget them
 *   least N         the same with at least
 *   conn N          go on with connection N, 0..7; its peer has this number
 *   to PORT         of the drive; without it, 7.  Before the first segment, as
 *   from PORT, v6, port N, vlan N, priority N, isn N
 *   icmp TYPE CODE REST SEQ    an ICMP (or ICMPv6) error that quotes a segment
 *                   of the drive with this number
 *   noicmp          the drive has sent no ICMP error in this test
 *   on, off         switch the services
 *   works           another connection can be opened, and echoes
 *   virtual         first: the test needs virtual time
 */
#ifndef ESSD_CONFORM_TCP_SCRIPT_H
#define ESSD_CONFORM_TCP_SCRIPT_H

#include "conform.h"

/** Play the script in the text of the test's row. */
void tcp_script_run(struct conf *conf);

/** The handshake with all options, and that without any: MSS 1000. */
#define TCP_OPEN                                                               \
    "< S 0:0(0) win 65535 <mss 1460,sackOK,TS 100 ecr 0,nop,ws 7>\n"           \
    "> S. 0:0(0) ack 1 <mss own,sackOK,TS ecr 100,ws 0>\n"                     \
    "+0.02 < . 1:1(0) ack 1 win 512 <nop,nop,TS 120 ecr last>\n"
#define TCP_OPEN_PLAIN                                                         \
    "< S 0:0(0) win 65535 <mss 1000>\n"                                        \
    "> S. 0:0(0) ack 1\n"                                                      \
    "+0.02 < . 1:1(0) ack 1 win 65535\n"
/* With SACK, without timestamps, and with segments of 100 bytes. */
#define TCP_OPEN_SACK                                                          \
    "< S 0:0(0) win 65535 <mss 100,sackOK>\n"                                  \
    "> S. 0:0(0) ack 1 <sackOK>\n"                                             \
    "+0.02 < . 1:1(0) ack 1 win 65535\n"

#endif
