/* SPDX-License-Identifier: BSD-2-Clause */
/* Chapter `nvme-tcp`: how connections, queues and controllers end. */
#include "nvme_tcp_script.h"

#define ALIVE "conn 0\n" CAPSULE(KEEP_ALIVE_SQE("dd00")) SUCCEEDS("dd00")
#define ASKED                                                                  \
    HOST WRITE_BLOCK("0200", "10", "7") SUCCEEDS("0200")                       \
        ASK_WRITE("0300", "00020000", "10", "0000")                            \
            R2T("0300", "ttag0", "00000000", "00020000")
#define DISABLE                                                                \
    "conn 0\n" CAPSULE(SET_CC_SQE("0400", "00004600"))                         \
        SUCCEEDS("0400") "conn 1\n"
#define ENABLE                                                                 \
    "conn 0\n" CAPSULE(SET_CC_SQE("0500", "01004600")) SUCCEEDS("0500")
#define UNCHANGED                                                              \
    "conn 2\n" IC("00") CONNECT("02", "1f", "00", "cntlid")                    \
        READ_BLOCK("0400", "10", "7")

/* clang-format off */
static const struct conf_test tests[] = {
    NVME_TCP_TEST("life.fin-io", "NVMe TCP 1.0 3.5",
                  "close an I/O queue whose host closes; the controller stays",
                  HOST "fin\ncloses\n"
                  ALIVE),
    NVME_TCP_TEST("life.rst-io", "NVMe TCP 1.0 3.5",
                  "end an I/O queue whose host resets it; the controller stays",
                  HOST "rst\n"
                  ALIVE),
    NVME_TCP_TEST("life.again-io", "NVMe-oF 1.1 3.3",
                  "take the same I/O queue by a new connection",
                  HOST "fin\ncloses\nconn 2\n"
                  IC("00") CONNECT("01", "1f", "00", "cntlid") WORKS),
    NVME_TCP_TEST("life.fin-admin", "NVMe-oF 1.1 4.1",
                  "end the controller when its admin queue closes",
                  HOST "conn 0\nfin\ncloses\nconn 1\nends\nconn 2\n"
                  IC("00")
                  CAPSULE_OF("48040000",
                             CONNECT_SQE("02", "1f", "00",
                                         IN_CAPSULE("00040000")),
                             CONNECT_DATA("cntlid", "subnqn"))
                  RESPONSE("10000100", "0201", "0483")),
    NVME_TCP_TEST("life.rst-admin", "NVMe-oF 1.1 4.1",
                  "end the controller when its admin queue is reset",
                  HOST "conn 0\nrst\nconn 1\nends\n"),
    NVME_TCP_TEST("life.shutdown", "NVMe-oF 1.1 4.2; NVMe 1.4 7.6.2",
                  "shut down, and close after the host",
                  HOST "conn 0\n"
                  CAPSULE(SET_CC_SQE("0400", "01404600")) SUCCEEDS("0400")
                  "fin\ncloses\nconn 1\nends\n"),
    NVME_TCP_TEST("life.disable", "NVMe-oF 1.1 4.2",
                  "end I/O queues when the controller is disabled",
                  HOST "conn 0\n"
                  CAPSULE(SET_CC_SQE("0400", "00004600")) SUCCEEDS("0400")
                  "conn 1\nends\nconn 0\n"
                  CAPSULE(GET_PROPERTY_SQE("0500", "1c"))
                  RESPONSE("00000000", "0500", "0000")),
    NVME_TCP_TEST("life.abort-asked", "NVMe 1.4 5.1; NVMe TCP 1.0 3.3.2.2",
                  "take the data of a write that Abort has left to go on",
                  ASKED "conn 0\n"
                  CAPSULE(SQE("08", "0400", "00000000", NO_DATA,
                              "0100 0300 zero 20"))
                  RESPONSE("01000000", "0400", "0000")
                  "conn 1\n"
                  H2C_DATA("04", "18020000", "0300", "ttag0", "00000000",
                           "00020000", "data 1 512 0")
                  SUCCEEDS("0300") READ_BLOCK("0400", "10", "1")),
    NVME_TCP_TEST("life.disable-asked", "NVMe-oF 1.1 4.2",
                  "write nothing when the controller is disabled before the "
                  "data come",
                  ASKED DISABLE "ends\n" ENABLE UNCHANGED),
    NVME_TCP_TEST("life.disable-late-data", "NVMe-oF 1.1 4.2",
                  "write no data that come after the controller was disabled",
                  ASKED DISABLE
                  H2C_DATA("04", "18020000", "0300", "ttag0", "00000000",
                           "00020000", "data 1 512 0")
                  "ends\n" ENABLE UNCHANGED),
    NVME_TCP_TEST("life.disable-within-data", "NVMe-oF 1.1 4.2",
                  "write nothing when the controller is disabled within the "
                  "data",
                  ASKED
                  H2C_DATA("00", "18010000", "0300", "ttag0", "00000000",
                           "00010000", "data 1 256 0")
                  DISABLE
                  H2C_DATA("04", "18010000", "0300", "ttag0", "00010000",
                           "00010000", "data 1 256 256")
                  "ends\n" ENABLE UNCHANGED),
    NVME_TCP_TEST("life.disable-unread", "NVMe-oF 1.1 4.2",
                  "end a queue of a disabled controller whose data nobody takes",
                  "virtual\n"
                  HOST WRITE_BLOCK("0200", "10", "7") SUCCEEDS("0200")
                  "mute\n"
                  CAPSULE(READ_SQE("0300", "00020000", "10", "0000"))
                  DISABLE "pass 7\nresets\n"
                  ENABLE UNCHANGED),
    NVME_TCP_TEST("life.fin-unanswered", "NVMe TCP 1.0 3.3.2.2",
                  "write nothing when the host closes instead of sending data",
                  ASKED "fin\ncloses\n"
                  UNCHANGED),
    NVME_TCP_TEST("life.rst-unanswered", "NVMe TCP 1.0 3.3.2.2",
                  "write nothing when the host resets instead of sending data",
                  ASKED "rst\n"
                  UNCHANGED),
    NVME_TCP_TEST("life.rst-within-data", "NVMe TCP 1.0 3.3.2.2",
                  "write nothing when the host resets within the data",
                  ASKED
                  H2C_DATA("00", "18010000", "0300", "ttag0", "00000000",
                           "00010000", "data 1 256 0")
                  "rst\n"
                  UNCHANGED),
    NVME_TCP_TEST("life.rst-within-capsule", "NVMe TCP 1.0 3.3.2.2",
                  "write nothing of a capsule that stays incomplete",
                  HOST WRITE_BLOCK("0200", "10", "7") SUCCEEDS("0200")
                  "< 04004848 48020000 "
                  WRITE_SQE("0300", IN_CAPSULE("00020000"), "10", "0000")
                  " data 1 500 0\nrst\n"
                  UNCHANGED),
    NVME_TCP_TEST("life.many-queues", "NVMe-oF 1.1 3.3",
                  "serve four I/O queues of a host",
                  HOST "conn 2\n"
                  IC("00") CONNECT("02", "1f", "00", "cntlid") "conn 3\n"
                  IC("03") "conn 4\n"
                  IC("00") CONNECT("03", "1f", "00", "cntlid") "conn 5\n"
                  IC("00") CONNECT("04", "1f", "04", "cntlid") WORKS "conn 4\n"
                  WORKS "conn 2\n"
                  WORKS "conn 1\n"
                  WORKS),
    NVME_TCP_TEST("life.r2t-unanswered", "NVMe TCP 1.0 3.3.2.2",
                  "end a connection that does not send its data for 10 s",
                  "virtual\n"
                  ASKED "pass 8\nquiet\npass 4\nresets\n"
                  ALIVE UNCHANGED),
    NVME_TCP_TEST("life.data-trickles", "NVMe TCP 1.0 3.3.2.2",
                  "wait for data as long as some comes",
                  "virtual\n"
                  ASKED "pass 8\n"
                  H2C_DATA("00", "18010000", "0300", "ttag0", "00000000",
                           "00010000", "data 1 256 0")
                  "pass 8\nquiet\n"
                  H2C_DATA("04", "18010000", "0300", "ttag0", "00010000",
                           "00010000", "data 1 256 256")
                  SUCCEEDS("0300") READ_BLOCK("0400", "10", "1")),
    NVME_TCP_TEST("life.capsule-incomplete", "NVMe TCP 1.0 3.1",
                  "end a connection whose capsule stays incomplete for 10 s",
                  "virtual\n"
                  HOST "< 04004848 48020000 data 1 20 0\n"
                  "pass 8\nquiet\npass 4\nresets\n"
                  ALIVE),
    NVME_TCP_TEST("life.unread", "NVMe TCP 1.0 3.3.2.1",
                  "end a connection whose data is not acknowledged for 10 s",
                  "virtual\n"
                  HOST "mute\n"
                  CAPSULE(READ_SQE("0300", "00020000", "10", "0000"))
                  "pass 14\nresets\n"
                  ALIVE),
    NVME_TCP_TEST("life.idle", "NVMe TCP 1.0 3.1",
                  "keep a connection on which nothing is due",
                  "virtual\n"
                  HOST "pass 100\n"
                  WORKS ALIVE),
    NVME_TCP_TEST("life.keep-alive", "NVMe 1.4 7.12.1",
                  "end a controller that is silent for longer than KATO",
                  "virtual\n"
                  HOST "pass 130\nends\nconn 0\nends\n"),
};
/* clang-format on */

CONF_TESTS(conf_tests_nvme_tcp_life, "nvme-tcp", tests);
