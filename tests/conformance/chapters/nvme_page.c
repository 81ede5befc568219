/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The contents of log pages: errors, health, firmware slots, commands and
 * effects.
 *
 * Spec: NVM Express 1.4 5.14.1.
 */
#include "nvme_lib.h"

enum {
    BEYOND_BLOCKS = 1,
    ERRORS_MORE = 10,
    INVENTED = 20, /* names at one address */
    MORE_BIT = 0x2000,
    DATA_UNIT_BLOCKS = 1000, /* A data unit has 1000 blocks of 512 bytes. */
};

/* ---- Error information. */

struct entry {
    uint64_t count, lba;
    uint32_t nsid;
    uint16_t sqid, cid, status, location;
};

static struct entry entry_at(const uint8_t *at)
{
    return (struct entry){
        .count = get_le64(at + ERROR_COUNT),
        .lba = get_le64(at + ERROR_LBA),
        .nsid = get_le32(at + ERROR_NSID),
        .sqid = get_le16(at + ERROR_SQID),
        .cid = get_le16(at + ERROR_CID),
        .status = get_le16(at + ERROR_STATUS),
        .location = get_le16(at + ERROR_LOCATION),
    };
}

/* Take the newest entry, which must be about the command whose status had the
 * More bit. */
static struct entry take_newest_entry(struct nvme *nvme,
                                      const struct nvme_cqe *cqe, uint16_t sqid)
{
    struct conf *conf = nvme->conf;
    struct entry entry;

    if (!(cqe->status & MORE_BIT)) {
        conf_not_applicable(conf, "the status has no More bit");
    }
    entry = entry_at(nvme_log(nvme, LOG_ERROR, LOG_ERROR_ENTRY_LEN));
    conf_check(conf, entry.count != 0,
               "More is set, but the error log is empty");
    conf_equal(conf, "SQID", entry.sqid, sqid);
    conf_equal(conf, "CID", entry.cid, cqe->cid);
    conf_equal(conf, "status", entry.status >> 1 & NVME_SC_MASK,
               cqe->status & NVME_SC_MASK);
    return entry;
}

/* The location is a byte of the command, or none (FFFFh). */
static void check_location(struct nvme *nvme, const struct entry *entry,
                           unsigned int first, unsigned int end)
{
    conf_check(nvme->conf,
               entry->location == 0xffff ||
                   ((entry->location & 0xff) >= first &&
                    (entry->location & 0xff) < end),
               "parameter error location %04xh", entry->location);
}

static void error_lba(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t lba = nvme->size_blocks + 0x1234;
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_READ, lba, 1);
    struct nvme_cqe cqe;
    struct entry entry;

    sqe.cid = 0x5a5a;
    conf_status(conf, "Read beyond the end",
                nvme_run(nvme, nvme->io, &sqe, nvme->block_bytes, &cqe),
                NVME_SC_LBA_RANGE);
    entry = take_newest_entry(nvme, &cqe, 1);
    conf_equal(conf, "LBA", entry.lba, lba);
    conf_equal(conf, "namespace", entry.nsid, nvme->nsid);
    check_location(nvme, &entry, SQE_CDW10, SQE_CDW13);
    nvme_close(nvme);
}

static void error_nsid(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_WRITE, 7, 1);
    struct nvme_cqe cqe;
    struct entry entry;

    sqe.nsid = nvme->num_ns + 1;
    conf_status(conf, "Write to a namespace that does not exist",
                nvme_run(nvme, nvme->io, &sqe, nvme->block_bytes, &cqe),
                NVME_SC_INVALID_NS);
    entry = take_newest_entry(nvme, &cqe, 1);
    conf_equal(conf, "namespace", entry.nsid, nvme->num_ns + 1);
    check_location(nvme, &entry, SQE_NSID, SQE_CDW2);
    nvme_close(nvme);
}

static void error_admin(struct conf *conf, struct nvme_sqe sqe, uint32_t len,
                        uint16_t expected, unsigned int first, unsigned int end)
{
    struct nvme *nvme = nvme_open_admin(conf);
    struct nvme_cqe cqe;
    struct entry entry;

    conf_status(conf, "the command",
                nvme_run(nvme, nvme->admin, &sqe, len, &cqe), expected);
    entry = take_newest_entry(nvme, &cqe, 0);
    check_location(nvme, &entry, first, end);
    nvme_close(nvme);
}

