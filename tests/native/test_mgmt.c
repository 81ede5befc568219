/* SPDX-License-Identifier: BSD-2-Clause */
/* What tools get from a drive on its management channel. */
#include "bed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "firmware/requests/mgmt_requests.h"
#include "firmware/app/tcp_services.h"
#include "firmware/mgmt/mgmt_service.h"
#include "net/wire/ipv4.h"
#include "net/wire/tcp.h"
#include "nvmeof/target/fault.h"
#include "nvmeof/wire/opcode.h"

#define SECOND_NS UINT64_C(1000000000)

enum { SENSOR_BUS = 2, TOO_HOT_C = 120 };

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
        {"requests", "\"requests\":[]"},
        {"tcp-connections", "\"result\":{\"tcp-connections\":[]}}"},
        {"aoe", "\"on\":false,\"devices\":[]"},
        {"aoe-forget", "\"result\":{}"},
        {"namespaces", "\"namespaces\":[{\"nsid\":1,\"state\":\"ready\","},
        {"ana", "\"groups\":[{\"group\":1,\"namespaces\":1,\"port0\":"},
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

/* The whole map of the flash, in pages of 64 superblocks. */
static void test_the_superblocks_of_the_flash_are_listed(void **state)
{
    static const struct bed nand = {
        .mtu_bytes = 1500, .has_nand = true, .nand_blocks = 70};
    struct bed bed;

    (void)state;
    bed_init_like(&bed, &nand);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, true, 1), 0);
    expect_reply(&bed, "{\"v\":1,\"id\":1,\"request\":\"superblocks\"}\n",
                 "\"mounted\":true,\"channels\":2,\"dies\":1,\"dead-dies\":[],"
                 "\"superblocks\":[{"
                 "\"superblock\":0,\"state\":\"");
    /* What was written, and a page with the capacity. */
    expect_reply(&bed, "{\"v\":1,\"id\":1,\"request\":\"superblocks\"}\n",
                 "\"state\":\"open\",\"stream\":\"host\",\"valid\":2,");
    expect_reply(&bed, "{\"v\":1,\"id\":1,\"request\":\"superblocks\"}\n",
                 "],\"next\":64}");
    expect_reply(&bed,
                 "{\"v\":1,\"id\":1,\"request\":\"superblocks\",\"from\":64}\n",
                 "\"superblocks\":[{\"superblock\":64,\"state\":\"free\","
                 "\"valid\":0,");
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_a_drive_without_flash_has_no_superblocks(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    expect_reply(&bed, "{\"v\":1,\"id\":1,\"request\":\"superblocks\"}\n",
                 "\"no-flash\"");
    bed_end(&bed);
}

static void test_a_namespace_whose_format_has_failed_says_so(void **state)
{
    static const char request[] =
        "{\"v\":1,\"id\":1,\"request\":\"namespaces\"}\n";
    static const struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM,
                                           .nsid = 1};
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    bed.medium.fail_writes = -EIO;
    assert_int_equal(host_command(&bed.host->host, 0, &format, NULL, 0) &
                         NVME_SC_MASK,
                     NVME_SC_INTERNAL);
    expect_reply(&bed, request, "\"nsid\":1,\"state\":\"format-failed\",");
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "the Format of namespace 1 has failed"));
    bed.medium.fail_writes = 0;
    assert_int_equal(host_command(&bed.host->host, 0, &format, NULL, 0), 0);
    expect_reply(&bed, request, "\"nsid\":1,\"state\":\"ready\",");
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

/* The answer has `part` when an operator ends the associations of a host; NULL:
 * of all hosts. */
static void expect_disconnect(struct bed *bed, const char *hostnqn,
                              const char *part)
{
    char line[400];

    if (hostnqn == NULL) {
        log_format(line, sizeof(line),
                   "{\"v\":1,\"id\":1,\"request\":\"disconnect\","
                   "\"all\":true}\n");
    } else {
        log_format(line, sizeof(line),
                   "{\"v\":1,\"id\":1,\"request\":\"disconnect\","
                   "\"hostnqn\":\"%s\"}\n",
                   hostnqn);
    }
    expect_reply(bed, line, part);
    native_world_pass(&bed->world, UINT64_C(1000000000));
}

