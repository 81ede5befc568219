/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Chapter `iwarp`: FPDUs, DDP segments and RDMAP messages that a host sends.
 */
#include "iwarp_script.h"

static const struct conf_test tests[] = {
    CONF_TEST("fpdu.crc", "RFC 5044 8",
              "end a connection because of a wrong CRC, with 20 02",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "badcrc\n"
              "f> 41 43 00000000 00000000 00000001 00000000 z64\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2002 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.crc-of-write", "RFC 5044 8",
              "check the CRC of an empty WRITE", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "badcrc\n"
              "f> c1 40 00000000 z8\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2002 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.length-0", "RFC 5044 8",
              "end a connection with a ULPDU of 0 bytes, with 20 03",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "> 0000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2003 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.length-1", "RFC 5044 8",
              "end a connection with a ULPDU of 1 bytes, with 20 03",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "> 0001\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2003 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.length-4", "RFC 5044 8",
              "end a connection with a ULPDU of 4 bytes, with 20 03",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "> 0004\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2003 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.length-13", "RFC 5044 8",
              "end a connection with a ULPDU of 13 bytes, with 20 03",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "> 000d\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2003 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.length-65535", "RFC 5044 8",
              "end a connection with an FPDU that is longer than any segment",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "> ffff\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2003 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.untagged-14", "RFC 5044 8",
              "end a connection with an untagged segment of 14 bytes",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 z12\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2003 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.untagged-17", "RFC 5044 8",
              "end a connection with an untagged segment of 17 bytes",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 z15\n"
              "f< 41 47 00000000 00000002 00000001 00000000 2003 0000\n"
              "< fin\n"),
    CONF_TEST("fpdu.many-in-one", "RFC 5044 4",
              "take several FPDUs in one segment", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "hold\n"
                              "f> c1 40 00000000 z8\n"
                              "f> c1 40 00000000 z8\n"
                              "f> c1 40 00000000 z8\n"
                              "f> c1 40 00000000 z8\n"
                              "f> c1 40 00000000 z8\n"
                              "go\n"
                              "quiet\n" IW_CONNECT),
    CONF_TEST("fpdu.cut-1", "RFC 5044 5.2", "take FPDUs in segments of 1 bytes",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "cut 1\n" IW_CONNECT),
    CONF_TEST("fpdu.cut-2", "RFC 5044 5.2", "take FPDUs in segments of 2 bytes",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "cut 2\n" IW_CONNECT),
    CONF_TEST("fpdu.cut-3", "RFC 5044 5.2", "take FPDUs in segments of 3 bytes",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "cut 3\n" IW_CONNECT),
    CONF_TEST("fpdu.cut-19", "RFC 5044 5.2",
              "take FPDUs in segments of 19 bytes", iwarp_script_run,
              .is_malformed = true, .text = IW_OPEN "cut 19\n" IW_CONNECT),
    CONF_TEST("fpdu.cut-83", "RFC 5044 5.2",
              "take FPDUs in segments of 83 bytes", iwarp_script_run,
              .is_malformed = true, .text = IW_OPEN "cut 83\n" IW_CONNECT),
    CONF_TEST("fpdu.cut-85", "RFC 5044 5.2",
              "take FPDUs in segments of 85 bytes", iwarp_script_run,
              .is_malformed = true, .text = IW_OPEN "cut 85\n" IW_CONNECT),
    CONF_TEST("fpdu.halves-late", "RFC 5044 5.2",
              "wait for the second half of an FPDU", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "> 0052 41 43\n"
                              "wait 2\n"
                              "quiet\n"),
    CONF_TEST("ddp.version-0-untagged", "RFC 5041 7.1",
              "end a connection with DDP version 0, with 12 06",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 40 43 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1206 "
              "c000 0012 40 43 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST(
        "ddp.version-0-tagged", "RFC 5041 7.1",
        "end a connection with a tagged segment of DDP version 0, with 11 04",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN "f> c0 40 00000000 z8\n"
                        "f< 41 47 00000000 00000002 00000001 00000000 1104 "
                        "c000 000e c0 40 00000000 z8\n"
                        "< fin\n"),
    CONF_TEST("ddp.version-2-untagged", "RFC 5041 7.1",
              "end a connection with DDP version 2, with 12 06",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 42 43 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1206 "
              "c000 0012 42 43 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST(
        "ddp.version-2-tagged", "RFC 5041 7.1",
        "end a connection with a tagged segment of DDP version 2, with 11 04",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN "f> c2 40 00000000 z8\n"
                        "f< 41 47 00000000 00000002 00000001 00000000 1104 "
                        "c000 000e c2 40 00000000 z8\n"
                        "< fin\n"),
    CONF_TEST("ddp.version-3-untagged", "RFC 5041 7.1",
              "end a connection with DDP version 3, with 12 06",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 43 43 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1206 "
              "c000 0012 43 43 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST(
        "ddp.version-3-tagged", "RFC 5041 7.1",
        "end a connection with a tagged segment of DDP version 3, with 11 04",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN "f> c3 40 00000000 z8\n"
                        "f< 41 47 00000000 00000002 00000001 00000000 1104 "
                        "c000 000e c3 40 00000000 z8\n"
                        "< fin\n"),
    CONF_TEST("rdmap.version-0", "RFC 5040 7",
              "end a connection with RDMAP version 0, with 02 05",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 03 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0205 "
              "c000 0012 41 03 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.version-2", "RFC 5040 7",
              "end a connection with RDMAP version 2, with 02 05",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 83 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0205 "
              "c000 0012 41 83 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.version-3", "RFC 5040 7",
              "end a connection with RDMAP version 3, with 02 05",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 c3 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0205 "
              "c000 0012 41 c3 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.version-2-tagged", "RFC 5040 7",
              "check RDMAP's version of a WRITE", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "f> c1 80 00000000 z8\n"
                              "f< 41 47 00000000 00000002 00000001 00000000 "
                              "0205 c000 000e c1 80 00000000 z8\n"
                              "< fin\n"),
    CONF_TEST("ddp.queue-3", "RFC 5041 7.1",
              "end a connection with queue 3, with 12 01", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000003 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1201 c000 0012 41 "
              "43 00000000 00000003 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("ddp.queue-4294967295", "RFC 5041 7.1",
              "end a connection with queue 4294967295, with 12 01",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 ffffffff 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1201 "
              "c000 0012 41 43 00000000 ffffffff 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.opcode-8", "RFC 5040 7",
              "end a connection with opcode 8, with 02 06", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 48 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "48 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.opcode-9", "RFC 5040 7",
              "end a connection with opcode 9, with 02 06", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 49 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "49 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.opcode-10", "RFC 5040 7",
              "end a connection with opcode 10, with 02 06", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 4a 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "4a 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.opcode-11", "RFC 5040 7",
              "end a connection with opcode 11, with 02 06", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 4b 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "4b 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.opcode-15", "RFC 5040 7",
              "end a connection with opcode 15, with 02 06", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 4f 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "4f 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.opcode-15-tagged", "RFC 5040 7",
              "refuse unknown opcodes of tagged segments", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "f> c1 4f 00000000 z8\n"
                              "f< 41 47 00000000 00000002 00000001 00000000 "
                              "0206 c000 000e c1 4f 00000000 z8\n"
                              "< fin\n"),
    CONF_TEST("rdmap.tagged-send", "RFC 5040 7", "refuse a tagged SEND",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "f> c1 43 00000000 z8\n"
                              "f< 41 47 00000000 00000002 00000001 00000000 "
                              "0206 c000 000e c1 43 00000000 z8\n"
                              "< fin\n"),
    CONF_TEST("rdmap.tagged-terminate", "RFC 5040 7",
              "refuse a tagged Terminate", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "f> c1 47 00000000 z8\n"
                              "f< 41 47 00000000 00000002 00000001 00000000 "
                              "0206 c000 000e c1 47 00000000 z8\n"
                              "< fin\n"),
    CONF_TEST("rdmap.untagged-write", "RFC 5040 7", "refuse an untagged WRITE",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 40 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 "
              "c000 0012 41 40 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.untagged-response", "RFC 5040 7",
              "refuse an untagged READ response", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 42 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "42 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.response-unasked", "RFC 5040 7",
              "refuse a READ response that was not asked for", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "f> c1 42 00000000 z8 x8\n"
                              "f< 41 47 00000000 00000002 00000001 00000000 "
                              "0206 c000 0016 c1 42 00000000 z8\n"
                              "< fin\n"),
    CONF_TEST("rdmap.send-in-queue-1", "RFC 5040 7",
              "refuse a SEND in the queue of READs", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000001 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "43 00000000 00000001 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("rdmap.read-in-queue-0", "RFC 5040 7",
              "refuse a READ in the queue of SENDs, and quote its whole header",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 41 00000000 00000000 00000001 00000000 z28\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 e000 002e 41 "
              "41 00000000 00000000 00000001 00000000 z28\n"
              "< fin\n"),
    CONF_TEST("rdmap.terminate-in-queue-0", "RFC 5040 7",
              "refuse a Terminate in the queue of SENDs", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 47 00000000 00000000 00000001 00000000 z4\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0016 41 "
              "47 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("ddp.number-0", "RFC 5041 5.4",
              "end a connection that begins with SEND number 0, with 12 03",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000000 00000000 z64\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1203 "
              "c000 0052 41 43 00000000 00000000 00000000 00000000\n"
              "< fin\n"),
    CONF_TEST("ddp.number-2", "RFC 5041 5.4",
              "end a connection that begins with SEND number 2, with 12 03",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000002 00000000 z64\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1203 "
              "c000 0052 41 43 00000000 00000000 00000002 00000000\n"
              "< fin\n"),
    CONF_TEST(
        "ddp.number-4294967295", "RFC 5041 5.4",
        "end a connection that begins with SEND number 4294967295, with 12 03",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN "f> 41 43 00000000 00000000 ffffffff 00000000 z64\n"
                        "f< 41 47 00000000 00000002 00000001 00000000 1203 "
                        "c000 0052 41 43 00000000 00000000 ffffffff 00000000\n"
                        "< fin\n"),
    CONF_TEST("ddp.offset-1", "RFC 5041 5.4",
              "end a connection with a first segment at offset 1, with 12 04",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000001 z64\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1204 "
              "c000 0052 41 43 00000000 00000000 00000001 00000001\n"
              "< fin\n"),
    CONF_TEST("ddp.offset-64", "RFC 5041 5.4",
              "end a connection with a first segment at offset 64, with 12 04",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 43 00000000 00000000 00000001 00000040 z64\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1204 "
              "c000 0052 41 43 00000000 00000000 00000001 00000040\n"
              "< fin\n"),
    CONF_TEST(
        "ddp.offset-4294967295", "RFC 5041 5.4",
        "end a connection with a first segment at offset 4294967295, with 12 "
        "04",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN "f> 41 43 00000000 00000000 00000001 ffffffff z64\n"
                        "f< 41 47 00000000 00000002 00000001 00000000 1204 "
                        "c000 0052 41 43 00000000 00000000 00000001 ffffffff\n"
                        "< fin\n"),
    CONF_TEST(
        "ddp.too-long", "RFC 5041 7.1",
        "end a connection with a SEND that is longer than its buffer, with 12 "
        "05",
        iwarp_script_run, .is_malformed = true,
        .text = IW_OPEN "f> 41 43 00000000 00000000 00000001 00000000 z9000\n"
                        "f< 41 47 00000000 00000002 00000001 00000000 1205 "
                        "c000 233a 41 43 00000000 00000000 00000001 00000000\n"
                        "< fin\n"),
    CONF_TEST("ddp.segment-gap", "RFC 5041 5.4",
              "refuse a segment that leaves a gap, with 12 04",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 01 43 00000000 00000000 00000001 00000000 z32\n"
              "f> 41 43 00000000 00000000 00000001 00000021 z32\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1204 "
              "c000 0032 41 43 00000000 00000000 00000001 00000021\n"
              "< fin\n"),
    CONF_TEST("ddp.segment-again", "RFC 5041 5.4",
              "refuse a segment that comes twice", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 01 43 00000000 00000000 00000001 00000000 z32\n"
              "f> 01 43 00000000 00000000 00000001 00000000 z32\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1204 c000 0032 01 "
              "43 00000000 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("ddp.number-within", "RFC 5041 5.4",
              "refuse another message within one, with 12 03", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 01 43 00000000 00000000 00000001 00000000 z32\n"
              "f> 41 43 00000000 00000000 00000002 00000020 z32\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1203 c000 0032 41 "
              "43 00000000 00000000 00000002 00000020\n"
              "< fin\n"),
    CONF_TEST("rdmap.opcode-within", "RFC 5040 7",
              "refuse another opcode within a message, with 02 06",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 01 43 00000000 00000000 00000001 00000000 z32\n"
              "f> 41 45 00000000 00000000 00000001 00000020 z32\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 "
              "c000 0032 41 45 00000000 00000000 00000001 00000020\n"
              "< fin\n"),
    CONF_TEST("write.key", "RFC 5041 5.1",
              "refuse a WRITE to an unknown key, with 11 00", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "f> c1 40 12345678 z8 x1\n"
                              "f< 41 47 00000000 00000002 00000001 00000000 "
                              "1100 c000 000f c1 40 12345678 z8\n"
                              "< fin\n"),
    CONF_TEST("write.sink-key", "RFC 5041 5.1",
              "refuse a WRITE to a key like those of READs", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "f> c1 40 80000001 z8 x1\n"
                              "f< 41 47 00000000 00000002 00000001 00000000 "
                              "1100 c000 000f c1 40 80000001 z8\n"
                              "< fin\n"),
    CONF_TEST("write.empty", "RFC 5041 5.1", "take an empty WRITE to any key",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "f> c1 40 12345678 z8\n"
                              "quiet\n" IW_CONNECT),
    CONF_TEST("write.wrap", "RFC 5041 5.1",
              "take an empty WRITE to the last address", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN "f> c1 40 00000000 ffffffffffffffff\n"
                              "quiet\n" IW_CONNECT),
    CONF_TEST("read.no-right", "RFC 5040 5.2",
              "refuse a READ of a host that may not have any, with 12 02",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 41 00000000 00000001 00000001 00000000 z28\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1202 "
              "c000 002e 41 41 00000000 00000001 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("read.number-2", "RFC 5041 5.4", "check the number of a READ",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 41 00000000 00000001 00000002 00000000 z28\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1203 "
              "c000 002e 41 41 00000000 00000001 00000002 00000000\n"
              "< fin\n"),
    CONF_TEST("read.offset", "RFC 5041 5.4", "check the offset of a READ",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 41 00000000 00000001 00000001 00000004 z28\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1204 "
              "c000 002e 41 41 00000000 00000001 00000001 00000004\n"
              "< fin\n"),
    CONF_TEST("read.short", "RFC 5040 7",
              "refuse a READ request of 27 bytes, with 02 07", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 41 00000000 00000001 00000001 00000000 z27\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0207 c000 002d 41 "
              "41 00000000 00000001 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("read.long", "RFC 5041 7.1",
              "refuse a READ request of 29 bytes, with 12 05", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "f> 41 41 00000000 00000001 00000001 00000000 z29\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1205 c000 002f 41 "
              "41 00000000 00000001 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("invalidate.unknown", "RFC 5040 5.4",
              "refuse to invalidate an unknown key, with 01 09",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 44 12345678 00000000 00000001 00000000 z64\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0109 "
              "c000 0052 41 44 12345678 00000000 00000001 00000000\n"
              "< fin\n"),
    CONF_TEST("terminate.host", "RFC 5040 6.3",
              "close after a Terminate of the host, without one of its own",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 47 00000000 00000002 00000001 00000000 02060000\n"
              "< fin\n"),
    CONF_TEST(
        "terminate.siw", "RFC 5040 6.3",
        "close after a Terminate as siw writes it", iwarp_script_run,
        .is_malformed = true,
        .text = IW_OPEN
        "f> 41 47 00000000 00000002 00000001 00000000 21030300 0040 4143 z16\n"
        "< fin\n"),
    CONF_TEST("terminate.window-0", "RFC 5040 6.2",
              "end a connection whose host has no room for the Terminate",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN "window 0\n"
                              "f> 41 49 00000000 00000000 00000001 00000000\n"
                              "rst 3\n"),
    CONF_TEST("terminate.behind-a-read", "RFC 5040 6.2",
              "end a connection whose host takes nothing that comes before the "
              "Terminate",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "window 0\n"
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "wait 1\n"
              "f> 41 49 00000000 00000000 00000002 00000000\n"
              "rst 3\n"),
    CONF_TEST("terminate.no-fin", "RFC 5040 6.2",
              "end a connection whose host takes the Terminate and never "
              "closes",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 49 00000000 00000000 00000001 00000000\n"
              "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 "
              "49 00000000 00000000 00000001 00000000\n"
              "< fin\n"
              "rst 8\n"),
    CONF_TEST("terminate.host-no-fin", "RFC 5040 6.3",
              "end a connection whose host sends a Terminate and never closes",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "f> 41 47 00000000 00000002 00000001 00000000 02060000\n"
              "< fin\n"
              "rst 8\n"),
    CONF_TEST("terminate.host-window-0", "RFC 5040 6.3",
              "end a connection whose host sends a Terminate and has no room",
              iwarp_script_run, .is_malformed = true,
              .text = IW_OPEN
              "window 0\n"
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 01 z19 "
              "00000000 88880102 000400 12345678 40 0000 0000 1f00 00 z17\n"
              "f> 41 47 00000000 00000002 00000001 00000000 02060000\n"
              "rst 8\n"),
    CONF_TEST("terminate.nothing-after", "RFC 5040 6.2",
              "execute nothing after a fault", iwarp_script_run,
              .is_malformed = true,
              .text = IW_OPEN
              "hold\n"
              "f> 41 43 00000000 00000000 00000009 00000000\n"
              "f> 41 43 00000000 00000000 00000001 00000000 7f 40 0100 04 z59\n"
              "go\n"
              "f< 41 47 00000000 00000002 00000001 00000000 1203 c000 0012 41 "
              "43 00000000 00000000 00000009 00000000\n"
              "< fin\n"),
    CONF_TEST(
        "terminate.others", "RFC 5040 6.2",
        "serve other connections after a fault", iwarp_script_run,
        .is_malformed = true,
        .text = IW_OPEN
        "f> 41 49 00000000 00000000 00000001 00000000\n"
        "f< 41 47 00000000 00000002 00000001 00000000 0206 c000 0012 41 49 "
        "00000000 00000000 00000001 00000000\n"
        "< fin\n"
        "again\n"
        "> \"MPA ID Req Frame\" 10 02 0024 0080 0000 0000 0000 2000 1f00 z24\n"
        "< \"MPA ID Rep Frame\" 50 02 0024 0000 0010 0000 2000 "
        "z28\n" IW_CONNECT),
};
CONF_TESTS(conf_tests_iwarp_segment, "iwarp", tests);
