/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asymmetric Namespace Access: what Identify and log page 0Ch say, what
 * commands get in each state, and events.  The console sets the states; the
 * tests connect through port 0.
 *
 * Spec: NVM Express 1.4 5.2, 5.14.1.12, 5.15.2, 5.20, 8.20.
 */
#include <stdio.h>
#include <string.h>

#include "nvme_lib.h"
#include "nvmeof/wire/ana.h"

enum {
    LOG_RGO = 0x100, /* In dword 10 of Get Log Page. */
    ANA_NOTICES = 0x800,
    AER_CID = 0x2000,
    EVENT_US = 1000000,
    QUIET_US = 100000,
    LOG_LEN = 2048,
    FEATURE_PROTECTION = 0x84,
};

#define ANA_EVENT                                                              \
    (EVENT_TYPE_NOTICE | EVENT_NOTICE_ANA_CHANGED << 8 | LOG_ANA << 16)

/* ---- States. */

static void set_ana(struct conf *conf, const char *arguments)
{
    char line[64];
    const char *said;

    snprintf(line, sizeof(line), "ana %s", arguments);
    said = conf_console(conf, line);
    conf_check(conf, strstr(said, "ok") != NULL, "%s: the console says: %s",
               line, said);
}

static struct nvme *open_ana(struct nvme *nvme)
{
    if (!(nvme->ctrl[ID_CTRL_CMIC] & CMIC_ANA)) {
        conf_not_applicable(nvme->conf, "CMIC bit 3 is 0");
    }
    return nvme;
}

/* Define a test that begins and ends with every group optimized. */
#define WITH_STATES(name)                                                      \
    static void name##_of(struct conf *conf, struct nvme *nvme);               \
    static void name(struct conf *conf)                                        \
    {                                                                          \
        struct nvme *nvme = open_ana(nvme_open(conf));                         \
                                                                               \
        set_ana(conf, "all all optimized");                                    \
        name##_of(conf, nvme);                                                 \
        set_ana(conf, "all all optimized");                                    \
        nvme_close(nvme);                                                      \
    }                                                                          \
    static void name##_of(struct conf *conf, struct nvme *nvme)

/* ---- The log page. */

static const uint8_t *read_log(struct nvme *nvme, uint32_t flags)
{
    memset(nvme->admin->mem, 0xff, LOG_LEN);
    conf_status(nvme->conf, "Get Log Page 0Ch",
                nvme_get_log(nvme, LOG_ANA | flags, 0, LOG_LEN),
                NVME_SC_SUCCESS);
    return nvme->admin->mem;
}

/* Find the descriptor of the group that has our namespace; with `is_short`, the
 * first one. */
static const uint8_t *find_group(struct nvme *nvme, const uint8_t *log,
                                 bool is_short)
{
    const uint8_t *group = log + ANA_LOG_HEADER_LEN;

    for (unsigned int i = 0; i < get_le16(log + ANA_LOG_GROUPS); i++) {
        uint32_t count = get_le32(group + ANA_GROUP_NSIDS);

        for (unsigned int n = 0; n < count; n++) {
            if (get_le32(group + ANA_GROUP_LEN + 4 * n) == nvme->nsid) {
                return group;
            }
        }
        if (is_short) {
            return group;
        }
        group += ANA_GROUP_LEN + 4 * count;
    }
    conf_fail(nvme->conf, "no group has namespace %u", nvme->nsid);
}

static unsigned int state_of_ours(struct nvme *nvme)
{
    return find_group(nvme, read_log(nvme, 0), false)[ANA_GROUP_STATE];
}

/* ---- What Identify and the log page say. */