static void error_opcode(struct conf *conf)
{
    error_admin(conf, (struct nvme_sqe){.opcode = 0x75}, 0,
                NVME_SC_INVALID_OPCODE, SQE_OPCODE, SQE_OPCODE + 1);
}

/* ---- Queries, which leave no trace. */

static uint64_t count_errors(struct nvme *nvme)
{
    return get_le64(nvme_log(nvme, LOG_SMART, LOG_SMART_LEN) +
                    SMART_ERROR_LOG_ENTRIES);
}

static void expect_refused(struct nvme *nvme, const char *what,
                           struct nvme_sqe sqe, uint32_t len)
{
    struct nvme_cqe cqe;

    conf_check(nvme->conf,
               nvme_run(nvme, nvme->admin, &sqe, len, &cqe) != NVME_SC_SUCCESS,
               "%s was not refused", what);
    conf_check(nvme->conf, !(cqe.status & MORE_BIT), "%s has the More bit",
               what);
}

/*
 * Monitoring programs ask for what a drive may not have, at each poll.  smartd
 * raises an alarm when SMART's count of errors grows.
 */
static void error_queries(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint32_t inactive = nvme_inactive_nsid(nvme);
    uint64_t errors = count_errors(nvme);
    const struct {
        const char *what;
        struct nvme_sqe sqe;
        uint32_t len;
    } rows[] = {
        {"a page of an inactive namespace",
         {.opcode = ADMIN_GET_LOG_PAGE, .nsid = inactive, .cdw10 = LOG_SMART},
         4},
        {"a page from beyond its end",
         {.opcode = ADMIN_GET_LOG_PAGE, .cdw10 = LOG_SMART, .cdw13 = 1},
         4},
        {"a page that does not exist",
         {.opcode = ADMIN_GET_LOG_PAGE, .cdw10 = 0x1f},
         4},
        {"a page longer than its SGL",
         {.opcode = ADMIN_GET_LOG_PAGE, .cdw10 = LOG_SMART | 1u << 16},
         4},
        {"Identify with NSID 0",
         {.opcode = ADMIN_IDENTIFY, .cdw10 = CNS_NS_DESCRIPTORS},
         NVME_IDENTIFY_LEN},
        {"Identify with a reserved CNS",
         {.opcode = ADMIN_IDENTIFY, .cdw10 = 0xf0},
         NVME_IDENTIFY_LEN},
        {"Get Features with a reserved feature",
         {.opcode = ADMIN_GET_FEATURES, .cdw10 = 0x77},
         0},
        {"Get Features with a reserved Select",
         {.opcode = ADMIN_GET_FEATURES, .cdw10 = 7u << 8 | 2},
         0},
    };

    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        expect_refused(nvme, rows[i].what, rows[i].sqe, rows[i].len);
    }
    conf_equal(conf, "errors that SMART counts", count_errors(nvme), errors);
    nvme_close(nvme);
}

/* Read a page with the NSID of the device that smartctl was given. */
static void read_as_smartctl(struct nvme *nvme, uint8_t lid, uint32_t len,
                             uint32_t nsid)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_LOG_PAGE,
                           .nsid = nsid,
                           .cdw10 = lid | (len / 4 - 1) << 16};

    conf_status(nvme->conf, "Get Log Page with the NSID of a device",
                nvme_run(nvme, nvme->admin, &sqe, len, NULL), NVME_SC_SUCCESS);
}

