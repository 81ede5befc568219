/* SPDX-License-Identifier: BSD-2-Clause */
#include "tests/test_fixture.h"
#include "fake.h"

#include <string.h>

enum { IATTR = 0x10000 };

/* One invalid field of a Connect that is valid otherwise, and the refusal. */
struct refused {
    const char *what;
    uint16_t status; /* without DNR */
    uint32_t dw0;
    void (*spoil)(struct connect_command *command, struct connect_data *data);
};

static void recfmt_1(struct connect_command *command, struct connect_data *data)
{
    (void)data;
    command->recfmt = 1;
}

static void other_qid(struct connect_command *command,
                      struct connect_data *data)
{
    (void)data;
    command->qid++;
}

static void sqsize_0(struct connect_command *command, struct connect_data *data)
{
    (void)data;
    command->sqsize = 0;
}

static void sqsize_above_hsqsize(struct connect_command *command,
                                 struct connect_data *data)
{
    (void)data;
    command->sqsize++;
}

static void cntlid_static(struct connect_command *command,
                          struct connect_data *data)
{
    (void)command;
    data->cntlid = 0xfff0;
}

static void cntlid_0(struct connect_command *command, struct connect_data *data)
{
    (void)command;
    data->cntlid = 0;
}

static void cntlid_other_generation(struct connect_command *command,
                                    struct connect_data *data)
{
    (void)command;
    data->cntlid = (uint16_t)(data->cntlid + 0x100);
}

static void subnqn_other(struct connect_command *command,
                         struct connect_data *data)
{
    (void)command;
    strcpy(data->subnqn, FAKE_SUBNQN "x");
}

static void subnqn_shorter(struct connect_command *command,
                           struct connect_data *data)
{
    (void)command;
    data->subnqn[strlen(FAKE_SUBNQN) - 1] = '\0';
}

static void subnqn_empty(struct connect_command *command,
                         struct connect_data *data)
{
    (void)command;
    data->subnqn[0] = '\0';
}

static void subnqn_endless(struct connect_command *command,
                           struct connect_data *data)
{
    (void)command;
    memset(data->subnqn, 'n', sizeof(data->subnqn));
}

static void subnqn_discovery(struct connect_command *command,
                             struct connect_data *data)
{
    (void)command;
    strcpy(data->subnqn, NVME_DISCOVERY_NQN);
}

static void hostnqn_empty(struct connect_command *command,
                          struct connect_data *data)
{
    (void)command;
    data->hostnqn[0] = '\0';
}

static void hostnqn_endless(struct connect_command *command,
                            struct connect_data *data)
{
    (void)command;
    memset(data->hostnqn, 'n', sizeof(data->hostnqn));
}

static void hostnqn_other(struct connect_command *command,
                          struct connect_data *data)
{
    (void)command;
    data->hostnqn[3]++;
}

static void hostid_other(struct connect_command *command,
                         struct connect_data *data)
{
    (void)command;
    data->hostid[15]++;
}

static const struct refused admin_refused[] = {
    {"RECFMT", 0x180, 0, recfmt_1},
    {"QID", 0x182, 42, other_qid},
    {"SQSIZE 0", 0x182, 44, sqsize_0},
    {"SQSIZE", 0x182, 44, sqsize_above_hsqsize},
    {"static CNTLID", 0x182, IATTR | 16, cntlid_static},
    {"CNTLID 0", 0x182, IATTR | 16, cntlid_0},
    {"SUBNQN", 0x182, IATTR | 256, subnqn_other},
    {"SUBNQN cut", 0x182, IATTR | 256, subnqn_shorter},
    {"SUBNQN empty", 0x182, IATTR | 256, subnqn_empty},
    {"SUBNQN without end", 0x182, IATTR | 256, subnqn_endless},
    {"HOSTNQN without end", 0x182, IATTR | 512, hostnqn_endless},
};

static const struct refused io_refused[] = {
    {"RECFMT", 0x180, 0, recfmt_1},
    {"QID", 0x182, 42, other_qid},
    {"SQSIZE 0", 0x182, 44, sqsize_0},
    {"SQSIZE", 0x182, 44, sqsize_above_hsqsize},
    {"CNTLID 0", 0x182, IATTR | 16, cntlid_0},
    {"CNTLID FFF0h", 0x182, IATTR | 16, cntlid_static},
    {"CNTLID of before", 0x182, IATTR | 16, cntlid_other_generation},
    {"SUBNQN", 0x182, IATTR | 256, subnqn_other},
    {"SUBNQN discovery", 0x182, IATTR | 256, subnqn_discovery},
    {"HOSTNQN", 0x182, IATTR | 512, hostnqn_other},
    {"HOSTNQN empty", 0x182, IATTR | 512, hostnqn_empty},
    {"HOSTID", 0x182, IATTR | 0, hostid_other},
};

