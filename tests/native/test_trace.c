/* SPDX-License-Identifier: BSD-2-Clause */
/* Trace events of a drive in use, as their reader gets them. */
#include "bed.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/random.h"
#include "nvmeof/wire/opcode.h"

enum { ALL_GROUPS = BIT(TRACE_GROUPS) - 1 };

struct found {
    const uint8_t *record; /* NULL: none was found. */
    char text[256];
};

static uint16_t type_of(const uint8_t *record)
{
    return get_le16(record + TRACE_AT_TYPE);
}

static uint32_t arg_of(const uint8_t *record, unsigned int i)
{
    return get_le32(record + TRACE_AT_ARGS + 4 * i);
}

static void pass_time(struct bed *bed)
{
    native_world_pass(&bed->world, 20000000);
}

/* Find the first record of a type with that first argument, and its text. */
static struct found find_record(struct bed *bed, enum trace_type type,
                                uint32_t arg0)
{
    const struct machine *machine = &bed->drive->machine;
    struct found found = {0};

    pass_time(bed);
    for (size_t at = 0; at < machine->trace_len; at += TRACE_RECORD_LEN) {
        const uint8_t *record = machine->trace + at;
        uint8_t texts = record[TRACE_AT_TEXTS];

        if (type_of(record) != type || arg_of(record, 0) != arg0) {
            continue;
        }
        found.record = record;
        for (uint8_t i = 0; i < texts; i++) {
            memcpy(found.text + (size_t)i * TRACE_TEXT_LEN,
                   record + (i + 1u) * TRACE_RECORD_LEN + TRACE_AT_ARGS,
                   TRACE_TEXT_LEN);
        }
        break;
    }
    return found;
}

static size_t count_records(struct bed *bed, enum trace_type type)
{
    const struct machine *machine = &bed->drive->machine;
    size_t n = 0;

    pass_time(bed);
    for (size_t at = 0; at < machine->trace_len; at += TRACE_RECORD_LEN) {
        n += type_of(machine->trace + at) == type;
    }
    return n;
}

static void test_a_write_and_a_read_are_traced_with_their_lba(void **state)
{
    struct found write, read;
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    machine_trace(&bed.drive->machine, ALL_GROUPS);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 100, 8, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 100, 8, HOST_DATA_KEYED, 1);
    write = find_record(&bed, TRACE_COMMAND, NVM_WRITE);
    read = find_record(&bed, TRACE_COMMAND, NVM_READ);
    assert_non_null(write.record);
    assert_non_null(read.record);
    assert_int_equal(arg_of(write.record, 1), BED_NSID);
    assert_int_equal(arg_of(write.record, 2), 100);
    assert_int_equal(arg_of(write.record, 4), 8 * BED_BLOCK);
    assert_int_equal(arg_of(write.record, 5), 0);
    /* A read fetches no data; the times of the stages add up. */
    assert_int_equal(arg_of(read.record, 7), 0);
    assert_true(arg_of(write.record, 10) >=
                arg_of(write.record, 6) + arg_of(write.record, 7) +
                    arg_of(write.record, 8) + arg_of(write.record, 9));
    /* The record of the read names the QPN, as the hardware's events do. */
    assert_int_not_equal(get_le32(read.record + TRACE_AT_QPN), 0);
    assert_int_equal(find_record(&bed, TRACE_MEDIA, NVM_READ).record != NULL,
                     true);
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

/* The request's number connects the events of firmware and of hardware. */
static void test_the_media_engine_names_the_request_that_it_works_for(
    void **state)
{
    struct found read, started, ended;
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 100, 8, HOST_DATA_KEYED, false, 1), 0);
    machine_trace(&bed.drive->machine,
                  BIT(TRACE_GROUP_COMMANDS) | BIT(TRACE_GROUP_MEDIA));
    pass_time(&bed);
    bed_expect(&bed, 1, 100, 8, HOST_DATA_KEYED, 1);
    read = find_record(&bed, TRACE_COMMAND, NVM_READ);
    started = find_record(&bed, TRACE_ENGINE_STARTED, MEDIA_CMD_READ);
    ended = find_record(&bed, TRACE_ENGINE_ENDED, MEDIA_CMD_READ);
    assert_non_null(read.record);
    assert_non_null(started.record);
    assert_non_null(ended.record);
    assert_int_equal(started.record[TRACE_AT_SOURCE], TRACE_SOURCE_MEDIA);
    assert_int_equal(get_le32(started.record + TRACE_AT_REQUEST),
                     get_le32(read.record + TRACE_AT_REQUEST));
    assert_int_equal(get_le32(ended.record + TRACE_AT_REQUEST),
                     get_le32(read.record + TRACE_AT_REQUEST));
    assert_int_equal(arg_of(ended.record, 1), 100);
    assert_int_equal(arg_of(ended.record, 3), 8);
    assert_int_equal(arg_of(ended.record, 4), MEDIA_CQE_OK);
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static uint64_t arg64_of(const uint8_t *record, unsigned int i)
{
    return arg_of(record, i) | (uint64_t)arg_of(record, i + 1) << 32;
}

