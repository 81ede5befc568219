/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `nvme-tcp`: PDUs that a host must not send. */
#include "nvme_tcp_script.h"

/* The host's common header, which alone is refused. */
#define REFUSES(head, fes, fei) "< " head "\n" TERM("20000000", fes, fei, head)
/* The same with an R2T that waits for ttag0. */
#define ASKED                                                                  \
    HOST WRITE_BLOCK("0200", "10", "7") SUCCEEDS("0200")                       \
        ASK_WRITE("0300", "00020000", "10", "0000")                            \
            R2T("0300", "ttag0", "00000000", "00020000")
/* H2CData whose header alone is refused. */
#define REFUSES_DATA(head, fields, fes, fei)                                   \
    "< " head " " fields                                                       \
    " 00000000\n" TERM("30000000", fes, fei, head " " fields " 00000000")
/* The block of ASKED was not written. */
#define UNCHANGED                                                              \
    "conn 2\n" IC("00") CONNECT("02", "1f", "00", "cntlid")                    \
        READ_BLOCK("0400", "10", "7")

/* clang-format off */
static const struct conf_test tests[] = {
    NVME_TCP_WRONG("wrong.type-1", "NVMe TCP 1.0 3.6.1",
                   "refuse ICResp of a host",
                   HOST REFUSES("01008000 80000000", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.type-3", "NVMe TCP 1.0 3.6.1",
                   "refuse C2HTermReq of a host",
                   HOST REFUSES("03001800 18000000", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.type-5", "NVMe TCP 1.0 3.6.1",
                   "refuse CapsuleResp of a host",
                   HOST REFUSES("05001800 18000000", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.type-7", "NVMe TCP 1.0 3.6.1",
                   "refuse C2HData of a host",
                   HOST REFUSES("07041818 18020000", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.type-8", "NVMe TCP 1.0 3.6.1",
                   "refuse the reserved type 08h",
                   HOST REFUSES("08001800 18000000", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.type-9", "NVMe TCP 1.0 3.6.1",
                   "refuse R2T of a host",
                   HOST REFUSES("09001800 18000000", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.type-a", "NVMe TCP 1.0 3.6.1",
                   "refuse KDReq, as kickstart discovery is not supported",
                   HOST REFUSES("0a001800 18000000", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.type-ff", "NVMe TCP 1.0 3.6.1",
                   "refuse type FFh",
                   HOST REFUSES("ff00ffff ffffffff", "0100", "00000000")),
    NVME_TCP_WRONG("wrong.ic-req", "NVMe TCP 1.0 3.6.2.2",
                   "refuse ICReq on a connected queue",
                   HOST REFUSES("00008000 80000000", "0200", "00000000")),

    NVME_TCP_WRONG("wrong.ic-req-asked", "NVMe TCP 1.0 3.6.2.2",
                   "refuse ICReq with other digests while an R2T is open",
                   ASKED
                   "< 00008000 80000000 0000 00 03 00000000 zero 112\n"
                   TERM("20000000", "0200", "00000000", "00008000 80000000")
                   UNCHANGED),

    /* ---- Capsules. */
    NVME_TCP_WRONG("wrong.capsule-hlen", "NVMe TCP 1.0 3.6.2.6",
                   "refuse a capsule with HLEN 71",
                   HOST REFUSES("04004700 47000000", "0100", "02000000")),
    NVME_TCP_WRONG("wrong.capsule-hlen-0", "NVMe TCP 1.0 3.6.2.6",
                   "refuse a capsule with HLEN 0",
                   HOST REFUSES("04000000 48000000", "0100", "02000000")),
    NVME_TCP_WRONG("wrong.capsule-hlen-255", "NVMe TCP 1.0 3.6.2.6",
                   "refuse a capsule with HLEN 255",
                   HOST REFUSES("0400ff00 ff000000", "0100", "02000000")),
    NVME_TCP_WRONG("wrong.capsule-plen", "NVMe TCP 1.0 3.6.2.6",
                   "refuse a capsule that is shorter than its header",
                   HOST REFUSES("04004848 47000000", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.capsule-plen-0", "NVMe TCP 1.0 3.6.2.6",
                   "refuse a capsule with PLEN 0",
                   HOST REFUSES("04004848 00000000", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.capsule-plen-4gib", "NVMe TCP 1.0 3.6.2.6",
                   "refuse a capsule of 4 GiB at once",
                   HOST REFUSES("04004848 ffffffff", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.capsule-plen-admin", "NVMe TCP 1.0 3.4",
                   "refuse more than 8 KiB in a capsule of an admin queue",
                   ADMIN REFUSES("04004848 49200000", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.capsule-plen-io", "NVMe-oF 1.1 4.1",
                   "refuse more data in a capsule than IOCCSZ allows",
                   HOST "< 04004848 49100000 "
                   WRITE_SQE("0300", IN_CAPSULE("01100000"), "10", "0700") "\n"
                   TERM("60000000", "0100", "04000000",
                        "04004848 49100000 "
                        WRITE_SQE("0300", IN_CAPSULE("01100000"), "10", "0700"))),
    NVME_TCP_WRONG("wrong.capsule-pdo-0", "NVMe TCP 1.0 3.6.1",
                   "refuse a capsule with data but without PDO",
                   HOST REFUSES("04004800 48020000", "0100", "03000000")),
    NVME_TCP_WRONG("wrong.capsule-pdo-low", "NVMe TCP 1.0 3.6.1",
                   "refuse data within the header",
                   HOST REFUSES("04004847 48020000", "0100", "03000000")),
    NVME_TCP_WRONG("wrong.capsule-pdo-high", "NVMe TCP 1.0 3.6.1",
                   "refuse bytes before the data, as CPDA is 0",
                   HOST REFUSES("0400484c 4c020000", "0100", "03000000")),
    NVME_TCP_WRONG("wrong.capsule-pdo-end", "NVMe TCP 1.0 3.6.1",
                   "refuse data behind the end of the PDU",
                   HOST REFUSES("040048ff 49000000", "0100", "03000000")),
    NVME_TCP_WRONG("wrong.nothing-after", "NVMe TCP 1.0 3.5.1",
                   "execute nothing that follows a wrong PDU",
                   HOST WRITE_BLOCK("0200", "10", "7") SUCCEEDS("0200")
                   "< 08001800 18000000 zero 16 04004848 48020000 "
                   WRITE_SQE("0300", IN_CAPSULE("00020000"), "10", "0000")
                   " data 1 512 0\n"
                   TERM("20000000", "0100", "00000000", "08001800 18000000")
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.others-live", "NVMe TCP 1.0 3.5.1",
                   "end only the connection that had the wrong PDU",
                   HOST "conn 2\n"
                   IC("00") CONNECT("02", "1f", "00", "cntlid") "conn 1\n"
                   REFUSES("08001800 18000000", "0100", "00000000") "conn 2\n"
                   WORKS "conn 0\n"
                   CAPSULE(KEEP_ALIVE_SQE("0300")) SUCCEEDS("0300")),
    NVME_TCP_WRONG("wrong.admin", "NVMe TCP 1.0 3.5.1",
                   "end the controller when its admin queue had a wrong PDU",
                   HOST "conn 0\n"
                   REFUSES("08001800 18000000", "0100", "00000000")
                   "conn 1\nends\n"),
    NVME_TCP_WRONG("wrong.too-many", "NVMe TCP 1.0 3.5.1; NVMe-oF 1.1 2.4.1",
                   "refuse more commands than the queue has entries",
                   ADMIN "conn 1\n"
                   IC("00") CONNECT("01", "01", "00", "cntlid")
                   ASK_WRITE("0300", "00020000", "10", "0000")
                   R2T("0300", "ttag0", "00000000", "00020000")
                   ASK_WRITE("0400", "00020000", "11", "0000")
                   R2T("0400", "ttag1", "00000000", "00020000")
                   CAPSULE(FLUSH_SQE("0500"))
                   TERM("60000000", "0200", "00000000",
                        "04004800 48000000 " FLUSH_SQE("0500"))),

    /* ---- H2CData. */
    NVME_TCP_WRONG("wrong.data-hlen", "NVMe TCP 1.0 3.6.2.8",
                   "refuse H2CData with HLEN 23",
                   ASKED REFUSES("06041718 18020000", "0100", "02000000")
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-pdo", "NVMe TCP 1.0 3.6.2.8",
                   "refuse H2CData with bytes before the data",
                   ASKED REFUSES("0604181c 1c020000", "0100", "03000000")
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-pdo-0", "NVMe TCP 1.0 3.6.2.8",
                   "refuse H2CData without PDO",
                   ASKED REFUSES("06041800 18020000", "0100", "03000000")),
    NVME_TCP_WRONG("wrong.data-empty", "NVMe TCP 1.0 3.6.2.8",
                   "refuse H2CData without data",
                   ASKED REFUSES("06041818 18000000", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.data-plen-0", "NVMe TCP 1.0 3.6.2.8",
                   "refuse H2CData with PLEN 0",
                   ASKED REFUSES("06041818 00000000", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.data-limit", "NVMe TCP 1.0 3.6.2.3; 3.5.1",
                   "refuse H2CData longer than MAXH2CDATA",
                   ASKED REFUSES("06041818 19000400", "0500", "00000000")
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-4gib", "NVMe TCP 1.0 3.6.2.3; 3.5.1",
                   "refuse H2CData of 4 GiB",
                   ASKED REFUSES("06041818 ffffffff", "0500", "00000000")),
    NVME_TCP_WRONG("wrong.data-unasked", "NVMe TCP 1.0 3.3.2.2",
                   "refuse data that no R2T asked for",
                   HOST
                   REFUSES_DATA("06041818 18020000",
                                "0300 0000 00000000 00020000", "0100",
                                "0a000000")),
    NVME_TCP_WRONG("wrong.data-twice", "NVMe TCP 1.0 3.3.2.2",
                   "refuse data of an R2T that has been answered",
                   ASKED
                   H2C_DATA("04", "18020000", "0300", "ttag0", "00000000",
                            "00020000", "data 3 512 0")
                   SUCCEEDS("0300")
                   "< 06041818 18020000 0300 ttag0 00000000 00020000 00000000\n"
                   "> 03001800 30000000 0100 0a000000 zero 10 06041818 "
                     "18020000 0300 any 14\ncloses\n"),
    NVME_TCP_WRONG("wrong.data-cccid", "NVMe TCP 1.0 3.6.2.8",
                   "refuse data with the CID of another command",
                   ASKED
                   "< 06041818 18020000 0400 ttag0 00000000 00020000 00000000\n"
                   "> 03001800 30000000 0100 08000000 zero 10 06041818 "
                   "18020000 0400 any 14\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-datal", "NVMe TCP 1.0 3.6.2.8",
                   "refuse a data length that disagrees with PLEN",
                   ASKED
                   "< 06041818 18020000 0300 ttag0 00000000 ff010000 00000000\n"
                   "> 03001800 30000000 0100 04000000 zero 10 06041818 any "
                   "20\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-early", "NVMe TCP 1.0 3.6.2.8",
                   "refuse data from another offset than the next",
                   ASKED
                   "< 06001818 18010000 0300 ttag0 00010000 00010000 00000000\n"
                   "> 03001800 30000000 0400 00000000 zero 10 06001818 any "
                   "20\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-again", "NVMe TCP 1.0 3.6.2.8",
                   "refuse bytes of an R2T that have come already",
                   ASKED
                   H2C_DATA("00", "18010000", "0300", "ttag0", "00000000",
                            "00010000", "data 3 256 0")
                   "< 06001818 18010000 0300 ttag0 00000000 00010000 00000000\n"
                   "> 03001800 30000000 0400 00000000 zero 10 06001818 any "
                   "20\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-beyond", "NVMe TCP 1.0 3.6.2.8",
                   "refuse more data than R2T asked for",
                   ASKED
                   "< 06041818 18040000 0300 ttag0 00000000 00040000 00000000\n"
                   "> 03001800 30000000 0400 00000000 zero 10 06041818 any "
                   "20\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-offset-wraps", "NVMe TCP 1.0 3.6.2.8",
                   "refuse an offset that wraps",
                   ASKED
                   "< 06041818 18020000 0300 ttag0 00feffff 00020000 00000000\n"
                   "> 03001800 30000000 0400 00000000 zero 10 06041818 any "
                   "20\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-no-last", "NVMe TCP 1.0 3.6.2.8",
                   "refuse the end of an R2T without LAST",
                   ASKED
                   "< 06001818 18020000 0300 ttag0 00000000 00020000 00000000\n"
                   "> 03001800 30000000 0200 00000000 zero 10 06001818 any "
                   "20\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-early-last", "NVMe TCP 1.0 3.6.2.8",
                   "refuse LAST before the end of an R2T",
                   ASKED
                   "< 06041818 18010000 0300 ttag0 00000000 00010000 00000000\n"
                   "> 03001800 30000000 0200 00000000 zero 10 06041818 any "
                   "20\ncloses\n"
                   UNCHANGED),
    NVME_TCP_WRONG("wrong.data-other-queue", "NVMe TCP 1.0 3.6.2.8",
                   "refuse a tag of another connection's R2T",
                   ASKED "conn 2\n"
                   IC("00") CONNECT("02", "1f", "00", "cntlid")
                   "< 06041818 18020000 0300 ttag0 00000000 00020000 00000000\n"
                   "> 03001800 30000000 0100 0a000000 zero 10 06041818 any "
                   "20\ncloses\nconn 1\n"
                   H2C_DATA("04", "18020000", "0300", "ttag0", "00000000",
                            "00020000", "data 3 512 0")
                   SUCCEEDS("0300")),

    /* ---- H2CTermReq. */
    NVME_TCP_WRONG("wrong.term", "NVMe TCP 1.0 3.5.2",
                   "close when the host ends the connection, and answer with "
                    "no PDU",
                   HOST "< 02001800 18000000 0100 04000000 zero 10\n"
                   "closes\nconn 0\n"
                   CAPSULE(KEEP_ALIVE_SQE("0300")) SUCCEEDS("0300")),
    NVME_TCP_WRONG("wrong.term-longest", "NVMe TCP 1.0 3.6.2.4",
                   "take an H2CTermReq with 128 bytes of header",
                   HOST
                   "< 02001800 98000000 0600 08000000 zero 10 data 1 128 "
                     "0\ncloses\n"),
    NVME_TCP_WRONG("wrong.term-long", "NVMe TCP 1.0 3.6.2.4",
                   "refuse an H2CTermReq with 129 bytes of header",
                   HOST REFUSES("02001800 99000000", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.term-short", "NVMe TCP 1.0 3.6.2.4",
                   "refuse an H2CTermReq that is shorter than its header",
                   HOST REFUSES("02001800 17000000", "0100", "04000000")),
    NVME_TCP_WRONG("wrong.term-hlen", "NVMe TCP 1.0 3.6.2.4",
                   "refuse an H2CTermReq with HLEN 25",
                   HOST REFUSES("02001900 19000000", "0100", "02000000")),
    NVME_TCP_WRONG("wrong.term-asked", "NVMe TCP 1.0 3.5.2",
                   "write nothing of a command whose connection was ended",
                   ASKED "< 02001800 18000000 0100 04000000 zero 10\n"
                   "closes\n"
                   UNCHANGED),
};
/* clang-format on */

CONF_TESTS(conf_tests_nvme_tcp_wrong, "nvme-tcp", tests);
