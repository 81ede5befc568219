/* SPDX-License-Identifier: BSD-2-Clause */
/* What tools see of a drive on its management channel. */
#include "bed.h"

#include <string.h>

#include "firmware/mgmt/mgmt_service.h"

static bool has_reply(void *ctx)
{
    return strchr(machine_reply(&((struct bed *)ctx)->drive->machine), '\n') !=
           NULL;
}

static const char *ask_drive(struct bed *bed, const char *line)
{
    machine_request(&bed->drive->machine, line);
    assert_true(native_world_run(&bed->world, has_reply, bed, 1000000000));
    return machine_reply(&bed->drive->machine);
}

static void expect_reply(struct bed *bed, const char *line, const char *part)
{
    const char *reply = ask_drive(bed, line);

    if (strstr(reply, part) == NULL) {
        fail_msg("%s answers %s, which has no %s", line, reply, part);
    }
}

static void test_a_drive_says_what_it_is(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    expect_reply(&bed, "{\"v\":1,\"id\":7,\"request\":\"status\"}\n",
                 "{\"v\":1,\"id\":7,\"result\":{\"firmware\":");
    expect_reply(&bed, "{\"v\":1,\"id\":8,\"request\":\"status\"}\n",
                 "\"controllers\":0,");
    bed_connect(&bed, 0, 1, 64);
    expect_reply(&bed, "{\"v\":1,\"id\":9,\"request\":\"status\"}\n",
                 "\"controllers\":1,\"queue-pairs\":2");
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_requests_that_cannot_be_answered_are_refused(void **state)
{
    char long_line[MGMT_LINE_MAX + 100];
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    expect_reply(&bed, "{\"v\":1,\"id\":3,\"request\":\"dance\"}\n",
                 "{\"v\":1,\"id\":3,\"error\":{\"code\":\"unknown-request\",");
    expect_reply(&bed, "{\"v\":2,\"id\":4,\"request\":\"status\"}\n",
                 "\"id\":4,\"error\":{\"code\":\"bad-version\",");
    expect_reply(&bed, "status\n",
                 "\"id\":0,\"error\":{\"code\":\"bad-json\",");
    memset(long_line, 'x', sizeof(long_line));
    strcpy(long_line + sizeof(long_line) - 2, "\n");
    expect_reply(&bed, long_line, "\"code\":\"too-long\"");
    expect_reply(&bed, "{\"v\":1,\"id\":5,\"request\":\"status\"}\n",
                 "\"id\":5,\"result\"");
    bed_end(&bed);
}

static void test_pipelined_requests_are_all_answered(void **state)
{
    struct bed bed;
    const char *reply;
    unsigned int lines = 0;

    (void)state;
    bed_init(&bed, 1500);
    ask_drive(&bed, "{\"v\":1,\"id\":1,\"request\":\"status\"}\n"
                    "{\"v\":1,\"id\":2,\"request\":\"no\"}\n\n"
                    "{\"v\":1,\"id\":3,\"request\":\"status\"}\n");
    native_world_pass(&bed.world, 1000000);
    for (reply = machine_reply(&bed.drive->machine); *reply != '\0'; reply++) {
        lines += *reply == '\n';
    }
    assert_int_equal(lines, 3);
    bed_end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_drive_says_what_it_is),
        cmocka_unit_test(test_requests_that_cannot_be_answered_are_refused),
        cmocka_unit_test(test_pipelined_requests_are_all_answered),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