/* smartctl -x /dev/nvme0n1, and smartctl -t short /dev/nvme0n1. */
static void error_smartctl(struct conf *conf)
{
    struct nvme *nvme = nvme_open_page(conf, LOG_SELF_TEST);
    struct nvme_sqe start = {.opcode = ADMIN_DEVICE_SELF_TEST,
                             .nsid = nvme->nsid,
                             .cdw10 = 1 /* short */};
    uint8_t smart[LOG_SMART_LEN];
    uint64_t errors;

    memcpy(smart, nvme_log(nvme, LOG_SMART, LOG_SMART_LEN), sizeof(smart));
    errors = get_le64(smart + SMART_ERROR_LOG_ENTRIES);
    read_as_smartctl(nvme, LOG_SMART, LOG_SMART_LEN, nvme->nsid);
    conf_same(conf, "the power cycles of the whole drive",
              nvme->admin->mem + SMART_POWER_CYCLES, smart + SMART_POWER_CYCLES,
              16);
    conf_equal(conf, "errors of the whole drive",
               get_le64(nvme->admin->mem + SMART_ERROR_LOG_ENTRIES), errors);
    read_as_smartctl(nvme, LOG_SELF_TEST, LOG_SELF_TEST_LEN, nvme->nsid);
    (void)nvme_run(nvme, nvme->admin, &start, 0, NULL);
    read_as_smartctl(nvme, LOG_SELF_TEST, LOG_SELF_TEST_LEN, nvme->nsid);
    conf_equal(conf, "the test in progress, or its result",
               (nvme->admin->mem[0] & 0xf) == 1 ||
                   nvme->admin->mem[SELF_TEST_RESULTS] >> 4 == 1,
               true);
    conf_equal(conf, "errors that SMART counts", count_errors(nvme), errors);
    start.cdw10 = 0xf; /* abort */
    (void)nvme_run(nvme, nvme->admin, &start, 0, NULL);
    nvme_close(nvme);
}

/* ---- Entries of commands that were refused. */

/* A Set Features with a reserved feature identifier. */
static const struct nvme_sqe set_reserved = {.opcode = ADMIN_SET_FEATURES,
                                             .cdw10 = 0x77};

static void error_fid(struct conf *conf)
{
    error_admin(conf, set_reserved, 0, NVME_SC_INVALID_FIELD, SQE_CDW10,
                SQE_CDW11);
}

/* Dwords 10 and 11 hold an LBA only in commands that have one. */
static void error_no_lba(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = {
        .opcode = 0x7e, .nsid = nvme->nsid, .cdw10 = 0x1234, .cdw11 = 5};
    struct nvme_cqe cqe;
    struct entry entry;

    conf_status(conf, "a reserved opcode",
                nvme_run(nvme, nvme->io, &sqe, 0, &cqe),
                NVME_SC_INVALID_OPCODE);
    entry = take_newest_entry(nvme, &cqe, 1);
    conf_equal(conf, "LBA", entry.lba, 0);
    nvme_close(nvme);
}

static void error_sgl(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    struct nvme_sqe sqe = nvme_rw_sqe(nvme, NVM_READ, 0, 1);
    struct nvme_cqe cqe;
    struct entry entry;

    conf_status(conf, "a Read into 16 bytes",
                nvme_run(nvme, nvme->io, &sqe, 16, &cqe),
                NVME_SC_SGL_INVALID_LENGTH);
    entry = take_newest_entry(nvme, &cqe, 1);
    check_location(nvme, &entry, SQE_SGL1, SQE_CDW10);
    nvme_close(nvme);
}

static void refuse_some(struct nvme *nvme, unsigned int count)
{
    for (unsigned int i = 0; i < count; i++) {
        conf_status(nvme->conf, "Set Features of a reserved feature",
                    nvme_run(nvme, nvme->admin, &set_reserved, 0, NULL),
                    NVME_SC_INVALID_FIELD);
    }
}

/* Newest entries whose counts have no gap.  Of older errors a target may keep
 * those of other hosts, so that one host cannot push them out. */
enum { IN_A_ROW = 8 };

/* The newest entry comes first, each count is less than the one before, and
 * those of the newest errors have no gap; zeroes follow. */
static void check_counts(struct nvme *nvme, unsigned int at_least)
{
    uint32_t len = nvme_error_log_len(nvme);
    const uint8_t *log = nvme_log(nvme, LOG_ERROR, len);
    uint64_t before = 0;
    unsigned int used = 0;

    for (uint32_t at = 0; at < len; at += LOG_ERROR_ENTRY_LEN) {
        uint64_t count = get_le64(log + at + ERROR_COUNT);

        conf_check(nvme->conf,
                   at == 0 || count == 0 || count == before - 1 ||
                       (count < before && used >= MIN(at_least, IN_A_ROW)),
                   "error count %llu follows %llu", (unsigned long long)count,
                   (unsigned long long)before);
        if (count == 0) {
            break;
        }
        used++;
        before = count;
    }
    conf_check(nvme->conf, used >= at_least,
               "the log has %u entries; %u errors were made", used, at_least);
}