/* Find the last record of a type with the queue pair and request of another. */
static const uint8_t *find_same_request(const struct machine *machine,
                                        enum trace_type type, const uint8_t *as)
{
    const uint8_t *found = NULL;

    for (size_t at = 0; at < machine->trace_len; at += TRACE_RECORD_LEN) {
        const uint8_t *record = machine->trace + at;

        if (type_of(record) == type &&
            memcmp(record + TRACE_AT_QPN, as + TRACE_AT_QPN, 8) == 0) {
            found = record;
        }
    }
    return found;
}

static void test_a_commands_way_through_the_rnic_is_traced(void **state)
{
    const uint8_t *path, *sent;
    struct found read;
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed_write(&bed, 1, 100, 8, HOST_DATA_KEYED, false, 1), 0);
    machine_trace(&bed.drive->machine,
                  BIT(TRACE_GROUP_COMMANDS) | BIT(TRACE_GROUP_PATH));
    pass_time(&bed);
    bed_expect(&bed, 1, 100, 8, HOST_DATA_KEYED, 1);
    read = find_record(&bed, TRACE_COMMAND, NVM_READ);
    assert_non_null(read.record);
    path =
        find_same_request(&bed.drive->machine, TRACE_COMMAND_PATH, read.record);
    sent = find_same_request(&bed.drive->machine, TRACE_RESPONSE_SENT,
                             read.record);
    assert_non_null(path);
    assert_non_null(sent);
    assert_int_equal(sent[TRACE_AT_SOURCE], TRACE_SOURCE_RNIC);
    /* In the order of time: arrival, departure, acknowledgement, end. */
    assert_true(arg64_of(path, 0) != 0);
    assert_true(arg64_of(path, 0) <= get_le64(sent + TRACE_AT_TIME));
    assert_true(get_le64(sent + TRACE_AT_TIME) <= arg64_of(path, 2));
    assert_true(arg64_of(path, 2) <= get_le64(path + TRACE_AT_TIME));
    assert_int_equal(arg_of(sent, 1), 0); /* the port */
    assert_int_equal(arg_of(sent, 2), 0); /* not a retransmission */
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_events_of_the_path_are_recorded_only_on_demand(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    machine_trace(&bed.drive->machine, ALL_GROUPS & ~BIT(TRACE_GROUP_PATH));
    bed_connect(&bed, 0, 1, 64);
    assert_true(count_records(&bed, TRACE_COMMAND) != 0);
    assert_int_equal(count_records(&bed, TRACE_COMMAND_PATH), 0);
    assert_int_equal(count_records(&bed, TRACE_RESPONSE_SENT), 0);
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_events_are_in_order_of_time(void **state)
{
    struct bed bed;
    uint64_t last_ns = 0;

    (void)state;
    bed_init(&bed, 1500);
    machine_trace(&bed.drive->machine, ALL_GROUPS);
    bed_connect(&bed, 0, 2, 64);
    host_disconnect(&bed.host->host);
    assert_true(count_records(&bed, TRACE_QP_STATE) >=
                9); /* Three queue pairs. */
    assert_true(count_records(&bed, TRACE_CM_RECEIVED) >= 6);
    for (size_t at = 0; at < bed.drive->machine.trace_len;
         at += TRACE_RECORD_LEN) {
        const uint8_t *record = bed.drive->machine.trace + at;

        if (type_of(record) != TRACE_TEXT) {
            assert_true(get_le64(record) >= last_ns);
            last_ns = get_le64(record);
        }
    }
    bed_end(&bed);
}

static void test_accepted_and_refused_connects_are_traced(void **state)
{
    struct host_target target;
    struct found accepted, refused;
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    machine_trace(&bed.drive->machine, BIT(TRACE_GROUP_CM));
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 1;
    target.depth = 64;
    strcpy(target.hostnqn, "nqn.2014-08.org.nvmexpress:uuid:"
                           "11111111-2222-3333-4444-555555555555\x1b[31m");
    assert_int_equal(host_connect(&bed.host->host, &target), 0);
    host_disconnect(&bed.host->host);
    strcpy(target.subnqn, "nqn.2026-01.net.example:nothing");
    assert_int_not_equal(host_connect(&bed.host->host, &target), 0);
    host_vanish(&bed.host->host);
    accepted = find_record(&bed, TRACE_CONNECT, 0);
    refused = find_record(&bed, TRACE_CONNECT, 0x182);
    assert_non_null(accepted.record);
    assert_non_null(refused.record);
    assert_string_equal(accepted.text,
                        "nqn.2014-08.org.nvmexpress:uuid:"
                        "11111111-2222-3333-4444-555555555555?[31m");
    assert_string_equal(refused.text, accepted.text);
    assert_int_equal(arg_of(refused.record, 3), 0x10100); /* SUBNQN, IATTR. */
    assert_int_equal(arg_of(refused.record, 6), 0xffff);  /* IPv4-mapped. */
    assert_int_equal(arg_of(refused.record, 7),
                     bed.host->config.port[0].ipv4[0] << 24 |
                         bed.host->config.port[0].ipv4[1] << 16 |
                         bed.host->config.port[0].ipv4[2] << 8 |
                         bed.host->config.port[0].ipv4[3]);
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "refused: there is no such subsystem (status 182); "
                           "host nqn.2014-08.org.nvmexpress:uuid:11111111"));
    assert_null(strchr(machine_console(&bed.drive->machine), '\x1b'));
    bed_end(&bed);
}

