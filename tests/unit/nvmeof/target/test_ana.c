/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asymmetric Namespace Access with two namespaces, of which the second may be
 * in a group of its own: what commands get in each state, the log page, and
 * events.
 */
#include "fake.h"

#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/target/ana.h"
#include "tests/test_fixture.h"

enum {
    RGO = 0x100,
    RAE = 0x8000,
    STATES = 5,
    ANA_NOTICES = 1 << 11,
};

static const enum ana_state states[STATES] = {ANA_OPTIMIZED, ANA_NON_OPTIMIZED,
                                              ANA_INACCESSIBLE, ANA_CHANGE,
                                              ANA_PERSISTENT_LOSS};

/* What a command gets in each of these states. */
static const uint16_t statuses[STATES] = {0, 0, 0x302, 0x303, 0x301};

static void set_state(struct fake *fake, uint32_t group, uint16_t portid,
                      enum ana_state state)
{
    assert_int_equal(nvmf_target_set_ana(fake->target, group, portid, state, 0,
                                         fake->now_us),
                     NVMF_ANA_OK);
    fake_run(fake);
}

static uint16_t io_status(struct fake *fake, uint16_t io, uint8_t opcode,
                          uint32_t nsid)
{
    struct nvme_sqe sqe = fake_rw(opcode, 0, 1);
    uint32_t len = 512;

    sqe.nsid = nsid;
    if (opcode == NVM_FLUSH || opcode == NVM_WRITE_ZEROES ||
        opcode == NVM_VERIFY) {
        len = 0;
    } else if (opcode == NVM_DATASET_MANAGEMENT) {
        sqe = fake_admin(opcode, nsid, 0, 0);
        len = 16;
    } else if (opcode == NVM_COPY) {
        sqe.cdw12 = 0;
        len = 32;
    }
    memset(fake->data, 0, 512);
    return fake_exec(fake, io, &sqe, len != 0 ? fake->data : NULL, len).status;
}

static const uint8_t *read_log(struct fake *fake, uint16_t admin,
                               uint32_t flags, uint32_t len)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_GET_LOG_PAGE, 0,
                                     (len / 4 - 1) << 16 | LOG_ANA | flags, 0);

    memset(fake->data, 0xa5, len);
    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, len).status, 0);
    return fake->data;
}

static const uint8_t *read_identify(struct fake *fake, uint16_t admin,
                                    uint8_t cns, uint32_t nsid)
{
    struct nvme_sqe sqe = fake_admin(ADMIN_IDENTIFY, nsid, cns, 0);

    assert_int_equal(fake_exec(fake, admin, &sqe, fake->data, 4096).status, 0);
    return fake->data;
}

static struct fake_request *post_aer(struct fake *fake, uint16_t admin)
{
    struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, 0,
                                     FEATURE_ASYNC_EVENT_CONFIG, ANA_NOTICES);
    struct nvme_sqe aer = {.opcode = ADMIN_ASYNC_EVENT_REQUEST};
    struct fake_request *request;

    assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
    request = fake_send(fake, admin, &aer, NULL, 0);
    fake_run(fake);
    return request;
}

/* A host at the other port. */
static uint16_t host_at_port_2(struct fake *fake)
{
    uint16_t admin;

    fake->portid = 2;
    admin = fake_host(fake, 0);
    fake->portid = 1;
    return admin;
}

static void test_identify_reports_ana(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *id = read_identify(fake, admin, CNS_CONTROLLER, 0);

    assert_int_equal(id[76], 0x0b);                     /* CMIC */
    assert_int_equal(get_le32(id + 92) & 0x800, 0x800); /* OAES */
    assert_int_equal(id[342], 10);                      /* ANATT */
    assert_int_equal(id[343], 0x5f);                    /* ANACAP */
    assert_int_equal(get_le32(id + 344), 16);           /* ANAGRPMAX */
    assert_int_equal(get_le32(id + 348), 16);           /* NANAGRPID */
    assert_int_equal(get_le32(id + 540), 128);          /* MNAN */
    fake->target->ns[1].anagrpid = 7;
    id = read_identify(fake, admin, CNS_NAMESPACE, 2);
    assert_int_equal(get_le32(id + 92), 7);
    id = read_identify(fake, admin, CNS_NS_OF_ALL_COMMAND_SETS, 2);
    assert_int_equal(get_le32(id + 4), 7);
}