/* Also an association of a discovery controller, which has no I/O queues. */
static void test_an_operator_ends_associations(void **state)
{
    static const char *const wrong[] = {
        "",
        ",\"hostnqm\":\"nqn.2014-08.org.example:another\"",
        ",\"hostnqn\":7",
        ",\"hostnqn\":null",
        ",\"all\":false",
        ",\"all\":1",
        ",\"All\":true",
        ",\"all\":true,\"hostnqn\":\"nqn.2014-08.org.example:another\"",
        ",\"all\":false,\"all\":true",
    };
    static struct nvme_host discovery;
    struct host_target target;
    struct nvme_host *host;
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    host = &bed.host->host;
    bed_connect(&bed, 0, 2, 64);
    assert_int_equal(bed_write(&bed, 1, 9, 1, HOST_DATA_KEYED, false, 3), 0);
    native_host_add(bed.host, &discovery, 0);
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    strcpy(target.subnqn, NVME_DISCOVERY_NQN);
    target.io_queues = 0;
    assert_int_equal(host_connect(&discovery, &target), 0);

    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        char line[200];

        log_format(line, sizeof(line),
                   "{\"v\":1,\"id\":1,\"request\":\"disconnect\"%s}\n",
                   wrong[i]);
        expect_reply(&bed, line, "\"code\":\"bad-argument\"");
    }
    expect_disconnect(&bed, "nqn.2014-08.org.example:another",
                      "\"result\":{\"ended\":0}");
    bed_expect(&bed, 2, 9, 1, HOST_DATA_KEYED, 3);
    expect_disconnect(&bed, NULL, "\"result\":{\"ended\":2}");
    assert_true(host_is_broken(host));
    assert_true(host_is_broken(&discovery));
    host_vanish(host);
    host_vanish(&discovery);
    bed_expect_idle(&bed);

    bed_connect(&bed, 0, 1, 64);
    bed_expect(&bed, 1, 9, 1, HOST_DATA_KEYED, 3);
    expect_disconnect(&bed, host->target.hostnqn, "\"result\":{\"ended\":1}");
    assert_true(host_is_broken(host));
    host_vanish(host);
    bed_end(&bed);
}

static void count_result(void *ctx, const struct host_result *result)
{
    (void)result;
    ++*(unsigned int *)ctx;
}

static void test_referrals_are_added_and_removed(void **state)
{
    static const char *const rows[][2] = {
        {"referral-add\",\"address\":\"10.0.0.20\"}\n", "\"result\":{}"},
        {"referral-add\",\"address\":\"host\"}\n", "IPv4 or IPv6 address"},
        {"referral-add\",\"address\":\"10.0.0.20\",\"service\":0}\n",
         "from 1 to 65535"},
        {"referral-remove\",\"address\":\"10.0.0.21\"}\n", "no such referral"},
        {"referrals\"}\n",
         "[{\"address\":\"10.0.0.20\",\"service\":\"4420\"}]"},
        {"referral-remove\",\"address\":\"10.0.0.20\"}\n", "\"result\":{}"},
        {"referrals\"}\n", "\"referrals\":[]"},
    };
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char line[200];

        log_format(line, sizeof(line), "{\"v\":1,\"id\":1,\"request\":\"%s",
                   rows[i][0]);
        expect_reply(&bed, line, rows[i][1]);
    }
    bed_end(&bed);
}

static void test_ana_states_are_set_and_reported(void **state)
{
    static const char set[] = "{\"v\":1,\"id\":1,\"request\":\"ana-set\","
                              "\"state\":";
    static const char *const rows[][2] = {
        {"\"inaccessible\",\"group\":2,\"port\":1}\n", "\"result\":{}"},
        {"\"perfect\"}\n", "There is no such state"},
        {"\"change\",\"group\":17}\n", "There is no such group"},
        {"\"change\",\"port\":2}\n", "There is no such port"},
        {"\"change\",\"transition-ms\":10001}\n", "10000 ms at most"},
        {"\"change\",\"port\":\"0\"}\n", "has to be a number"},
    };
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char line[200];

        log_format(line, sizeof(line), "%s%s", set, rows[i][0]);
        expect_reply(&bed, line, rows[i][1]);
    }
    expect_reply(&bed, "{\"v\":1,\"id\":2,\"request\":\"ana\"}\n",
                 "{\"group\":2,\"namespaces\":0,\"port0\":\"optimized\","
                 "\"port1\":\"inaccessible\"}");
    bed_end(&bed);
}

