/* SPDX-License-Identifier: BSD-2-Clause */
/* What tools get from a drive on its management channel. */
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
        fail_msg("the answer to %s is %s, which has no %s", line, reply, part);
    }
}

static void test_a_drive_reports_its_identity(void **state)
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

static void test_every_request_is_answered_with_json(void **state)
{
    static const char *const requests[][2] = {
        {"pools", "\"queue-pairs\":{\"used\":2,\"all\":1024}"},
        {"config", "{\"key\":\"port.0.mtu\",\"draft\":\"1500\","},
        {"lag", "{\"mode\":\"off\"}"},
        {"neighbours", "\"port\":1,\"neighbours\":[]"},
        {"addresses", "\"address\":\"10.0.0.1\",\"prefix\":24,\"state\":"},
        {"controllers", "\"state\":\"ready\",\"discovery\":false,"},
        {"queue-pairs", "\"qid\":1,\"state\":\"live\","},
        {"shutdown", "\"result\":{}}"},
    };
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        char line[80];

        log_format(line, sizeof(line),
                   "{\"v\":1,\"id\":1,\"request\":\"%s\"}\n", requests[i][0]);
        expect_reply(&bed, line, requests[i][1]);
    }
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_the_configuration_is_changed_and_saved(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    expect_reply(&bed,
                 "{\"v\":1,\"id\":1,\"request\":\"config-set\","
                 "\"key\":\"port.0.mtu\",\"value\":\"4200\"}\n",
                 "\"result\":{\"live\":");
    expect_reply(
        &bed, "{\"v\":1,\"id\":2,\"request\":\"config\"}\n",
        "{\"key\":\"port.0.mtu\",\"draft\":\"4200\",\"saved\":\"1500\"");
    expect_reply(&bed, "{\"v\":1,\"id\":3,\"request\":\"config-discard\"}\n",
                 "\"result\":{}");
    expect_reply(&bed, "{\"v\":1,\"id\":4,\"request\":\"config\"}\n",
                 "{\"key\":\"port.0.mtu\",\"draft\":\"1500\"");
    expect_reply(&bed,
                 "{\"v\":1,\"id\":5,\"request\":\"config-set\","
                 "\"key\":\"name\",\"value\":\"eyes\"}\n",
                 "\"result\"");
    expect_reply(&bed, "{\"v\":1,\"id\":6,\"request\":\"config-save\"}\n",
                 "\"later\":[");
    assert_int_equal(bed.drive->saves, 1);
    expect_reply(&bed,
                 "{\"v\":1,\"id\":7,\"request\":\"config-set\","
                 "\"key\":\"no.such\",\"value\":\"1\"}\n",
                 "\"error\":{\"code\":\"bad-argument\"");
    expect_reply(&bed, "{\"v\":1,\"id\":8,\"request\":\"config-set\"}\n",
                 "\"error\":{\"code\":\"bad-argument\"");
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

static void test_a_nul_in_a_line_does_not_hide_the_rest_of_it(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    machine_request(&bed.drive->machine,
                    "{\"v\":1,\"id\":3,\"request\":\"status\"}");
    hw_mgmt_input(&bed.drive->machine.mgmt, HW_MGMT_MESSAGES,
                  (const uint8_t *)"\0hidden\n", 8);
    assert_true(native_world_run(&bed.world, has_reply, &bed, 1000000000));
    assert_non_null(
        strstr(machine_reply(&bed.drive->machine), "\"code\":\"bad-json\""));
    bed_end(&bed);
}

static void test_a_number_that_is_none_is_refused(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    expect_reply(&bed, "{\"v\":1,\"id\":\"a\",\"request\":\"config-save\"}\n",
                 "\"id\":0,\"error\":{\"code\":\"bad-argument\"");
    assert_int_equal(bed.drive->saves, 0);
    expect_reply(
        &bed, "{\"v\":1,\"id\":2,\"request\":\"controllers\",\"from\":\"a\"}\n",
        "\"id\":2,\"error\":{\"code\":\"bad-argument\"");
    expect_reply(
        &bed, "{\"v\":1,\"id\":3,\"request\":\"queue-pairs\",\"from\":true}\n",
        "\"id\":3,\"error\":{\"code\":\"bad-argument\"");
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