WITH_FIXTURE(NULL, NULL)
static void test_the_data_sheet_profile_has_no_ana(void **state)
{
    struct fake *fake = fake_new();
    struct nvme_sqe log = fake_admin(ADMIN_GET_LOG_PAGE, 0, LOG_ANA, 0);
    const uint8_t *id;
    uint16_t admin;

    (void)state;
    fake->config.vs = 0x00010201;
    fake_start(fake);
    admin = fake_host(fake, 0);
    id = read_identify(fake, admin, CNS_CONTROLLER, 0);
    assert_int_equal(id[76], 3);
    assert_int_equal(id[342], 0);
    assert_int_equal(id[343], 0);
    assert_int_equal(get_le32(id + 92), 0x100);
    assert_int_equal(
        get_le32(read_identify(fake, admin, CNS_NAMESPACE, 1) + 92), 0);
    assert_int_equal(fake_exec(fake, admin, &log, fake->data, 4).status,
                     NVME_SC_INVALID_LOG_PAGE | DNR);
    assert_int_equal(nvmf_target_set_ana(fake->target, 1, 1, ANA_INACCESSIBLE,
                                         0, fake->now_us),
                     NVMF_ANA_ABSENT);
    fake_free(fake);
}

static void test_each_state_has_its_status_for_all_io_commands(void **state)
{
    static const uint8_t opcodes[] = {
        NVM_FLUSH,        NVM_WRITE,  NVM_READ, NVM_COMPARE,
        NVM_WRITE_ZEROES, NVM_VERIFY, NVM_COPY, NVM_DATASET_MANAGEMENT,
    };
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    fake->target->ns[1].anagrpid = 2;
    for (unsigned int s = 0; s < STATES; s++) {
        set_state(fake, 1, 1, states[s]);
        for (size_t i = 0; i < ARRAY_LEN(opcodes); i++) {
            assert_int_equal(io_status(fake, io, opcodes[i], 1) & ~MORE,
                             statuses[s]);
            assert_int_equal(io_status(fake, io, opcodes[i], 2), 0);
        }
    }
    /* Hosts expect these statuses: they are no errors. */
    assert_int_equal(nvmf_target_counters(fake->target)->error_log_entries, 0);
}

static void test_a_state_concerns_one_port(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = host_at_port_2(fake), io;

    fake->portid = 2;
    io = fake_io_queue(fake, admin, 1);
    set_state(fake, 1, 1, ANA_INACCESSIBLE);
    assert_int_equal(io_status(fake, io, NVM_READ, 1), 0);
    set_state(fake, 1, 2, ANA_INACCESSIBLE);
    assert_int_equal(io_status(fake, io, NVM_READ, 1) & ~MORE, 0x302);
    set_state(fake, 1, 2, ANA_OPTIMIZED);
    assert_int_equal(io_status(fake, io, NVM_READ, 1), 0);
}

static void test_a_new_controller_finds_the_state_that_was_set(void **state)
{
    struct fake *fake = *state;
    uint16_t admin, io;

    set_state(fake, 1, 1, ANA_INACCESSIBLE);
    admin = fake_host(fake, 0);
    io = fake_io_queue(fake, admin, 1);
    assert_int_equal(io_status(fake, io, NVM_READ, 1) & ~MORE, 0x302);
    assert_int_equal(read_log(fake, admin, 0, 48)[16 + 16], ANA_INACCESSIBLE);
}

static void test_an_unknown_namespace_is_not_inaccessible(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);

    set_state(fake, 1, 1, ANA_INACCESSIBLE);
    assert_int_equal(io_status(fake, io, NVM_READ, 3) & NVME_SC_MASK, 0x002);
    assert_int_equal(io_status(fake, io, NVM_READ, 129) & NVME_SC_MASK, 0x00b);
}

static void test_commands_for_all_namespaces_need_all_of_them(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    struct nvme_sqe set = fake_admin(ADMIN_SET_FEATURES, NVME_NSID_ALL,
                                     FEATURE_ERROR_RECOVERY, 0);

    fake->target->ns[1].anagrpid = 2;
    for (unsigned int s = 0; s < STATES; s++) {
        set_state(fake, 2, 1, states[s]);
        assert_int_equal(io_status(fake, io, NVM_FLUSH, NVME_NSID_ALL) & ~MORE,
                         statuses[s]);
        set.nsid = NVME_NSID_ALL;
        assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status & ~MORE,
                         statuses[s]);
        set.nsid = 0; /* It names no namespace. */
        assert_int_equal(fake_exec(fake, admin, &set, NULL, 0).status, 0);
    }
}