static void error_order(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    unsigned int room = nvme->ctrl[ID_CTRL_ELPE] + 1u;

    refuse_some(nvme, 3);
    check_counts(nvme, MIN(3, room));
    nvme_close(nvme);
}

static void error_overflow(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    unsigned int room = nvme->ctrl[ID_CTRL_ELPE] + 1u;

    refuse_some(nvme, room + ERRORS_MORE);
    check_counts(nvme, room);
    nvme_close(nvme);
}

static uint64_t read_smart(struct nvme *nvme, unsigned int field)
{
    return get_le64(nvme_log(nvme, LOG_SMART, LOG_SMART_LEN) + field);
}

/* Read beyond the end of the namespace, which is an error with this LBA. */
static void read_beyond(struct conf *conf, struct rc *io, uint64_t lba)
{
    const struct nvme_sqe read = nvmf_io(conf, NVM_READ, lba, 1);
    struct sgl sgl = rc_keyed(io, 0, CONF_BLOCK);

    conf_status(conf, "Read beyond the end",
                rc_command(io, &read, &sgl, NULL, 0, NULL) & NVME_SC_MASK,
                NVME_SC_LBA_RANGE);
}

/* Whoever invents names has no more of the error log than one host: names that
 * are not on the list of hosts count for their address. */
static void error_invented(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t lba = nvme->size_blocks;
    uint32_t len = nvme_error_log_len(nvme);
    uint32_t found = 0;
    uint32_t own_errors = len / LOG_ERROR_ENTRY_LEN / 8;

    if (!conf_target(conf)->is_ours) {
        conf_not_applicable(conf, "shares are specific to this drive");
    }
    for (uint32_t i = 0; i < own_errors; i++) {
        read_beyond(conf, nvme->io, lba + i);
    }
    for (uint8_t name = 0; name < INVENTED; name++) {
        struct nvmf_pair other = nvmf_open_pair(
            conf, &(struct rc_config){.peer = 1, .host = 10 + name});

        for (uint32_t i = 0; i < own_errors; i++) {
            read_beyond(conf, other.io, lba + own_errors + i);
        }
        nvmf_close_pair(&other);
    }
    (void)nvme_log(nvme, LOG_ERROR, len);
    for (uint32_t at = 0; at < len; at += LOG_ERROR_ENTRY_LEN) {
        uint64_t own = get_le64(nvme->admin->mem + at + ERROR_LBA) - lba;

        found += get_le64(nvme->admin->mem + at + ERROR_COUNT) != 0 &&
                 own < own_errors;
    }
    conf_equal(conf, "the host's own errors in the log", found, own_errors);
    nvme_close(nvme);
}

/* SMART counts the entries of the error log. */
static void error_smart(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint64_t before = read_smart(nvme, SMART_ERROR_LOG_ENTRIES);

    refuse_some(nvme, 2);
    conf_equal(conf, "number of error log entries",
               read_smart(nvme, SMART_ERROR_LOG_ENTRIES), before + 2);
    conf_equal(conf, "the newest entry's count",
               entry_at(nvme_log(nvme, LOG_ERROR, LOG_ERROR_ENTRY_LEN)).count,
               before + 2);
    nvme_close(nvme);
}

/* A command that succeeds makes no entry. */
static void error_none(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t before = read_smart(nvme, SMART_ERROR_LOG_ENTRIES);

    nvme_expect_works(nvme);
    nvme_expect_works(nvme);
    conf_equal(conf, "number of error log entries",
               read_smart(nvme, SMART_ERROR_LOG_ENTRIES), before);
    nvme_close(nvme);
}

/* ---- SMART / health. */