static void identify_ana(struct conf *conf)
{
    struct nvme *nvme = open_ana(nvme_open_admin(conf));
    const uint8_t *id = nvme->ctrl;
    uint32_t most = get_le32(id + ID_CTRL_ANAGRPMAX);
    uint32_t mnan = get_le32(id + ID_CTRL_MNAN);
    uint32_t group = get_le32(nvme->ns + ID_NS_ANAGRPID);

    conf_check(conf, id[ID_CTRL_ANATT] != 0, "ANATT is 0");
    conf_check(conf, id[ID_CTRL_ANACAP] & 1, "ANACAP bit 0 is 0");
    conf_equal(conf, "ANACAP bit 5", id[ID_CTRL_ANACAP] & 0x20, 0);
    conf_check(conf, most != 0, "ANAGRPMAX is 0");
    conf_check(conf,
               get_le32(id + ID_CTRL_NANAGRPID) != 0 &&
                   get_le32(id + ID_CTRL_NANAGRPID) <= most,
               "NANAGRPID is 0 or above ANAGRPMAX");
    conf_check(conf, mnan != 0 && mnan <= nvme->num_ns,
               "MNAN is 0 or above NN");
    conf_check(conf, get_le32(id + ID_CTRL_OAES) & OAES_ANA_CHANGE,
               "OAES bit 11 is 0");
    conf_check(conf, group != 0 && group <= most, "ANAGRPID is %u", group);
    nvme_close(nvme);
}

static void log_ana(struct conf *conf)
{
    struct nvme *nvme = open_ana(nvme_open_admin(conf));
    const uint8_t *log = read_log(nvme, 0);
    const uint8_t *group = log + ANA_LOG_HEADER_LEN;
    uint32_t last = 0;

    conf_equal(conf, "the group of the namespace",
               get_le32(find_group(nvme, log, false) + ANA_GROUP_ID),
               get_le32(nvme->ns + ID_NS_ANAGRPID));
    for (unsigned int i = 0; i < get_le16(log + ANA_LOG_GROUPS); i++) {
        uint32_t count = get_le32(group + ANA_GROUP_NSIDS), nsid = 0;

        conf_check(conf, get_le32(group + ANA_GROUP_ID) > last,
                   "group %u is not above %u", get_le32(group + ANA_GROUP_ID),
                   last);
        last = get_le32(group + ANA_GROUP_ID);
        conf_check(conf, count != 0, "group %u has no namespace", last);
        for (unsigned int n = 0; n < count; n++) {
            const uint8_t *at = group + ANA_GROUP_LEN + 4 * n;

            conf_check(conf, get_le32(at) > nsid, "NSID %u is not above %u",
                       get_le32(at), nsid);
            nsid = get_le32(at);
        }
        group += ANA_GROUP_LEN + 4 * count;
    }
    nvme_close(nvme);
}

static void log_groups_only(struct conf *conf)
{
    struct nvme *nvme = open_ana(nvme_open_admin(conf));
    uint32_t groups = get_le16(read_log(nvme, 0) + ANA_LOG_GROUPS);
    const uint8_t *log = read_log(nvme, LOG_RGO);

    conf_equal(conf, "groups with RGO", get_le16(log + ANA_LOG_GROUPS), groups);
    for (unsigned int i = 0; i < groups; i++) {
        const uint8_t *group = log + ANA_LOG_HEADER_LEN + i * ANA_GROUP_LEN;

        conf_check(conf, get_le32(group + ANA_GROUP_ID) != 0,
                   "descriptor %u has no group", i);
        conf_equal(conf, "NSIDs with RGO", get_le32(group + ANA_GROUP_NSIDS),
                   0);
    }
    nvme_close(nvme);
}

/* ---- Commands. */

