/* SPDX-License-Identifier: BSD-2-Clause */
/* The whole path once: connect, write, read back, disconnect. */
#include "bed.h"

#include <stdio.h>

static void test_write_and_read_back(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    print_message("%s", machine_console(&bed.drive->machine));
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 100, 8, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 100, 8, HOST_DATA_KEYED, 1);
    host_disconnect(&bed.host->host);
    bed_expect_idle(&bed);
    print_message("%s", machine_console(&bed.drive->machine));
    bed_end(&bed);
}