static void smart_sane(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    const uint8_t *log = nvme_log(nvme, LOG_SMART, LOG_SMART_LEN);
    uint32_t kelvin = get_le16(log + SMART_TEMPERATURE);

    conf_check(conf, kelvin > 253 && kelvin < 373, "%u K", kelvin);
    conf_check(conf, log[SMART_AVAILABLE_SPARE] <= 100,
               "available spare is %u %%", log[SMART_AVAILABLE_SPARE]);
    conf_check(conf, log[SMART_SPARE_THRESHOLD] <= 100,
               "available spare threshold is %u %%",
               log[SMART_SPARE_THRESHOLD]);
    conf_equal(conf, "reserved bits of critical warning",
               log[SMART_CRITICAL_WARNING] & 0xc0, 0);
    conf_equal(conf, "critical warning, spare below its threshold",
               log[SMART_CRITICAL_WARNING] & SMART_WARN_SPARE,
               log[SMART_AVAILABLE_SPARE] < log[SMART_SPARE_THRESHOLD]);
    conf_equal(conf, "reserved byte 511", log[511], 0);
    nvme_close(nvme);
}

static void smart_commands(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t reads = read_smart(nvme, SMART_HOST_READS);
    uint64_t writes = read_smart(nvme, SMART_HOST_WRITES);

    nvme_write(nvme, 0, 1, 1);
    nvme_verify(nvme, 0, 1, 1);
    nvme_verify(nvme, 0, 1, 1);
    conf_equal(conf, "host read commands", read_smart(nvme, SMART_HOST_READS),
               reads + 2);
    conf_equal(conf, "host write commands", read_smart(nvme, SMART_HOST_WRITES),
               writes + 1);
    nvme_close(nvme);
}

/* Data units are thousands of 512 bytes, rounded up. */
static void smart_units(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t before = read_smart(nvme, SMART_DATA_UNITS_WRITTEN);
    uint32_t step = nvme->max_blocks;
    uint32_t each = step * (nvme->block_bytes / CONF_BLOCK);
    uint32_t wanted = 2 * DATA_UNIT_BLOCKS, written = 0;
    uint64_t now;

    while (written < wanted) {
        nvme_write(nvme, 0, step, 1);
        written += each;
    }
    now = read_smart(nvme, SMART_DATA_UNITS_WRITTEN);
    conf_check(conf,
               now - before >= written / DATA_UNIT_BLOCKS &&
                   now - before <= written / DATA_UNIT_BLOCKS + 1,
               "%u blocks of 512 bytes are %llu data units", written,
               (unsigned long long)(now - before));
    nvme_close(nvme);
}

/* Refused commands are not counted. */
static void smart_refused(struct conf *conf)
{
    struct nvme *nvme = nvme_open(conf);
    uint64_t units = read_smart(nvme, SMART_DATA_UNITS_READ);

    conf_status(conf, "Read beyond the end",
                nvme_rw(nvme, NVM_READ, nvme->size_blocks, BEYOND_BLOCKS),
                NVME_SC_LBA_RANGE);
    conf_equal(conf, "data units read", read_smart(nvme, SMART_DATA_UNITS_READ),
               units);
    conf_equal(conf, "media errors", read_smart(nvme, SMART_MEDIA_ERRORS), 0);
    nvme_close(nvme);
}

/* ---- Firmware slots. */

static void log_firmware_slots(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    unsigned int count = nvme->ctrl[ID_CTRL_FRMW] >> 1 & 7;
    const uint8_t *log =
        nvme_log(nvme, LOG_FIRMWARE_SLOT, LOG_FIRMWARE_SLOT_LEN);
    unsigned int active = log[FIRMWARE_SLOT_AFI] & 7;
    unsigned int next = log[FIRMWARE_SLOT_AFI] >> 4 & 7;

    conf_check(conf, active >= 1 && active <= count,
               "the active slot is %u of %u", active, count);
    conf_check(conf, next <= count, "the next slot is %u of %u", next, count);
    conf_equal(conf, "reserved bits of AFI", log[FIRMWARE_SLOT_AFI] & 0x88, 0);
    conf_same(conf, "the revision in the active slot, compared with FR",
              log + FIRMWARE_SLOT_FRS1 + 8 * (size_t)(active - 1),
              nvme->ctrl + ID_CTRL_FR, 8);
    for (unsigned int slot = count; slot < 7; slot++) {
        conf_equal(conf, "the revision in a slot that does not exist",
                   get_le64(log + FIRMWARE_SLOT_FRS1 + 8 * (size_t)slot), 0);
    }
    nvme_close(nvme);
}

/* ---- Commands supported and effects. */