static void start_reads(struct bed *bed, uint16_t qid, unsigned int count,
                        unsigned int *done)
{
    for (unsigned int i = 0; i < count; i++) {
        assert_true(
            host_io_submit(&bed->host->host, &(struct host_io){
                                                 .qid = qid,
                                                 .opcode = NVM_READ,
                                                 .kind = HOST_DATA_KEYED,
                                                 .nsid = BED_NSID,
                                                 .lba = 1000u * qid + i,
                                                 .blocks = 8,
                                                 .len_bytes = 8 * BED_BLOCK,
                                                 .done = count_result,
                                                 .ctx = done,
                                             }));
    }
    verbs_flush(&bed->host->net.verbs);
    bed->host->sleep.is_asleep = false;
}

static unsigned int count_words(const char *text, const char *word)
{
    unsigned int n = 0;

    for (; (text = strstr(text, word)) != NULL; text++) {
        n++;
    }
    return n;
}

/* Ask for all pages of the table. @return how many rows have `word` */
static unsigned int count_requests(struct bed *bed, const char *word)
{
    unsigned int pages = 0, rows = 0;
    unsigned long from = 0;
    const char *reply, *next;

    do {
        char line[80];
        unsigned int rows_of_page;

        log_format(line, sizeof(line),
                   "{\"v\":1,\"id\":1,\"request\":\"requests\",\"from\":%lu}\n",
                   from);
        reply = ask_drive(bed, line);
        assert_non_null(strstr(reply, "\"requests\":["));
        rows_of_page = count_words(reply, "\"cid\":");
        assert_in_range(rows_of_page, 0, 64);
        rows += count_words(reply, word);
        next = strstr(reply, "\"next\":");
        if (next != NULL) {
            unsigned long to = strtoul(next + strlen("\"next\":"), NULL, 10);

            assert_in_range(to, from + 1, from + 2048);
            from = to;
        }
    } while (next != NULL && ++pages < 1000);
    return rows;
}

static void test_commands_in_the_drive_are_listed_in_pages(void **state)
{
    unsigned int done = 0;
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 2, 64);
    assert_int_equal(count_requests(&bed, "\"cid\":"), 0);
    bed.medium.is_held = true;
    start_reads(&bed, 1, 63, &done);
    start_reads(&bed, 2, 40, &done);
    native_world_pass(&bed.world, 5000000);
    assert_int_equal(count_requests(&bed, "\"cid\":"), 103);
    assert_int_equal(count_requests(&bed, "\"qid\":2,"), 40);
    assert_int_equal(count_requests(&bed,
                                    "\"opcode\":2,\"nsid\":1,\"lba\":1000,"
                                    "\"bytes\":4096,\"state\":\"media\","
                                    "\"age-us\":5"),
                     1);
    medium_release(&bed.medium);
    native_world_pass(&bed.world, 5000000);
    assert_int_equal(count_requests(&bed, "\"cid\":"), 0);
    expect_reply(&bed,
                 "{\"v\":1,\"id\":2,\"request\":\"requests\","
                 "\"from\":18446744073709551615}\n",
                 "\"result\":{\"requests\":[]}");
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