static void refuse_each(struct fake *fake, const struct refused *rows,
                        size_t count, uint16_t qid, uint16_t size,
                        uint16_t cntlid)
{
    uint16_t qpair = fake_open(fake, qid, size);

    for (size_t i = 0; i < count; i++) {
        struct connect_command command = {
            .qid = qid, .sqsize = size, .has_sq_flow_control = true};
        struct connect_data data;
        struct nvme_cqe cqe;

        fake_connect_data(&data, cntlid, FAKE_SUBNQN);
        rows[i].spoil(&command, &data);
        cqe = fake_connect_with(fake, qpair, &command, &data);
        if (cqe.status != (rows[i].status | DNR) || cqe.dw0 != rows[i].dw0) {
            fail_msg("%s: status %x dw0 %x", rows[i].what, cqe.status, cqe.dw0);
        }
    }
    /* After all refusals, a valid Connect succeeds. */
    fake_connect(fake, qpair, qid, size, cntlid, 0, FAKE_SUBNQN);
}

static void test_every_refused_field_of_an_admin_connect(void **state)
{
    refuse_each(*state, admin_refused, ARRAY_LEN(admin_refused), 0, 31, 0xffff);
}

static void test_every_refused_field_of_an_io_connect(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t cntlid =
        fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;

    refuse_each(fake, io_refused, ARRAY_LEN(io_refused), 1, 63, cntlid);
}

/* SPDK's perf has an empty HOSTNQN by default. */
static void test_connect_accepts_an_empty_hostnqn(void **state)
{
    struct fake *fake = *state;
    struct connect_command command = {.sqsize = 31,
                                      .has_sq_flow_control = true};
    struct connect_data data;
    uint16_t admin = fake_open(fake, 0, 31), io = fake_open(fake, 1, 31);
    struct nvme_cqe cqe;

    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    data.hostnqn[0] = '\0';
    cqe = fake_connect_with(fake, admin, &command, &data);
    assert_int_equal(cqe.status, NVME_SC_SUCCESS);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);

    command.qid = 1;
    fake_connect_data(&data, (uint16_t)cqe.dw0, FAKE_SUBNQN);
    cqe = fake_connect_with(fake, io, &command, &data);
    assert_int_equal(cqe.status, NVME_SC_CONNECT_INVALID | DNR);
    assert_int_equal(cqe.dw0, IATTR | 512);
    data.hostnqn[0] = '\0';
    cqe = fake_connect_with(fake, io, &command, &data);
    assert_int_equal(cqe.status, NVME_SC_SUCCESS);
}

static void test_an_empty_subnqn_names_no_discovery_service(void **state)
{
    struct fake *fake = *state;
    struct connect_command command = {.sqsize = 31};
    struct connect_data data;

    assert_int_equal(fake->config.discovery_nqn[0], '\0');
    fake_connect_data(&data, 0xffff, "");
    assert_int_equal(
        fake_connect_with(fake, fake_open(fake, 0, 31), &command, &data).dw0,
        IATTR | 256);
}

static void test_connect_data_must_be_1024_bytes(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = fake_open(fake, 0, 31);
    struct connect_command command = {.sqsize = 31};
    struct nvme_sqe sqe = {0};

    connect_command_build(&sqe, &command);
    sqe.psdt = 0;
    assert_int_equal(fake_exec(fake, qpair, &sqe, fake->data, 1023).status,
                     NVME_SC_SGL_INVALID_LENGTH | DNR);
    assert_int_equal(fake_exec(fake, qpair, &sqe, fake->data, 0).status,
                     NVME_SC_SGL_INVALID_LENGTH | DNR);
    assert_int_equal(fake->fetch_count, 0);
}

static void test_the_first_command_must_be_connect_and_only_the_first(
    void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = fake_open(fake, 0, 31);
    struct nvme_sqe identify = fake_admin(ADMIN_IDENTIFY, 0, 1, 0);
    struct connect_command command = {.sqsize = 31};
    struct connect_data data;

    assert_int_equal(fake_exec(fake, qpair, &identify, fake->data, 4096).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR);
    fake_connect(fake, qpair, 0, 31, 0xffff, 0, FAKE_SUBNQN);
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    assert_int_equal(fake_connect_with(fake, qpair, &command, &data).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR);
}