static void test_identify_hides_how_much_is_used_of_what_is_out_of_reach(
    void **state)
{
    static const bool is_hidden[STATES] = {false, false, true, false, true};
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);

    for (unsigned int s = 0; s < STATES; s++) {
        const uint8_t *id;

        set_state(fake, 1, 1, states[s]);
        id = read_identify(fake, admin, CNS_NAMESPACE, 1);
        assert_int_equal(get_le64(id), FAKE_BLOCKS);
        assert_int_equal(get_le64(id + 16), is_hidden[s] ? 0 : FAKE_BLOCKS);
        assert_int_equal(get_le64(id + 48),
                         is_hidden[s] ? 0 : FAKE_BLOCKS * 512);
    }
}

static void test_the_log_lists_groups_with_their_namespaces(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *log = read_log(fake, admin, 0, 1024);

    assert_int_equal(get_le64(log), 0);
    assert_int_equal(get_le16(log + 8), 1);
    assert_int_equal(get_le32(log + 16), 1); /* group 1 */
    assert_int_equal(get_le32(log + 20), 2); /* NSIDs */
    assert_int_equal(log[32], ANA_OPTIMIZED);
    assert_int_equal(get_le32(log + 48), 1);
    assert_int_equal(get_le32(log + 52), 2);
    assert_int_equal(get_le32(log + 56), 0);

    fake->target->ns[0].anagrpid = 9;
    set_state(fake, 9, 1, ANA_NON_OPTIMIZED);
    log = read_log(fake, admin, 0, 1024);
    assert_int_equal(get_le16(log + 8), 2);
    assert_int_equal(get_le32(log + 16), 1);
    assert_int_equal(get_le32(log + 20), 1);
    assert_int_equal(get_le32(log + 48), 2);
    assert_int_equal(get_le32(log + 52), 9);
    assert_int_equal(log[68], ANA_NON_OPTIMIZED);
    assert_int_equal(get_le32(log + 84), 1);

    log = read_log(fake, admin, RGO, 1024);
    assert_int_equal(get_le16(log + 8), 2);
    assert_int_equal(get_le32(log + 20), 0);
    assert_int_equal(get_le32(log + 48), 9);
    assert_int_equal(get_le32(log + 80), 0);
}

static void test_change_counts_begin_at_zero_after_a_reset(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    const uint8_t *log;

    fake->target->ns[1].anagrpid = 2;
    set_state(fake, 1, 1, ANA_INACCESSIBLE);
    set_state(fake, 2, 1, ANA_INACCESSIBLE);
    set_state(fake, 2, 1, ANA_OPTIMIZED);
    set_state(fake, 2, 1, ANA_OPTIMIZED);    /* no change */
    set_state(fake, 3, 1, ANA_INACCESSIBLE); /* a group without namespaces */
    set_state(fake, 1, 2, ANA_INACCESSIBLE); /* another port */
    log = read_log(fake, admin, 0, 128);
    assert_int_equal(get_le64(log), 3);
    assert_int_equal(get_le64(log + 16 + 8), 1);
    assert_int_equal(get_le64(log + 52 + 8), 2);
    fake_property_set(fake, admin, PROPERTY_CC, 0);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    log = read_log(fake, admin, 0, 128);
    assert_int_equal(get_le64(log), 0);
    assert_int_equal(get_le64(log + 16 + 8), 0);
    assert_int_equal(log[32], ANA_INACCESSIBLE);
}

static void test_entering_a_state_is_reported_once_until_the_log_is_read(
    void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *event = post_aer(fake, admin);

    set_state(fake, 1, 1, ANA_OPTIMIZED); /* no change */
    assert_false(event->is_answered);
    set_state(fake, 1, 1, ANA_INACCESSIBLE);
    assert_true(event->is_answered);
    assert_int_equal(event->cqe.dw0, 0x0c0302);

    event = post_aer(fake, admin);
    set_state(fake, 1, 1, ANA_NON_OPTIMIZED);
    read_log(fake, admin, RAE, 48);
    fake_run(fake);
    assert_false(event->is_answered);
    read_log(fake, admin, 0, 48);
    fake_run(fake);
    assert_true(event->is_answered);
}

static void test_only_controllers_with_the_group_at_the_port_are_told(
    void **state)
{
    struct fake *fake = *state;
    uint16_t here = fake_host(fake, 0), there = host_at_port_2(fake);
    struct fake_request *event = post_aer(fake, here);
    struct fake_request *other = post_aer(fake, there);

    set_state(fake, 2, 1, ANA_INACCESSIBLE); /* it has no namespace */
    assert_false(event->is_answered);
    set_state(fake, 1, 2, ANA_INACCESSIBLE);
    assert_false(event->is_answered);
    assert_true(other->is_answered);
}