/* A fault rule delays its response by less than steps may be put off. */
static void test_a_held_response_is_listed_and_sent_in_time(void **state)
{
    unsigned int done = 0;
    static const struct nvmf_fault rule = {
        .id = 1,
        .action = NVMF_FAULT_DELAY,
        .queue = NVMF_FAULT_IO_QUEUE,
        .opcode = NVMF_FAULT_ANY,
        .cntlid = NVMF_FAULT_ANY,
        .nsid = NVMF_FAULT_ANY,
        .delay_us = LOOP_STEPS_WAIT_US / 2,
        .trigger = {.chance = FAULT_CHANCE_ALWAYS},
    };
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    native_world_pass(&bed.world, 1000000000);
    assert_true(nvmf_fault_add(bed.drive->drive.target, &rule));
    start_reads(&bed, 1, 1, &done);
    native_world_pass(&bed.world, rule.delay_us * 1000 - 1000);
    assert_int_equal(done, 0);
    native_world_pass(&bed.world, 2000);
    assert_int_equal(done, 1);
    start_reads(&bed, 1, 1, &done);
    native_world_pass(&bed.world, rule.delay_us * 1000 - 1000);
    assert_int_equal(count_requests(&bed, "\"state\":\"held-by-fault\""), 1);
    native_world_pass(&bed.world, 2000);
    assert_int_equal(done, 2);
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_counters_report_what_hosts_have_read_and_written(void **state)
{
    static const char request[] =
        "{\"v\":1,\"id\":1,\"request\":\"counters\"}\n";
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    expect_reply(&bed, request,
                 "\"reads\":0,\"writes\":0,\"read-bytes\":0,"
                 "\"written-bytes\":0,\"media-errors\":0,");
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, true, 1), 0);
    assert_int_equal(bed_read(&bed, 1, 0, 4, HOST_DATA_KEYED), 0);
    assert_int_equal(bed_read(&bed, 1, 4, 2, HOST_DATA_KEYED), 0);
    expect_reply(&bed, request,
                 "\"reads\":2,\"writes\":1,\"read-bytes\":3072,"
                 "\"written-bytes\":4096,\"media-errors\":0,");
    expect_reply(&bed, request,
                 "\"media\":{\"reads\":2,\"writes\":1,\"flushes\":0,");
    expect_reply(&bed, request, "\"bad-icrc\":0,");
    /* The REQs of the admin queue and of the I/O queue. */
    expect_reply(&bed, request, "\"connection-manager\":{\"requests\":2,");
    /* The last counter: nothing of the reply has been cut off. */
    expect_reply(&bed, request,
                 "\"dropped-limited\":0},\"tcp\":{\"frames-in\":");
    expect_reply(&bed, request, "\"echo-idle\":0}}}");
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_counters_have_the_critical_warning_of_smart(void **state)
{
    static const char request[] =
        "{\"v\":1,\"id\":1,\"request\":\"counters\"}\n";
    struct bed bed;
    int16_t *sensor;

    (void)state;
    bed_init(&bed, 1500);
    sensor =
        &bed.drive->machine.i2c_wires[SENSOR_BUS].sensor[0].temperature_256;
    expect_reply(&bed, request, "\"critical-warning\":0,");
    *sensor = TOO_HOT_C * 256;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    expect_reply(&bed, request, "\"critical-warning\":2,"); /* temperature */
    *sensor = 40 * 256;
    native_world_pass(&bed.world, 2 * SECOND_NS);
    expect_reply(&bed, request, "\"critical-warning\":0,");
    bed_end(&bed);
}

/* Whatever the drive drops can be seen somewhere. */
static void test_counters_report_frames_without_a_source(void **state)
{
    static const char request[] =
        "{\"v\":1,\"id\":1,\"request\":\"counters\"}\n";
    const struct eth eth = {
        .dst = {{0x01, 0x80, 0xc2, 0, 0, 0x0e}}, /* LLDP's */
        .type = ETHERTYPE_LLDP,
    };
    uint8_t data[60] = {0};
    const struct frame_rx frame = {.data = data, .len_bytes = sizeof(data)};
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    expect_reply(&bed, request, "\"dropped-source-mac\":0,");
    eth_emit(&eth, data);
    for (unsigned int port = 0; port < 2; port++) {
        hw_port_rx(&bed.drive->machine.ports[port], &frame, 1);
    }
    native_world_pass(&bed.world, 5000000);
    expect_reply(&bed, request, "\"dropped-source-mac\":2,");
    bed_end(&bed);
}