static void expect_io(struct nvme *nvme, uint16_t expected)
{
    static const uint8_t opcodes[] = {NVM_READ,    NVM_WRITE,
                                      NVM_COMPARE, NVM_WRITE_ZEROES,
                                      NVM_VERIFY,  NVM_DATASET_MANAGEMENT,
                                      NVM_FLUSH};

    for (size_t i = 0; i < sizeof(opcodes); i++) {
        struct nvme_sqe sqe = nvme_right(nvme, opcodes[i]);
        uint32_t len = nvme_data_len(nvme, opcodes[i]);

        if (opcodes[i] == NVM_FLUSH) {
            sqe = (struct nvme_sqe){.opcode = NVM_FLUSH, .nsid = nvme->nsid};
            len = 0;
        }
        if (opcodes[i] == NVM_COMPARE) {
            len = nvme->block_bytes;
        }
        if (len != 0) { /* What Compare compares with, and valid ranges. */
            memset(nvme->io->mem, 0, len);
        }
        conf_note(nvme->conf, "opcode %02Xh", opcodes[i]);
        conf_status(nvme->conf, "an I/O command",
                    nvme_run(nvme, nvme->io, &sqe, len, NULL), expected);
    }
}

static void zero_block(struct nvme *nvme)
{
    struct nvme_sqe sqe = nvme_right(nvme, NVM_WRITE_ZEROES);

    conf_status(nvme->conf, "Write Zeroes",
                nvme_run(nvme, nvme->io, &sqe, 0, NULL), NVME_SC_SUCCESS);
}

WITH_STATES(io_inaccessible)
{
    zero_block(nvme);
    set_ana(conf, "all all inaccessible");
    conf_equal(conf, "the state in the log", state_of_ours(nvme),
               ANA_INACCESSIBLE);
    expect_io(nvme, NVME_SC_ANA_INACCESSIBLE);
    set_ana(conf, "all all optimized");
    conf_equal(conf, "the state in the log", state_of_ours(nvme),
               ANA_OPTIMIZED);
    expect_io(nvme, NVME_SC_SUCCESS);
}

WITH_STATES(io_non_optimized)
{
    zero_block(nvme);
    set_ana(conf, "all all non-optimized");
    conf_equal(conf, "the state in the log", state_of_ours(nvme),
               ANA_NON_OPTIMIZED);
    expect_io(nvme, NVME_SC_SUCCESS);
}

WITH_STATES(io_change)
{
    zero_block(nvme);
    set_ana(conf, "all all change");
    conf_equal(conf, "the state in the log", state_of_ours(nvme), ANA_CHANGE);
    expect_io(nvme, NVME_SC_ANA_TRANSITION);
}

/* The host is to try another path. */
WITH_STATES(may_be_retried)
{
    struct nvme_sqe sqe = nvme_right(nvme, NVM_READ);
    struct nvme_cqe cqe;

    set_ana(conf, "all all inaccessible");
    nvme_run(nvme, nvme->io, &sqe, nvme_data_len(nvme, NVM_READ), &cqe);
    conf_equal(conf, "Do Not Retry", cqe.status & NVME_STATUS_DNR, 0);
}

WITH_STATES(other_port)
{
    zero_block(nvme);
    set_ana(conf, "all 1 inaccessible");
    expect_io(nvme, NVME_SC_SUCCESS);
}

WITH_STATES(other_group)
{
    char arguments[32];

    if (get_le32(nvme->ctrl + ID_CTRL_NANAGRPID) < 2) {
        conf_not_applicable(conf, "NANAGRPID is 1");
    }
    zero_block(nvme);
    snprintf(arguments, sizeof(arguments), "%u all inaccessible",
             get_le32(nvme->ns + ID_NS_ANAGRPID) == 2 ? 1u : 2u);
    set_ana(conf, arguments);
    expect_io(nvme, NVME_SC_SUCCESS);
}

WITH_STATES(flush_all)
{
    struct nvme_sqe flush = {.opcode = NVM_FLUSH, .nsid = NVME_NSID_ALL};

    set_ana(conf, "all all inaccessible");
    conf_status(conf, "Flush of all namespaces",
                nvme_run(nvme, nvme->io, &flush, 0, NULL),
                NVME_SC_ANA_INACCESSIBLE);
}

WITH_STATES(transition)
{
    set_ana(conf, "all all inaccessible 3000");
    conf_equal(conf, "the state in the log", state_of_ours(nvme), ANA_CHANGE);
    conf_pass(conf, 3500000);
    conf_equal(conf, "the state in the log", state_of_ours(nvme),
               ANA_INACCESSIBLE);
}