static void test_a_transition_ends_in_the_state_that_was_asked_for(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    struct fake_request *event = post_aer(fake, admin);
    uint64_t start_us = fake->now_us;

    nvmf_target_timer(fake->target, start_us);
    assert_int_equal(nvmf_target_set_ana(fake->target, 1, 1, ANA_INACCESSIBLE,
                                         2000, fake->now_us),
                     NVMF_ANA_OK);
    fake_run(fake);
    assert_int_equal(nvmf_target_ana(fake->target, 1, 1), ANA_CHANGE);
    assert_false(event->is_answered); /* the state that follows is reported */
    assert_int_equal(nvmf_target_timer(fake->target, start_us + 1999999),
                     start_us + 2000000);
    assert_int_equal(nvmf_target_ana(fake->target, 1, 1), ANA_CHANGE);
    nvmf_target_timer(fake->target, start_us + 2000000);
    fake_run(fake);
    assert_int_equal(nvmf_target_ana(fake->target, 1, 1), ANA_INACCESSIBLE);
    assert_true(event->is_answered);
}

static void test_change_lasts_for_anatt_at_most(void **state)
{
    struct fake *fake = *state;

    nvmf_target_timer(fake->target, fake->now_us);
    set_state(fake, 1, 1, ANA_NON_OPTIMIZED);
    set_state(fake, 1, 1, ANA_CHANGE);
    assert_int_equal(nvmf_target_timer(fake->target, fake->now_us),
                     fake->now_us + 10000000);
    nvmf_target_timer(fake->target, fake->now_us + 10000000);
    assert_int_equal(nvmf_target_ana(fake->target, 1, 1), ANA_NON_OPTIMIZED);
    /* A state that is set during a transition ends it. */
    set_state(fake, 1, 1, ANA_CHANGE);
    set_state(fake, 1, 1, ANA_OPTIMIZED);
    assert_int_equal(fake->target->ana_transitions, 0);
    assert_int_equal(nvmf_target_set_ana(fake->target, 1, 1, ANA_INACCESSIBLE,
                                         10001, fake->now_us),
                     NVMF_ANA_BAD_TIME);
}

static void test_a_persistent_loss_does_not_end(void **state)
{
    struct fake *fake = *state;

    set_state(fake, 1, 1, ANA_PERSISTENT_LOSS);
    for (unsigned int s = 0; s < STATES - 1; s++) {
        assert_int_equal(
            nvmf_target_set_ana(fake->target, 1, 1, states[s], 0, fake->now_us),
            NVMF_ANA_LOST);
    }
    set_state(fake, 1, 1, ANA_PERSISTENT_LOSS);
    set_state(fake, 1, 2, ANA_INACCESSIBLE);
    assert_int_equal(nvmf_target_ana(fake->target, 1, 1), ANA_PERSISTENT_LOSS);
}

static void test_groups_and_ports_that_do_not_exist_are_refused(void **state)
{
    struct fake *fake = *state;

    assert_int_equal(nvmf_target_set_ana(fake->target, 0, 1, ANA_INACCESSIBLE,
                                         0, fake->now_us),
                     NVMF_ANA_NO_GROUP);
    assert_int_equal(nvmf_target_set_ana(fake->target, 17, 1, ANA_INACCESSIBLE,
                                         0, fake->now_us),
                     NVMF_ANA_NO_GROUP);
    assert_int_equal(nvmf_target_set_ana(fake->target, 1, 0, ANA_INACCESSIBLE,
                                         0, fake->now_us),
                     NVMF_ANA_NO_PORT);
    assert_int_equal(nvmf_target_set_ana(fake->target, 1, 3, ANA_INACCESSIBLE,
                                         0, fake->now_us),
                     NVMF_ANA_NO_PORT);
}

static void test_each_state_has_a_name(void **state)
{
    enum ana_state found;

    (void)state;
    for (unsigned int s = 0; s < STATES; s++) {
        assert_true(nvmf_ana_by_name(nvmf_ana_name(states[s]), &found));
        assert_int_equal(found, states[s]);
    }
    assert_false(nvmf_ana_by_name("perfect", &found));
    assert_string_equal(nvmf_ana_name((enum ana_state)9), "unknown");
}

TEST_FIXTURE(fake_setup, fake_teardown)