static void test_refusals_do_not_flood_the_log(void **state)
{
    struct host_target target;
    struct bed bed;
    unsigned int lines = 0;

    (void)state;
    bed_init(&bed, 1500);
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 1;
    target.depth = 64;
    strcpy(target.subnqn, "nqn.2026-01.net.example:nothing");
    for (unsigned int i = 0; i < 30; i++) {
        assert_int_not_equal(host_connect(&bed.host->host, &target), 0);
        host_vanish(&bed.host->host);
    }
    for (const char *at = machine_console(&bed.drive->machine);
         (at = strstr(at, "no such subsystem")) != NULL; at++) {
        lines++;
    }
    assert_true(lines >= 8 && lines <= 20);
    bed_end(&bed);
}

static void test_no_events_are_recorded_without_a_reader(void **state)
{
    struct bed bed;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    assert_int_equal(bed.drive->machine.trace_len, 0);
    assert_int_equal(bed.drive->drive.mgmt.trace_pi, 0);
    /* Tracing starts during a command: what began before is not reported, what
     * begins now is. */
    machine_trace(&bed.drive->machine, BIT(TRACE_GROUP_COMMANDS));
    pass_time(&bed);
    bed_expect(&bed, 1, 0, 1, HOST_DATA_KEYED, 0);
    assert_int_equal(count_records(&bed, TRACE_COMMAND), 1);
    assert_int_equal(count_records(&bed, TRACE_QP_STATE), 0);
    machine_trace(&bed.drive->machine, 0);
    pass_time(&bed);
    bed_expect(&bed, 1, 0, 1, HOST_DATA_KEYED, 0);
    assert_int_equal(count_records(&bed, TRACE_COMMAND), 1);
    assert_int_equal(count_records(&bed, TRACE_LOST), 1);
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

static void test_a_full_ring_loses_events_and_counts_them(void **state)
{
    struct bed bed;
    const uint8_t *last;
    size_t seen = 0, commands = 0;

    (void)state;
    bed_init(&bed, 1500);
    bed_connect(&bed, 0, 1, 64);
    machine_trace(&bed.drive->machine, BIT(TRACE_GROUP_COMMANDS));
    pass_time(&bed);
    /* The reader takes no more. */
    bed.drive->machine.trace_len = MACHINE_TRACE_BYTES;
    for (; bed.drive->drive.mgmt.dropped < 5; commands++) {
        (void)bed_flush(&bed, 1);
    }
    assert_true(commands > 4096);
    bed.drive->machine.trace_len = 0;
    machine_trace(&bed.drive->machine, 0);
    for (unsigned int i = 0; i < 50; i++) {
        hw_mgmt_room(&bed.drive->machine.mgmt, HW_MGMT_TRACE);
        pass_time(&bed);
        for (size_t at = 0; at < bed.drive->machine.trace_len;
             at += TRACE_RECORD_LEN) {
            last = bed.drive->machine.trace + at;
            seen += type_of(last) == TRACE_COMMAND;
            if (type_of(last) == TRACE_LOST && i > 0) {
                assert_int_equal(arg_of(last, 0), 5);
            }
        }
        bed.drive->machine.trace_len = 0;
    }
    assert_int_equal(seen + 5, commands);
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}

/* ---- The flash. */

static uint32_t request_of(const uint8_t *record)
{
    return get_le32(record + TRACE_AT_REQUEST);
}

/* Nanoseconds of a time for which a die did something for garbage collection:
 * the events of its phases say so. */
static uint64_t busy_with_collection(const struct machine *machine,
                                     uint32_t channel, uint32_t die,
                                     uint64_t begun_ns, uint64_t end_ns)
{
    uint64_t busy_ns = 0;

    for (size_t at = 0; at < machine->trace_len; at += TRACE_RECORD_LEN) {
        const uint8_t *record = machine->trace + at;
        uint64_t from_ns = arg64_of(record, 8);
        uint64_t to_ns = from_ns + arg_of(record, 10);

        if (type_of(record) == TRACE_NAND_PHASE &&
            arg_of(record, 2) == channel && arg_of(record, 3) == die &&
            arg_of(record, 6) == FTL_CAUSE_COLLECT && to_ns > begun_ns &&
            from_ns < end_ns) {
            busy_ns += MIN(to_ns, end_ns) - MAX(from_ns, begun_ns);
        }
    }
    return busy_ns;
}

/* The end of the flash's part of a host's read, or NULL. */
static const uint8_t *find_flash_read(const struct machine *machine,
                                      uint32_t request)
{
    for (size_t at = 0; at < machine->trace_len; at += TRACE_RECORD_LEN) {
        const uint8_t *record = machine->trace + at;

        if (type_of(record) == TRACE_NAND_ENDED &&
            arg_of(record, 0) == NAND_CMD_READ &&
            arg_of(record, 9) == FTL_CAUSE_READ &&
            request_of(record) == request) {
            return record;
        }
    }
    return NULL;
}

/* Read a unit, and find the events of this. @return the time for which the read
 * of the flash waited for garbage collection */
static uint64_t wait_for_collection(struct bed *bed, uint64_t lba)
{
    const struct machine *machine = &bed->drive->machine;
    const uint8_t *command, *flash;
    uint64_t end_ns;

    bed->drive->machine.trace_len = 0;
    assert_int_equal(bed_read(bed, 1, lba, 8, HOST_DATA_KEYED), 0);
    command = find_record(bed, TRACE_COMMAND, NVM_READ).record;
    assert_non_null(command);
    flash = find_flash_read(machine, request_of(command));
    if (flash == NULL) {
        return 0; /* the unit was in the write buffer */
    }
    end_ns = get_le64(flash + TRACE_AT_TIME);
    return busy_with_collection(machine, arg_of(flash, 1), arg_of(flash, 2),
                                end_ns - 1000 * (uint64_t)arg_of(flash, 8),
                                end_ns);
}

/* This flash cannot suspend a program.  So a read may have to wait for one that
 * garbage collection has caused, and the events show this, with the number of
 * the read. */
static void test_a_read_that_waits_for_collection_says_so(void **state)
{
    static const struct bed nand = {.mtu_bytes = 1500,
                                    .has_nand = true,
                                    .nand_profile = "mlc2d",
                                    .nand_is_realtime = true};
    uint64_t wait_ns = 0, random = 3, units;
    struct bed bed;

    (void)state;
    bed_init_like(&bed, &nand);
    bed_connect(&bed, 0, 1, 64);
    units = bed.drive->drive.nand.size_blocks / 8 * 9 / 10;
    machine_trace(&bed.drive->machine, BIT(TRACE_GROUP_COMMANDS) |
                                           BIT(TRACE_GROUP_NAND) |
                                           BIT(TRACE_GROUP_FTL));
    for (unsigned int i = 0; i < 3000 && wait_ns < 100000; i++) {
        uint64_t unit = random_next(&random) % units;

        assert_int_equal(
            bed_write(&bed, 1, unit * 8, 8, HOST_DATA_KEYED, false, i), 0);
        if (i > 1500 && i % 10 == 0) {
            wait_ns =
                wait_for_collection(&bed, random_next(&random) % units * 8);
        }
        bed.drive->machine.trace_len = 0;
    }
    assert_true(wait_ns >= 100000);
    host_disconnect(&bed.host->host);
    bed_end(&bed);
}