static void test_two_connects_at_once_make_one_controller(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = fake_open(fake, 0, 31), controllers, qpairs;
    struct connect_command command = {.sqsize = 31};
    uint8_t bytes[CONNECT_DATA_LEN];
    struct fake_request *first, *second;
    struct connect_data data;
    struct nvme_sqe sqe = {0};

    connect_command_build(&sqe, &command);
    sqe.psdt = 0;
    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    connect_data_emit(bytes, &data);
    first = fake_send(fake, qpair, &sqe, bytes, sizeof(bytes));
    second = fake_send(fake, qpair, &sqe, bytes, sizeof(bytes));
    fake_run(fake);
    assert_int_equal(first->cqe.status, 0);
    assert_int_equal(second->cqe.status, NVME_SC_COMMAND_SEQUENCE | DNR);
    nvmf_target_stats(fake->target, &controllers, &qpairs);
    assert_int_equal(controllers, 1);
}

static void test_a_queue_that_exists_is_not_connected_again(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0);
    uint16_t io = fake_io_queue(fake, admin, 1);
    uint16_t again = fake_open(fake, 1, 63);
    uint16_t cntlid =
        fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid;
    struct connect_command command = {.qid = 1, .sqsize = 63};
    struct connect_data data;

    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    assert_int_equal(fake_connect_with(fake, again, &command, &data).status,
                     NVME_SC_COMMAND_SEQUENCE | DNR);
    /* After the queue has ended, Connect succeeds. */
    fake_close(fake, io);
    assert_int_equal(fake_connect_with(fake, again, &command, &data).status, 0);
}

static void test_io_connect_needs_an_enabled_controller(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_open(fake, 0, 31);
    uint16_t cntlid = fake_connect(fake, admin, 0, 31, 0xffff, 0, FAKE_SUBNQN);
    uint16_t io = fake_open(fake, 1, 63);
    struct connect_command command = {.qid = 1, .sqsize = 63};
    struct connect_data data;
    struct nvme_cqe cqe;

    fake_connect_data(&data, cntlid, FAKE_SUBNQN);
    cqe = fake_connect_with(fake, io, &command, &data);
    assert_int_equal(cqe.status, 0x182 | DNR);
    assert_int_equal(cqe.dw0, 42);
    fake_property_set(fake, admin, PROPERTY_CC, CC_ENABLE);
    assert_int_equal(fake_connect_with(fake, io, &command, &data).status, 0);
}

static void test_an_io_queue_stays_on_its_port(void **state)
{
    struct fake *fake = *state;
    uint16_t admin = fake_host(fake, 0), io;
    const struct nvmf_qpair_hints hints = {.qid = 1, .sqsize = 63};
    const struct nvmf_qpair_params params = {
        .transport = &fake->transport, .portid = 2, .hints = &hints};
    struct connect_command command = {.qid = 1, .sqsize = 63};
    struct connect_data data;
    struct nvme_cqe cqe;

    assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &io), 0);
    nvmf_qpair_open(fake->target, io, fake->now_us);
    fake_connect_data(
        &data, fake->target->ctrl[fake->target->qpair[admin].ctrl].cntlid,
        FAKE_SUBNQN);
    cqe = fake_connect_with(fake, io, &command, &data);
    assert_int_equal(cqe.status, 0x182 | DNR);
    assert_int_equal(cqe.dw0, IATTR | 16);
}

static void note_end(void *ctx, const struct nvmf_connect_end *end)
{
    struct nvmf_connect_end *noted = ctx;

    *noted = *end;
}

static bool admits_nobody(void *ctx, uint16_t qpair, const char *hostnqn)
{
    (void)ctx;
    (void)qpair;
    (void)hostnqn;
    return false;
}

