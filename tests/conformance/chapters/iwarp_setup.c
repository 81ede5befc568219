/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `iwarp`: requests for a connection, and the replies.
 */
#include "iwarp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("mpa.request", "RFC 6581 4",
              "answer a request with CRC, IRD 0 and ORD 16, and then wait",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "quiet\n"),
    CONF_TEST("mpa.ipv6", "RFC 6581 4", "serve iWARP over IPv6",
              iwarp_script_run, .is_malformed = true,
              .text = "v6\n" IW_OPEN "quiet\n"),
    CONF_TEST("mpa.second-port", "RFC 6581 4", "serve iWARP at the second port",
              iwarp_script_run, .is_malformed = true,
              .text = "port 1\n" IW_OPEN "quiet\n"),
    CONF_TEST("mpa.second-port-ipv6", "RFC 6581 4",
              "serve iWARP over IPv6 at the second port", iwarp_script_run,
              .is_malformed = true,
              .text = "port 1\n"
                      "v6\n" IW_OPEN "quiet\n"),
    CONF_TEST(
        "mpa.crc-asked", "RFC 5044 7.1.1", "use CRC if the host asks for it",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 50 02 0024 0080 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.crc-off", "RFC 5044 7.1.1", "use no CRC if neither side wants it",
        iwarp_script_run, .is_malformed = true,
        .text = "set iwarp.crc off\n"
                "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 10 02 0024 0000 0010 0000 2000 z28\n"
                "nocrc\n" IW_CONNECT),
    CONF_TEST("mpa.crc-off-asked", "RFC 5044 7.1.1",
              "use CRC if only the host asks for it", iwarp_script_run,
              .is_malformed = true,
              .text = "set iwarp.crc off\n"
                      "open\n"
                      "> \"MPA ID Req Frame\" 50 02 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 "
                      "z28\n" IW_CONNECT),
    CONF_TEST(
        "mpa.revision-0", "RFC 5044 7.1.1", "serve a host of revision 0",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 00 00 0020 0000 0000 2000 1f00 z24\n"
                "< \"MPA ID Rep Frame\" 40 00 0020 0000 2000 z28\n" IW_CONNECT),
    CONF_TEST(
        "mpa.revision-1", "RFC 5044 7.1.1", "serve a host of revision 1",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 00 01 0020 0000 0000 2000 1f00 z24\n"
                "< \"MPA ID Rep Frame\" 40 01 0020 0000 2000 z28\n" IW_CONNECT),
    CONF_TEST(
        "mpa.revision-1-reserved", "RFC 5044 7.1.1",
        "take four bytes as the user's if a host of revision 1 sets the bit of "
        "IRD and ORD",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 01 0020 0000 0000 2000 1f00 z24\n"
                "< \"MPA ID Rep Frame\" 40 01 0020 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.revision-2-plain", "RFC 6581 4",
        "name no IRD and ORD to a host that has named none", iwarp_script_run,
        .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 00 02 0020 0000 0000 2000 1f00 z24\n"
                "< \"MPA ID Rep Frame\" 40 02 0020 0000 2000 z28\n" IW_CONNECT),
    CONF_TEST("mpa.revision-3", "RFC 5044 7.1.1",
              "end a connection of revision 3 without an answer",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 03 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< fin\n"),
    CONF_TEST("mpa.revision-4", "RFC 5044 7.1.1",
              "end a connection of revision 4 without an answer",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 04 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< fin\n"),
    CONF_TEST("mpa.revision-255", "RFC 5044 7.1.1",
              "end a connection of revision 255 without an answer",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 ff 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< fin\n"),
    CONF_TEST("mpa.markers", "RFC 5044 4.3", "refuse markers", iwarp_script_run,
              .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 90 02 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< \"MPA ID Rep Frame\" 70 02 0004 *4\n"
                      "< fin\n"),
    CONF_TEST("mpa.markers-1", "RFC 5044 4.3", "refuse markers of revision 1",
              iwarp_script_run, .is_malformed = true,
              .text =
                  "open\n"
                  "> \"MPA ID Req Frame\" 80 01 0020 0000 0000 2000 1f00 z24\n"
                  "< \"MPA ID Rep Frame\" 60 01 0000 \n"
                  "< fin\n"),
    CONF_TEST("mpa.reply-as-request", "RFC 5044 7.1.1",
              "end a connection that begins with a reply", iwarp_script_run,
              .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Rep Frame\" 10 02 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< fin\n"),
    CONF_TEST("mpa.rejected-request", "RFC 5044 7.1.1",
              "end a connection whose request has the bit of a refusal",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 30 02 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< fin\n"),
    CONF_TEST("mpa.key-second-byte", "RFC 5044 7.1.1",
              "end a connection whose key is wrong from the second byte on",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPB\"\n"
                      "< fin\n"),
    CONF_TEST("mpa.key-last-byte", "RFC 5044 7.1.1",
              "end a connection whose key is wrong in its last byte",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req FramE\"\n"
                      "< fin\n"),
    CONF_TEST("mpa.first-byte", "RFC 5044 7.1.1",
              "reset a connection that is not of MPA, if no other protocol has "
              "the port",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> 00\n"
                      "< rst\n"),
    CONF_TEST("mpa.private-513", "RFC 5044 7.1.1",
              "end a connection with more than 512 bytes of private data",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 02 0201 \n"
                      "< fin\n"),
    CONF_TEST("mpa.private-0", "RFC 6581 4",
              "end a connection whose 0 bytes have no room for IRD and ORD",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 02 0000 \n"
                      "< fin\n"),
    CONF_TEST("mpa.private-1", "RFC 6581 4",
              "end a connection whose 1 bytes have no room for IRD and ORD",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 02 0001 z1\n"
                      "< fin\n"),
    CONF_TEST("mpa.private-3", "RFC 6581 4",
              "end a connection whose 3 bytes have no room for IRD and ORD",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 02 0003 z3\n"
                      "< fin\n"),
    CONF_TEST("mpa.byte-by-byte", "RFC 5044 7.1.1",
              "take a request that comes byte by byte", iwarp_script_run,
              .is_malformed = true, .text = "cut 1\n" IW_OPEN "quiet\n"),
    CONF_TEST(
        "mpa.two-halves", "RFC 5044 7.1.1", "take a request in two halves",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Re\"\n"
                "wait 1\n"
                "> \"q Frame\" 50 02 0024 0080 0000 0000 0000 2000 1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST("mpa.half", "RFC 5044 7.1.1",
              "give half a request up after some seconds", iwarp_script_run,
              .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Re\"\n"
                      "wait 12\n"
                      "< end\n"),
    CONF_TEST("mpa.nothing", "RFC 5044 7.1.1",
              "give a connection up on which nothing comes", iwarp_script_run,
              .is_malformed = true,
              .text = "open\n"
                      "wait 12\n"
                      "< end\n"),
    CONF_TEST("mpa.fin-in-request", "RFC 5044 7.1.1",
              "end a connection that the host closes within its request",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Re\"\n"
                      "fin\n"
                      "< end\n"),
    CONF_TEST("mpa.byte-behind", "RFC 5044 7.1.2",
              "end a connection on which a byte follows the request",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "hold\n"
                      "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "> 00\n"
                      "go\n"
                      "< fin\n"),
    CONF_TEST("mpa.fpdu-behind", "RFC 5044 7.1.2",
              "end a connection on which an FPDU follows the request",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "hold\n"
                      "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "f> c1 40 00000001 z8\n"
                      "go\n"
                      "< fin\n"),
    CONF_TEST(
        "mpa.other-flags", "RFC 5044 7.1.1",
        "ignore bits of the request that have no meaning", iwarp_script_run,
        .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 1f 02 0024 0080 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.again", "RFC 5044 7.1", "serve a second connection at once",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN
        "again\n"
        "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0000 0000 2000 1f00 z24\n"
        "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"
        "quiet\n"),
    CONF_TEST(
        "mpa.ird-1", "RFC 6581 4",
        "have at most 1 READs outstanding at a host with IRD 1",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 0001 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0001 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.ird-4", "RFC 6581 4",
        "have at most 4 READs outstanding at a host with IRD 4",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 0004 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0004 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.ird-15", "RFC 6581 4",
        "have at most 15 READs outstanding at a host with IRD 15",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 000f 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 000f 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.ird-16", "RFC 6581 4",
        "have at most 16 READs outstanding at a host with IRD 16",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 0010 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.ird-17", "RFC 6581 4",
        "have at most 16 READs outstanding at a host with IRD 17",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 0011 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.ird-128", "RFC 6581 4",
        "have at most 16 READs outstanding at a host with IRD 128",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST(
        "mpa.ird-16383", "RFC 6581 4",
        "have at most 16 READs outstanding at a host with IRD 16383",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 3fff 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST("mpa.ird-0", "NVMe-oF 1.1 7.3.6.4",
              "refuse a host that serves no READs, with status 7",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 02 0024 0000 0000 0000 0000 "
                      "2000 1f00 z24\n"
                      "< \"MPA ID Rep Frame\" 70 02 0008 *4 0000 0700\n"
                      "< fin\n"),
    CONF_TEST(
        "mpa.ord-16", "RFC 6581 4", "give a host no right to READ",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 10 02 0024 0080 0010 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST("mpa.format", "NVMe-oF 1.1 7.3.6.4",
              "refuse an unknown format of the private data, with status 2",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0700 0000 "
                      "2000 1f00 z24\n"
                      "< \"MPA ID Rep Frame\" 70 02 0008 *4 0000 0200\n"
                      "< fin\n"),
    CONF_TEST("mpa.format-revision-1", "NVMe-oF 1.1 7.3.6.4",
              "refuse a host of revision 1 as well", iwarp_script_run,
              .is_malformed = true,
              .text =
                  "open\n"
                  "> \"MPA ID Req Frame\" 00 01 0020 0700 0000 2000 1f00 z24\n"
                  "< \"MPA ID Rep Frame\" 60 01 0004 0000 0200\n"
                  "< fin\n"),
    CONF_TEST("mpa.no-private", "NVMe-oF 1.1 7.3.6.4",
              "refuse a request without private data, with status 1",
              iwarp_script_run, .is_malformed = true,
              .text = "open\n"
                      "> \"MPA ID Req Frame\" 10 02 0004 0080 0000\n"
                      "< \"MPA ID Rep Frame\" 70 02 0008 *4 0000 0100\n"
                      "< fin\n"),
    CONF_TEST(
        "rtr.write", "RFC 6581 5", "choose an empty WRITE as the first message",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 50 02 0024 8080 c001 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 8000 8010 0000 2000 z28\n"
                "f> c1 40 00000001 z8\n"
                "quiet\n" IW_CONNECT),
    CONF_TEST(
        "rtr.read", "RFC 6581 5", "answer an empty READ as the first message",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 50 02 0024 8080 4001 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 8001 4010 0000 2000 z28\n"
                "f> 41 41 00000000 00000001 00000001 00000000 11223344 "
                "0102030405060708 z16\n"
                "f< c1 42 11223344 0102030405060708\n"
                "quiet\n" IW_CONNECT),
    CONF_TEST(
        "rtr.send", "RFC 6581 5",
        "take an empty SEND as the first message for itself", iwarp_script_run,
        .is_malformed = true,
        .text =
            "open\n"
            "> \"MPA ID Req Frame\" 50 02 0024 c080 0000 0000 0000 2000 1f00 "
            "z24\n"
            "< \"MPA ID Rep Frame\" 50 02 0024 c000 0010 0000 2000 z28\n"
            "f> 41 43 00000000 00000000 00000001 00000000\n"
            "quiet\n"
            "f> 41 43 00000000 00000000 00000002 00000000 7f 40 0100 04 z59\n"
            "f< 41 43 00000000 00000000 00000001 00000000 *12 0100 *2\n"),
    CONF_TEST(
        "rtr.write-preferred", "RFC 6581 5", "prefer a WRITE to a SEND",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 50 02 0024 c080 8000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 8000 8010 0000 2000 z28\n"),
    CONF_TEST(
        "rtr.none", "RFC 6581 5",
        "leave a host alone that offers no first message", iwarp_script_run,
        .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 50 02 0024 8080 0000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 z28\n"),
    CONF_TEST(
        "rtr.silent", "RFC 6581 5", "send nothing before the first message",
        iwarp_script_run, .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 50 02 0024 8080 8000 0000 0000 2000 "
                "1f00 z24\n"
                "< \"MPA ID Rep Frame\" 50 02 0024 8000 8010 0000 2000 z28\n"
                "quiet\n"),
};
CONF_TESTS(conf_tests_iwarp_setup, "iwarp", tests);