static void effects_required(struct conf *conf)
{
    static const uint8_t admin[] = {
        ADMIN_GET_LOG_PAGE, ADMIN_IDENTIFY,     ADMIN_ABORT,
        ADMIN_SET_FEATURES, ADMIN_GET_FEATURES, ADMIN_ASYNC_EVENT_REQUEST,
        ADMIN_KEEP_ALIVE};
    static const uint8_t io[] = {NVM_FLUSH, NVM_WRITE, NVM_READ};
    struct nvme *nvme = nvme_open_page(conf, LOG_COMMANDS_EFFECTS);
    const uint8_t *log = nvme_log(nvme, LOG_COMMANDS_EFFECTS, 4096);

    for (unsigned int i = 0; i < ARRAY_LEN(admin); i++) {
        conf_check(conf, log[4 * admin[i]] & COMMANDS_EFFECTS_CSUPP,
                   "admin command %02xh: CSUPP is 0", admin[i]);
    }
    for (unsigned int i = 0; i < ARRAY_LEN(io); i++) {
        conf_check(
            conf, log[COMMANDS_EFFECTS_IO + 4 * io[i]] & COMMANDS_EFFECTS_CSUPP,
            "I/O command %02xh: CSUPP is 0", io[i]);
    }
    conf_check(conf,
               log[COMMANDS_EFFECTS_IO + 4 * NVM_WRITE] & COMMANDS_EFFECTS_LBCC,
               "Write changes data, but its LBCC is 0");
    nvme_close(nvme);
}

/* An opcode is supported if, and only if, the page lists it. The commands name
 * a wrong namespace, so that none of them has an effect. */
static void effects_io(struct conf *conf)
{
    struct nvme *nvme;
    uint8_t *log;

    nvme_close(nvme_open_page(conf, LOG_COMMANDS_EFFECTS));
    nvme = nvme_open(conf);
    log = nvme_whole_page(nvme, LOG_COMMANDS_EFFECTS);
    for (unsigned int opcode = 0; opcode < 0x100; opcode++) {
        struct nvme_sqe sqe = {.opcode = (uint8_t)opcode,
                               .nsid = NVME_NSID_ALL - 1};
        bool is_there = log[COMMANDS_EFFECTS_IO + (size_t)4 * opcode] &
                        COMMANDS_EFFECTS_CSUPP;
        uint16_t status;

        if (opcode == NVME_FABRICS) {
            continue;
        }
        status = nvme_run(nvme, nvme->io, &sqe, 0, NULL);
        if (!is_there && status == NVME_SC_INVALID_NS &&
            !conf_target(conf)->is_ours) {
            /* 4.6.1 defines no order in which opcode and namespace
             * are checked. */
            continue;
        }
        conf_check(conf, is_there == (status != NVME_SC_INVALID_OPCODE),
                   "I/O command %02xh: CSUPP is %d, status %03xh", opcode,
                   is_there, status);
    }
    nvme_close(nvme);
}

static void effects_admin(struct conf *conf)
{
    struct nvme *nvme = nvme_open_page(conf, LOG_COMMANDS_EFFECTS);
    uint8_t *log = nvme_whole_page(nvme, LOG_COMMANDS_EFFECTS);

    for (unsigned int opcode = 0; opcode < 0x100; opcode++) {
        struct nvme_sqe sqe = {.opcode = (uint8_t)opcode};

        if (log[4 * opcode] & COMMANDS_EFFECTS_CSUPP ||
            opcode == NVME_FABRICS) {
            continue; /* Some of these commands would have an effect. */
        }
        conf_status(conf, "an unsupported admin command",
                    nvme_run(nvme, nvme->admin, &sqe, 0, NULL),
                    NVME_SC_INVALID_OPCODE);
    }
    nvme_close(nvme);
}