/* TCP knows nothing of a queue before its Connect. */
static void test_what_is_said_of_a_connect_that_is_refused(void **state)
{
    struct fake *fake = *state;
    const struct nvmf_qpair_params params = {.transport = &fake->transport};
    struct connect_command command = {.qid = 5, .sqsize = 31};
    struct nvmf_connect_end end = {0};
    struct connect_data data;
    uint16_t qpair;

    fake->target->config.connect_ended = note_end;
    fake->target->config.connect_ctx = &end;
    assert_int_equal(nvmf_qpair_reserve(fake->target, &params, &qpair), 0);
    nvmf_qpair_open(fake->target, qpair, fake->now_us);
    fake_connect_data(&data, 0, FAKE_SUBNQN);
    (void)fake_connect_with(fake, qpair, &command, &data);
    assert_int_equal(end.status, NVME_SC_CONNECT_INVALID);
    assert_int_equal(end.qid, 5);
    assert_false(end.is_other_host);
    fake->transport.admits = admits_nobody;
    (void)fake_connect_with(fake, qpair, &command, &data);
    assert_int_equal(end.status, NVME_SC_CONNECT_INVALID_HOST);
    assert_true(end.is_other_host);
}

static void test_sq_flow_control_can_be_off(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = fake_open(fake, 0, 31);
    struct connect_command command = {.sqsize = 31};
    struct nvme_sqe keep_alive = {.opcode = ADMIN_KEEP_ALIVE};
    struct connect_data data;

    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    assert_int_equal(fake_connect_with(fake, qpair, &command, &data).sqhd,
                     0xffff);
    /* In later responses SQHD is reserved. */
    assert_int_equal(
        fake_property_set(fake, qpair, PROPERTY_CC, CC_ENABLE).sqhd, 0);
    assert_int_equal(fake_exec(fake, qpair, &keep_alive, NULL, 0).sqhd, 0);
}

static void test_a_cntlid_is_not_reused_soon(void **state)
{
    struct fake *fake = *state;
    uint16_t last = 0;

    for (unsigned int i = 0; i < 600; i++) {
        uint16_t qpair = fake_open(fake, 0, 31);
        uint16_t cntlid =
            fake_connect(fake, qpair, 0, 31, 0xffff, 0, FAKE_SUBNQN);

        assert_in_range(cntlid, 1, 0xffef);
        assert_int_not_equal(cntlid, last);
        last = cntlid;
        fake_close(fake, qpair);
    }
}

WITH_FIXTURE(NULL, NULL)
static void test_cntlids_differ_from_boot_to_boot(void **state)
{
    uint16_t seen[20];

    (void)state;
    for (unsigned int boot = 0; boot < ARRAY_LEN(seen); boot++) {
        struct fake *fake = fake_new();

        fake->config.genctr = (uint64_t)boot << 16;
        fake_start(fake);
        seen[boot] = fake_connect(fake, fake_open(fake, 0, 31), 0, 31, 0xffff,
                                  0, FAKE_SUBNQN);
        for (unsigned int i = 0; i < boot; i++) {
            assert_int_not_equal(seen[i], seen[boot]);
        }
        fake_free(fake);
    }
}

WITH_FIXTURE(NULL, NULL)
static void test_cntlids_of_a_boot_differ_from_those_of_the_three_boots_before(
    void **state)
{
    static uint8_t
        boot_of[0x10000]; /* by CNTLID: number of the boot, 0 if unused */

    (void)state;
    for (unsigned int boot = 1; boot <= 4; boot++) {
        struct fake *fake = fake_new();

        fake->config.genctr = (uint64_t)boot << 16;
        fake_start(fake);
        for (unsigned int i = 0; i < 200; i++) {
            uint16_t qpair = fake_open(fake, 0, 31);
            uint16_t cntlid =
                fake_connect(fake, qpair, 0, 31, 0xffff, 0, FAKE_SUBNQN);

            assert_true(boot_of[cntlid] == 0 || boot_of[cntlid] == boot);
            boot_of[cntlid] = (uint8_t)boot;
            fake_close(fake, qpair);
        }
        fake_free(fake);
    }
}

static void test_sqhd_of_connect_wraps_in_the_smallest_queue(void **state)
{
    struct fake *fake = *state;
    uint16_t qpair = fake_open(fake, 0, 31);
    struct connect_command command = {.sqsize = 1, .has_sq_flow_control = true};
    struct connect_data data;

    fake_connect_data(&data, 0xffff, FAKE_SUBNQN);
    assert_int_equal(fake_connect_with(fake, qpair, &command, &data).sqhd, 1);
    assert_int_equal(
        fake_property_set(fake, qpair, PROPERTY_CC, CC_ENABLE).sqhd, 0);
}

TEST_FIXTURE(fake_setup, fake_teardown)