/* A SYN of a peer that sends nothing else. */
static void send_syn(struct bed *bed)
{
    const struct net_stack *stack = &bed->drive->drive.net.stack;
    const struct eth eth = {
        .dst = stack->config.ports[0].mac,
        .src = {{0x02, 0, 0, 0, 0, 77}},
        .type = ETHERTYPE_IPV4,
    };
    const struct ipv4 ip = {.src = ip_addr_from_v4(0x0a00004d),
                            .dst = ip_addr_from_v4(0x0a000001),
                            .total_len_bytes = IPV4_LEN + TCP_LEN,
                            .ttl = 64,
                            .protocol = IP_PROTOCOL_TCP};
    const struct tcp_header syn = {.src_port = 40000,
                                   .dst_port = TCP_ECHO_PORT,
                                   .window = 1000,
                                   .flags = TCP_SYN};
    uint8_t data[ETH_LEN + IPV4_LEN + TCP_LEN + 6] = {0};
    size_t at = ETH_LEN;
    const struct frame_rx frame = {.data = data, .len_bytes = sizeof(data)};

    eth_emit(&eth, data);
    ipv4_emit(&ip, data + at);
    at += IPV4_LEN;
    assert_int_equal(tcp_header_emit(&syn, data + at), TCP_LEN);
    put_be16(data + at + TCP_CHECKSUM, 0);
    put_be16(data + at + TCP_CHECKSUM,
             tcp_checksum(&ip.src, &ip.dst, data + at, TCP_LEN));
    hw_port_rx(&bed->drive->machine.ports[0], &frame, 1);
    native_world_pass(&bed->world, 5000000);
}

static void test_connections_of_tcp_are_told(void **state)
{
    static const char request[] =
        "{\"v\":1,\"id\":1,\"request\":\"tcp-connections\"}\n";
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    tcp_engine_switch(&bed.drive->drive.tcp, true);
    native_world_pass(&bed.world, 5000000);
    expect_reply(&bed, request, "\"tcp-connections\":[]}}");
    send_syn(&bed);
    expect_reply(&bed, request,
                 "\"state\":\"SYN-RECEIVED\",\"user\":\"echo\",\"port\":0,"
                 "\"local\":\"10.0.0.1\",\"local-port\":7,"
                 "\"remote\":\"10.0.0.77\",\"remote-port\":40000}]}}");
    expect_reply(&bed,
                 "{\"v\":1,\"id\":1,\"request\":\"tcp-connections\","
                 "\"from\":1}\n",
                 "\"tcp-connections\":[]}}");
    expect_reply(&bed,
                 "{\"v\":1,\"id\":1,\"request\":\"tcp-connections\","
                 "\"from\":99999999}\n",
                 "\"tcp-connections\":[]}}");
    expect_reply(&bed, "{\"v\":1,\"id\":1,\"request\":\"pools\"}\n",
                 "\"tcp-half-open\":{\"used\":1,\"all\":64}");
    expect_reply(&bed, "{\"v\":1,\"id\":1,\"request\":\"status\"}\n",
                 "\"tcp-connections\":0");
    expect_reply(&bed, "{\"v\":1,\"id\":1,\"request\":\"counters\"}\n",
                 "\"half-opened\":1,");
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

/* A misspelt argument must not count as an absent one. */
static void test_no_request_takes_an_argument_that_it_does_not_know(
    void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    for (size_t i = 0; i < MGMT_REQUESTS; i++) {
        const struct mgmt_argument *argument = mgmt_requests[i].arguments;
        char line[200];

        log_format(line, sizeof(line),
                   "{\"v\":1,\"id\":1,\"request\":\"%s\",\"misspelt\":1}\n",
                   mgmt_requests[i].name);
        expect_reply(&bed, line, "takes no argument");
        for (; argument != NULL && argument->key != NULL; argument++) {
            log_format(line, sizeof(line),
                       "{\"v\":1,\"id\":1,\"request\":\"%s\","
                       "\"%s\":null}\n",
                       mgmt_requests[i].name, argument->key);
            expect_reply(&bed, line, "has to be");
        }
    }
    assert_int_equal(host_keep_alive(&bed.host->host), 0);
    assert_int_equal(bed.drive->saves, 0);
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