/* Admin commands that do not need the namespace's data work. */
WITH_STATES(admin_works)
{
    uint32_t value;

    set_ana(conf, "all all inaccessible");
    conf_status(conf, "Identify Controller",
                nvme_identify(nvme, CNS_CONTROLLER, 0), NVME_SC_SUCCESS);
    nvme_log(nvme, LOG_SMART, LOG_SMART_LEN);
    conf_status(conf, "Get Features",
                nvme_get_feature(nvme, FEATURE_ERROR_RECOVERY, 0, 0, &value),
                NVME_SC_SUCCESS);
    conf_status(conf, "Set Features without a namespace",
                nvme_set_feature(nvme, FEATURE_ERROR_RECOVERY, 0),
                NVME_SC_SUCCESS);
}

WITH_STATES(set_features_all)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .nsid = NVME_NSID_ALL,
                           .cdw10 = FEATURE_ERROR_RECOVERY};

    conf_status(conf, "Set Features for all namespaces",
                nvme_run(nvme, nvme->admin, &sqe, 0, NULL), NVME_SC_SUCCESS);
    set_ana(conf, "all all inaccessible");
    conf_status(conf, "Set Features for all namespaces",
                nvme_run(nvme, nvme->admin, &sqe, 0, NULL),
                NVME_SC_ANA_INACCESSIBLE);
}

WITH_STATES(capacity_hidden)
{
    const uint8_t *id = nvme->admin->mem;

    set_ana(conf, "all all inaccessible");
    conf_status(conf, "Identify Namespace",
                nvme_identify(nvme, CNS_NAMESPACE, nvme->nsid),
                NVME_SC_SUCCESS);
    conf_same(conf, "NSZE and NCAP", id, nvme->ns, 16);
    conf_check(conf, get_le64(id + ID_NS_NUSE) == 0, "NUSE is not 0");
    conf_check(conf, get_le64(id + ID_NS_NVMCAP) == 0, "NVMCAP is not 0");
    set_ana(conf, "all all optimized");
    conf_status(conf, "Identify Namespace",
                nvme_identify(nvme, CNS_NAMESPACE, nvme->nsid),
                NVME_SC_SUCCESS);
    conf_same(conf, "the namespace data", id, nvme->ns, NVME_IDENTIFY_LEN);
}

WITH_STATES(management)
{
    struct nvme_sqe format = {.opcode = ADMIN_FORMAT_NVM, .nsid = nvme->nsid};
    struct nvme_sqe delete = {
        .opcode = ADMIN_NS_MANAGEMENT, .nsid = nvme->nsid, .cdw10 = 1};
    struct nvme_sqe detach = {
        .opcode = ADMIN_NS_ATTACHMENT, .nsid = nvme->nsid, .cdw10 = 1};

    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT)) {
        conf_not_applicable(conf, "OACS bit 3 is 0");
    }
    set_ana(conf, "all all inaccessible");
    conf_status(conf, "Format", nvme_run(nvme, nvme->admin, &format, 0, NULL),
                NVME_SC_ANA_INACCESSIBLE);
    conf_status(conf, "delete", nvme_run(nvme, nvme->admin, &delete, 0, NULL),
                NVME_SC_ANA_INACCESSIBLE);
    memset(nvme->admin->mem, 0, NVME_IDENTIFY_LEN);
    put_le16(nvme->admin->mem + CTRL_LIST_COUNT, 1);
    put_le16(nvme->admin->mem + CTRL_LIST_FIRST, nvme->admin->config.cntlid);
    conf_status(conf, "detach",
                nvme_run(nvme, nvme->admin, &detach, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_ANA_INACCESSIBLE);
}