/* The page and ONCS agree. */
static void effects_oncs(struct conf *conf)
{
    static const struct {
        uint8_t opcode;
        uint16_t bit;
    } commands[] = {
        {NVM_COMPARE, 0x01},
        {NVM_WRITE_UNCORRECTABLE, 0x02},
        {NVM_DATASET_MANAGEMENT, ONCS_DATASET_MANAGEMENT},
        {NVM_WRITE_ZEROES, ONCS_WRITE_ZEROES},
        {0x0d, 0x20},
        {0x0e, 0x20},
        {0x11, 0x20},
        {0x15, 0x20},
        {NVM_VERIFY, 0x80},
        {NVM_COPY, ONCS_COPY},
    };
    struct nvme *nvme = nvme_open_page(conf, LOG_COMMANDS_EFFECTS);
    const uint8_t *io =
        nvme_log(nvme, LOG_COMMANDS_EFFECTS, 4096) + COMMANDS_EFFECTS_IO;
    uint16_t oncs = get_le16(nvme->ctrl + ID_CTRL_ONCS);

    for (unsigned int i = 0; i < ARRAY_LEN(commands); i++) {
        conf_check(conf,
                   (io[4 * commands[i].opcode] & COMMANDS_EFFECTS_CSUPP) ==
                       !!(oncs & commands[i].bit),
                   "I/O command %02xh: CSUPP is %d, ONCS is %04x",
                   commands[i].opcode, io[4 * commands[i].opcode] & 1, oncs);
    }
    nvme_close(nvme);
}

static void changed_none(struct conf *conf)
{
    struct nvme *nvme = nvme_open_page(conf, LOG_CHANGED_NS_LIST);

    conf_same(conf, "the changed namespace list of a new controller",
              nvme_whole_page(nvme, LOG_CHANGED_NS_LIST),
              conf_alloc(conf, 4096), 4096);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST("log." id, "NVMe 1.4 " clause, purpose, fn)

static const struct conf_test tests[] = {
    TEST("error-lba", "5.14.1.1",
         "the entry about a refused Read has correct fields", error_lba),
    TEST("error-nsid", "5.14.1.1",
         "the entry about a wrong NSID has the NSID's location", error_nsid),
    TEST("error-opcode", "5.14.1.1",
         "the entry about a wrong opcode has the opcode's location",
         error_opcode),
    TEST("error-fid", "5.14.1.1",
         "the entry about a wrong dword 10 has its location", error_fid),
    TEST("error-no-lba", "5.14.1.1",
         "the entry about a command without an LBA has no LBA", error_no_lba),
    TEST("error-data", "5.14.1.1",
         "the entry about a wrong descriptor has its location", error_sgl),
    TEST("error-order", "5.14.1.1",
         "the newest entry comes first, and counts descend", error_order),
    TEST("error-invented", "5.14.1.1",
         "hosts with invented names push no errors of others out of the log",
         error_invented),
    TEST("error-overflow", "5.14.1.1", "new entries replace the oldest ones",
         error_overflow),
    TEST("error-smart", "5.14.1.1, 5.14.1.2",
         "SMART counts the entries of the error log", error_smart),
    TEST("error-queries", "5.14.1.1, 5.14.1.2",
         "a query that is refused leaves no trace", error_queries),
    TEST("smartctl", "5.14.1.2, 5.14.1.6",
         "smartctl can ask for pages with the NSID of its device",
         error_smartctl),
    TEST("error-none", "5.14.1.1", "a command that succeeds makes no entry",
         error_none),
    TEST("smart-sane", "5.14.1.2", "the values of SMART are possible",
         smart_sane),
    TEST("smart-commands", "5.14.1.2", "SMART counts Reads and Writes",
         smart_commands),
    TEST("smart-units", "5.14.1.2",
         "SMART counts data units of 1000 times 512 bytes", smart_units),
    TEST("smart-refused", "5.14.1.2", "SMART does not count refused commands",
         smart_refused),
    TEST("firmware-slots", "5.14.1.3",
         "the active slot holds the revision in FR", log_firmware_slots),
    TEST("changed-none", "5.14.1.4",
         "a new controller's changed namespace list is empty", changed_none),
    TEST("effects-required", "5.14.1.5", "mandatory commands are supported",
         effects_required),
    TEST("effects-io", "5.14.1.5",
         "I/O opcodes exist if, and only if, the page lists them", effects_io),
    TEST("effects-admin", "5.14.1.5",
         "admin opcodes that the page does not list are refused",
         effects_admin),
    TEST("effects-oncs", "5.14.1.5, 5.15.2.2", "the page agrees with ONCS",
         effects_oncs),
};
CONF_TESTS(conf_tests_nvme_page, "nvme", tests);
