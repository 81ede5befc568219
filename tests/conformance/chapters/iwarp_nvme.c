/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `iwarp`: NVMe over iWARP, and the drive's own READs and WRITEs.
 */
#include "iwarp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("nvme.connect", "NVMe-oF 1.1 7.3",
              "read the data of Connect, and answer", iwarp_script_run,
              .is_malformed = true, .text = IW_OPEN IW_CONNECT "quiet\n"),
    CONF_TEST(
        "nvme.connect-invalidate", "NVMe-oF 1.1 7.3.3",
        "invalidate the host's key with the response if its SGL says so",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN
        "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
        "00000000 88880102 000400 12345678 4f 0000 0000 1f00 00 z17\n"
        "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 78563412 "
        "0201888800000000\n"
        "f> c1 42 @ 000102030405060708090a0b0c0d0e0f ffff pad270 "
        "\"nqn.2014-08.org.nvmexpress.discovery\" pad526 "
        "\"nqn.2014-08.org.example:host\" pad1038\n"
        "f< 41 44 78563412 00000000 00000001 00000000 *8 *2 0000 0100 0000\n"),
    CONF_TEST(
        "nvme.connect-revision-1", "NVMe-oF 1.1 7.3",
        "do the same for a host of revision 1", iwarp_script_run,
        .is_malformed = true,
        .text = "open\n"
                "> \"MPA ID Req Frame\" 00 01 0020 0000 0000 2000 1f00 z24\n"
                "< \"MPA ID Rep Frame\" 40 01 0020 0000 2000 z28\n" IW_CONNECT),
    CONF_TEST(
        "nvme.property", "NVMe-oF 1.1 3.4", "answer Property Get after Connect",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN IW_CONNECT
        "f> 41 43 00000000 00000000 00000002 00000000 7f 40 0200 04 z35 01 z3 "
        "00000000 z16\n"
        "f< 41 43 00000000 00000000 00000002 00000000 *8 *2 0000 0200 0000\n"),
    CONF_TEST("nvme.not-connected", "NVMe-oF 1.1 3.3",
              "refuse a command before Connect, with a response",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0700 04 z35 "
              "01 z23\n"
              "f< 41 43 00000000 00000000 00000001 00000000 *12 0700 *2\n"),
    CONF_TEST("nvme.capsule-in-segments", "RFC 5041 5.4",
              "take a command in several segments", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 01 43 00000000 00000000 00000001 00000000 7f 40 0700 04\n"
              "f> 01 43 00000000 00000000 00000001 00000005 z35\n"
              "f> 41 43 00000000 00000000 00000001 00000028 01 z23\n"
              "f< 41 43 00000000 00000000 00000001 00000000 *12 0700 *2\n"),
    CONF_TEST("nvme.solicited", "RFC 5040 4.3",
              "take a SEND with Solicited Event like one without",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 45 00000000 00000000 00000001 00000000 7f 40 0700 04 z35 "
              "01 z23\n"
              "f< 41 43 00000000 00000000 00000001 00000000 *12 0700 *2\n"),
    CONF_TEST(
        "nvme.pipelined", "NVMe-oF 1.1 7.3",
        "answer commands that come at once, each with its number",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN IW_CONNECT
        "hold\n"
        "f> 41 43 00000000 00000000 00000002 00000000 7f 40 0200 04 z35 01 "
        "z23\n"
        "f> 41 43 00000000 00000000 00000003 00000000 7f 40 0300 04 z35 01 "
        "z23\n"
        "f> 41 43 00000000 00000000 00000004 00000000 7f 40 0400 04 z35 01 "
        "z23\n"
        "f> 41 43 00000000 00000000 00000005 00000000 7f 40 0500 04 z35 01 "
        "z23\n"
        "f> 41 43 00000000 00000000 00000006 00000000 7f 40 0600 04 z35 01 "
        "z23\n"
        "f> 41 43 00000000 00000000 00000007 00000000 7f 40 0700 04 z35 01 "
        "z23\n"
        "go\n"
        "f< 41 43 00000000 00000000 00000002 00000000 *8 *2 0000 0200 0000\n"
        "f< 41 43 00000000 00000000 00000003 00000000 *8 *2 0000 0300 0000\n"
        "f< 41 43 00000000 00000000 00000004 00000000 *8 *2 0000 0400 0000\n"
        "f< 41 43 00000000 00000000 00000005 00000000 *8 *2 0000 0500 0000\n"
        "f< 41 43 00000000 00000000 00000006 00000000 *8 *2 0000 0600 0000\n"
        "f< 41 43 00000000 00000000 00000007 00000000 *8 *2 0000 0700 0000\n"
        "quiet\n"),
    CONF_TEST(
        "nvme.identify", "RFC 5040 5.1",
        "WRITE the data of Identify in FPDUs of the host's MSS, then answer",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN IW_CONNECT
        "f> 41 43 00000000 00000000 00000002 00000000 7f 40 0200 00 z35 00 z3 "
        "14000000 01004600 z12\n"
        "f< 41 43 00000000 00000000 00000002 00000000 *8 *2 0000 0200 0000\n"
        "f> 41 43 00000000 00000000 00000003 00000000 06 40 0300 z20 00000000 "
        "88880102 001000 12345678 40 01 z23\n"
        "f< 81 40 78563412 0201888800000000 *980\n"
        "f< 81 40 78563412 02018888000003d4 *980\n"
        "f< 81 40 78563412 02018888000007a8 *980\n"
        "f< 81 40 78563412 0201888800000b7c *980\n"
        "f< c1 40 78563412 0201888800000f50 *176\n"
        "f< 41 43 00000000 00000000 00000003 00000000 *8 *2 0000 0300 0000\n"),
    CONF_TEST(
        "nvme.identify-invalidate", "NVMe-oF 1.1 7.3.3",
        "invalidate the key after the last WRITE", iwarp_script_run,
        .is_malformed = true,
        .text = IW_OPEN IW_CONNECT
        "f> 41 43 00000000 00000000 00000002 00000000 7f 40 0200 00 z35 00 z3 "
        "14000000 01004600 z12\n"
        "f< 41 43 00000000 00000000 00000002 00000000 *8 *2 0000 0200 0000\n"
        "f> 41 43 00000000 00000000 00000003 00000000 06 40 0300 z20 00000000 "
        "88880102 001000 12345678 4f 01 z23\n"
        "f< 81 40 78563412 0201888800000000 *980\n"
        "f< 81 40 78563412 02018888000003d4 *980\n"
        "f< 81 40 78563412 02018888000007a8 *980\n"
        "f< 81 40 78563412 0201888800000b7c *980\n"
        "f< c1 40 78563412 0201888800000f50 *176\n"
        "f< 41 44 78563412 00000000 00000003 00000000 *8 *2 0000 0300 0000\n"),
    CONF_TEST(
        "read.in-segments", "RFC 5040 5.2",
        "take a READ response in several segments", iwarp_script_run,
        .is_malformed = true,
        .text = IW_OPEN
        "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
        "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
        "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 78563412 "
        "0201888800000000\n"
        "f> 81 42 @ 000102030405060708090a0b0c0d0e0f ffff pad270\n"
        "f> 81 42 @+256 \"nqn.2014-08.org.nvmexpress.discovery\" "
        "pad270\n"
        "f> c1 42 @+512 \"nqn.2014-08.org.example:host\" pad526\n"
        "f< 41 43 00000000 00000000 00000001 00000000 *8 *2 0000 0100 0000\n"),
    CONF_TEST("read.other-key", "RFC 5040 5.2",
              "refuse a READ response for another key, with 11 00",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> c1 42 00000001 z8 z1024\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1100 c000 040e c1 "
              "42 00000001 z8\n"
              "< fin\n"),
    CONF_TEST("read.key-0", "RFC 5040 5.2", "refuse a READ response for key 0",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> c1 42 00000000 z8 z1024\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1100 c000 040e c1 "
              "42 00000000 z8\n"
              "< fin\n"),
    CONF_TEST("read.offset-of-response", "RFC 5040 5.2",
              "refuse a READ response at another offset, with 11 01",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> c1 42 @+1 z1024\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1101 c000 040e c1 "
              "42 @+1\n"
              "< fin\n"),
    CONF_TEST("read.too-long", "RFC 5040 5.2",
              "refuse a READ response with a byte too many", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> c1 42 @ z1025\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1101 c000 040f c1 "
              "42 @\n"
              "< fin\n"),
    CONF_TEST("read.too-short", "RFC 5040 5.2",
              "refuse a READ response that ends early", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> c1 42 @ z1023\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1101 c000 040d c1 "
              "42 @\n"
              "< fin\n"),
    CONF_TEST("read.no-end", "RFC 5040 5.2",
              "refuse a READ response whose last segment has no mark",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> 81 42 @ z1024\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1101 c000 040e 81 "
              "42 @\n"
              "< fin\n"),
    CONF_TEST("read.empty-end", "RFC 5040 5.2", "refuse an empty READ response",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> c1 42 @\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1101 c000 000e c1 "
              "42 @\n"
              "< fin\n"),
    CONF_TEST("read.key-written", "RFC 5040 5.2",
              "refuse a WRITE to the key of a READ, with 11 00",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> c1 40 @ z8\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1100 c000 0016 c1 "
              "40 @\n"
              "< fin\n"),
    CONF_TEST("read.key-invalidated", "RFC 5040 5.4",
              "refuse to invalidate the key of a READ, with 01 09",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "f> 41 44 @=4 00000000 00000002 00000000 z64\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0109 c000 0052 41 "
              "44 @=4 00000000 00000002 00000000\n"
              "< fin\n"),
    CONF_TEST(
        "read.answered-twice", "RFC 5040 5.2",
        "refuse a second response to a READ", iwarp_script_run,
        .is_malformed = true,
        .text = IW_OPEN
        "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
        "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
        "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 78563412 "
        "0201888800000000\n"
        "f> c1 42 @ 000102030405060708090a0b0c0d0e0f ffff pad270 "
        "\"nqn.2014-08.org.nvmexpress.discovery\" pad526 "
        "\"nqn.2014-08.org.example:host\" pad1038\n"
        "f< 41 43 00000000 00000000 00000001 00000000 *8 *2 0000 0100 0000\n"
        "f> c1 42 @ z8\n"
        "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0016 c1 42 @"
        "\n"
        "< fin\n"),
    CONF_TEST("read.crc", "RFC 5044 8", "check the CRC of a READ response",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "badcrc\n"
              "f> c1 42 @ 000102030405060708090a0b0c0d0e0f ffff pad270 "
              "\"nqn.2014-08.org.nvmexpress.discovery\" pad526 "
              "\"nqn.2014-08.org.example:host\" pad1038\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2002 0000\n"
              "< fin\n"),
    CONF_TEST("close.host", "RFC 5040 5.1", "close after the host",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN IW_CONNECT "fin\n"
                                         "< fin\n"),
    CONF_TEST("close.before-connect", "RFC 5040 5.1",
              "close after a host that has sent nothing", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "fin\n"
                              "< fin\n"),
    CONF_TEST("close.within-fpdu", "RFC 5040 5.1",
              "end a connection that the host closes within an FPDU",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "> 0052 41 43\n"
                              "fin\n"
                              "< end\n"),
    CONF_TEST("close.with-read", "RFC 5040 5.1",
              "end a connection that the host closes while a READ is open",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f< 41 41 00000000 00000001 00000001 00000000 @12 00000400 "
              "78563412 0201888800000000\n"
              "fin\n"
              "< end\n"),
    CONF_TEST(
        "close.again", "NVMe-oF 1.1 7.3",
        "serve the host again after it has closed", iwarp_script_run,
        .is_malformed = true,
        .text = IW_OPEN IW_CONNECT
        "fin\n"
        "< fin\n"
        "again\n"
        "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0000 0000 2000 1f00 z24\n"
        "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 "
        "z28\n" IW_CONNECT),
    CONF_TEST("last.off", "RFC 5044 7.1",
              "serve no iWARP when it is switched off", iwarp_script_off,
              .needs = CONF_NEEDS_CONTROL),
};
CONF_TESTS(conf_tests_iwarp_nvme, "iwarp", tests);