WITH_STATES(group_invalid)
{
    struct nvme_sqe create = {.opcode = ADMIN_NS_MANAGEMENT};
    uint8_t *mem = nvme->admin->mem;

    if (!(get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT)) {
        conf_not_applicable(conf, "OACS bit 3 is 0");
    }
    memset(mem, 0, NVME_IDENTIFY_LEN);
    mem[ID_NS_NSZE] = mem[ID_NS_NCAP] = 8;
    put_le32(mem + ID_NS_ANAGRPID,
             get_le32(nvme->ctrl + ID_CTRL_ANAGRPMAX) + 1);
    conf_status(conf, "create in a group above ANAGRPMAX",
                nvme_run(nvme, nvme->admin, &create, NVME_IDENTIFY_LEN, NULL),
                NVME_SC_ANA_GROUP_INVALID);
}

/* Until the drive starts again. */
static void persistent_loss(struct conf *conf)
{
    struct nvme *nvme = open_ana(nvme_open(conf));
    struct nvme_sqe protect = {.opcode = ADMIN_SET_FEATURES,
                               .nsid = nvme->nsid,
                               .cdw10 = FEATURE_PROTECTION};
    const char *said;

    zero_block(nvme);
    set_ana(conf, "all all persistent-loss");
    expect_io(nvme, NVME_SC_ANA_PERSISTENT_LOSS);
    conf_status(conf, "Set Features of the namespace",
                nvme_run(nvme, nvme->admin, &protect, 0, NULL),
                NVME_SC_ANA_PERSISTENT_LOSS);
    said = conf_console(conf, "ana all all optimized");
    conf_check(conf, strstr(said, "error") != NULL,
               "a persistent loss has ended: %s", said);
    conf_equal(conf, "the state in the log", state_of_ours(nvme),
               ANA_PERSISTENT_LOSS);
    conf_power_cut(conf);
    nvme = nvme_open(conf);
    conf_equal(conf, "the state in the log", state_of_ours(nvme),
               ANA_OPTIMIZED);
    expect_io(nvme, NVME_SC_SUCCESS);
    nvme_close(nvme);
}

/* ---- Events and change counts. */

static void request_event(struct nvme *nvme)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_ASYNC_EVENT_REQUEST, .cid = AER_CID};

    conf_status(nvme->conf, "Set Features",
                nvme_set_feature(nvme, FEATURE_ASYNC_EVENT_CONFIG, ANA_NOTICES),
                NVME_SC_SUCCESS);
    rc_send_capsule(nvme->admin, &sqe, NULL, NULL, 0);
}

static void expect_event(struct nvme *nvme)
{
    struct nvme_cqe cqe;

    conf_check(nvme->conf, nvme_take_other(nvme, AER_CID, EVENT_US, &cqe),
               "no event came");
    conf_equal(nvme->conf, "the event", cqe.dw0, ANA_EVENT);
}

static void expect_quiet(struct nvme *nvme)
{
    struct nvme_cqe cqe;

    conf_check(nvme->conf, !nvme_take_other(nvme, AER_CID, QUIET_US, &cqe),
               "an event came");
}

WITH_STATES(event)
{
    request_event(nvme);
    expect_quiet(nvme);
    set_ana(conf, "all 0 inaccessible");
    expect_event(nvme);
    request_event(nvme);
    set_ana(conf, "all 0 non-optimized"); /* Masked until the log is read. */
    expect_quiet(nvme);
    read_log(nvme, LOG_RAE);
    expect_quiet(nvme);
    read_log(nvme, 0);
    expect_event(nvme);
}

WITH_STATES(event_other_port)
{
    request_event(nvme);
    set_ana(conf, "all 1 inaccessible");
    expect_quiet(nvme);
}

WITH_STATES(event_change)
{
    request_event(nvme);
    set_ana(conf, "all 0 change 3000");
    expect_quiet(nvme);
    conf_pass(conf, 3500000);
    expect_event(nvme);
}

WITH_STATES(counts)
{
    const uint8_t *log = read_log(nvme, 0);
    uint64_t header = get_le64(log + ANA_LOG_CHANGES);
    uint64_t group = get_le64(find_group(nvme, log, false) + ANA_GROUP_CHANGES);

    set_ana(conf, "all 0 inaccessible");
    log = read_log(nvme, 0);
    conf_check(conf, get_le64(log + ANA_LOG_CHANGES) > header,
               "the log's change count did not grow");
    conf_check(conf,
               get_le64(find_group(nvme, log, false) + ANA_GROUP_CHANGES) ==
                   group + 1,
               "the group's change count did not grow by one");
}

static void counts_reset(struct conf *conf)
{
    struct nvme *nvme = open_ana(nvme_open_admin(conf));
    const uint8_t *log;

    set_ana(conf, "all 0 inaccessible");
    set_ana(conf, "all 0 optimized");
    nvme_reset(nvme);
    log = read_log(nvme, 0);
    conf_check(conf, get_le64(log + ANA_LOG_CHANGES) == 0,
               "the log's change count is not 0 after a reset");
    conf_check(conf,
               get_le64(find_group(nvme, log, false) + ANA_GROUP_CHANGES) == 0,
               "the group's change count is not 0 after a reset");
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("ana." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)
#define TEST_STATE(id, clause, purpose, run)                                   \
    TEST(id, clause, purpose, run, .needs = CONF_NEEDS_CONTROL)

static const struct conf_test tests[] = {
    TEST("identify", "5.15.2.2",
         "ANATT, ANACAP, ANAGRPMAX, NANAGRPID, MNAN and ANAGRPID are valid",
         identify_ana),
    TEST("log", "5.14.1.12",
         "groups and their NSIDs are listed in ascending order", log_ana),
    TEST("log-groups", "5.14.1.12", "RGO leaves the NSIDs out",
         log_groups_only),
    TEST_STATE("inaccessible", "8.20.3.3",
               "I/O commands get 302h until the state ends", io_inaccessible),
    TEST_STATE("non-optimized", "8.20.3.2", "I/O commands work",
               io_non_optimized),
    TEST_STATE("change", "8.20.3.5", "I/O commands get 303h", io_change),
    TEST_STATE("retry", "8.20.3.3", "Do Not Retry is clear", may_be_retried),
    TEST_STATE("other-port", "8.20.1",
               "the state at another port does not matter", other_port),
    TEST_STATE("other-group", "8.20.2",
               "the state of another group does not matter", other_group),
    TEST_STATE("flush-all", "8.20.3.3",
               "Flush of all needs all attached namespaces", flush_all),
    TEST_STATE("transition", "8.20.3.5",
               "a transition ends with the state that was asked for",
               transition),
    TEST_STATE("admin", "8.20.4",
               "admin commands without a namespace are not affected",
               admin_works),
    TEST_STATE("set-features", "8.20.4",
               "Set Features with NSID FFFFFFFFh is refused with 302h",
               set_features_all),
    TEST_STATE("capacity", "8.20.4",
               "NUSE and NVMCAP are 0 while the state is inaccessible",
               capacity_hidden),
    TEST_STATE("manage", "8.20.3.3",
               "Format, deletion and detachment are refused with 302h",
               management),
    TEST("group", "5.20", "an ANAGRPID above ANAGRPMAX is refused with 124h",
         group_invalid, .needs = CONF_NEEDS_CONTROL),
    TEST_STATE("lost", "8.20.3.4",
               "a persistent loss refuses commands with 301h and does not end",
               persistent_loss),
    TEST_STATE("event", "5.2, 8.20.3.6",
               "a state that is entered is reported until the log is read",
               event),
    TEST_STATE("event-port", "5.2",
               "no event comes for the state at another port",
               event_other_port),
    TEST_STATE("event-change", "8.20.3.6",
               "a transition is reported when it ends", event_change),
    TEST_STATE("counts", "5.14.1.12",
               "change counts of the log and of its group grow", counts),
    TEST_STATE("counts-reset", "5.14.1.12",
               "change counts are 0 after a controller reset", counts_reset),
};
CONF_TESTS(conf_tests_nvme_ana, "nvme", tests);
