/* SPDX-License-Identifier: BSD-2-Clause */
/* Who may connect: the list of hosts on the console, and a host over RDMA that
 * authenticates. */
#include "bed_fixture.h"

#include <stdio.h>

#include "tests/auth_secrets.h"
#include "tests/auth_host.h"
#include "tests/test_fixture.h"

#define KEY "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh+KfiaR"

TEST_FIXTURE(setup, teardown)

static struct host_target target;
static struct auth_host login;
static uint8_t message[4096];

static void type_command(const char *format, const char *argument,
                         const char *answer)
{
    static char line[CONSOLE_LINE_MAX + 2]; /* the UART reads it later */
    const char *said;

    snprintf(line, sizeof(line), format, argument);
    said = type_line(line);
    if (strstr(said, answer) == NULL) {
        fail_msg("%s: %s", line, said);
    }
}

/* Put the host of the bed on the list, with a secret for both sides. */
static void add_host(void)
{
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    target.io_queues = 1;
    target.depth = 16;
    type_command("host add %s sha256 ffdhe2048\r", target.hostnqn, "ok");
    type_command("host secret %s " SECRET "\r", target.hostnqn, "ok");
    type_command("host drive-secret %s " SECRET "\r", target.hostnqn, "ok");
}

static void test_the_console_shows_no_secret(void **state)
{
    const char *said;

    (void)state;
    add_host();
    type_command("host secret %s DHHC-1:01:wrong\r", target.hostnqn, "error");
    said = type_line("host\r");
    assert_non_null(strstr(said, "authenticates, at least sha256 and ffdhe2048;"
                                 " the drive has a secret towards it"));
    said = machine_console(&bed.drive->machine);
    assert_null(strstr(said, "DHHC"));
    assert_null(strstr(said, KEY));
    assert_non_null(strstr(said, " **********")); /* its place */
    type_command("host secret %s none\r", target.hostnqn,
                 "error"); /* of both */
    type_command("host drive-secret %s none\r", target.hostnqn, "ok");
    type_command("host secret %s none\r", target.hostnqn, "ok");
    type_command("host%s\r", "", "without a secret");
}

static void test_the_console_refuses_mistakes(void **state)
{
    (void)state;
    type_command("host add %s\r", "drive", "error: A host NQN");
    type_command("host remove %s\r", "nqn.x.y", "error: The list does not");
    type_command("host add %s md5\r", "nqn.x.y", "error: The hash functions");
    type_command("host add %s sha256 x\r", "nqn.x.y", "error: The groups");
    type_command("host exclusive %s\r", "maybe", "error: host [add NQN");
    type_command("host frob%s\r", "", "error: host [add NQN");
}

static void test_an_exclusive_list_keeps_a_host_out(void **state)
{
    (void)state;
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    type_command("host exclusive %s\r", "on", "ok");
    assert_int_equal(host_connect(&bed.host->host, &target),
                     NVME_SC_CONNECT_INVALID_HOST | NVME_STATUS_DNR);
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "the host is not on the list of allowed hosts"));
    host_vanish(&bed.host->host);
    type_command("host add %s\r", target.hostnqn, "ok");
    bed_connect(&bed, 0, 1, 16);
    host_disconnect(&bed.host->host);
}

static uint16_t run_auth(uint16_t qid, uint8_t fctype, size_t len)
{
    struct nvme_sqe sqe = {.opcode = NVME_FABRICS,
                           .fctype = fctype,
                           .psdt = SQE_PSDT_SGL,
                           .cdw10 = 0xe9010100,
                           .cdw11 = (uint32_t)len};

    return host_command(&bed.host->host, qid, &sqe, message, (uint32_t)len);
}

/* Both sides prove their identity. */
static void authenticate_queue(uint16_t qid, const char *secret)
{
    uint8_t challenge[sizeof(message)];
    size_t len;

    auth_host_init(&login, target.hostnqn, target.subnqn, secret, SECRET);
    len = auth_host_negotiate(&login, 0x0e, 0x3f, message);
    assert_int_equal(run_auth(qid, FABRICS_AUTH_SEND, len), 0);
    assert_int_equal(run_auth(qid, FABRICS_AUTH_RECEIVE, sizeof(message)), 0);
    memcpy(challenge, message, sizeof(challenge));
    len = auth_host_reply(&login, challenge, sizeof(challenge), message);
    assert_int_not_equal(len, 0);
    assert_int_equal(run_auth(qid, FABRICS_AUTH_SEND, len), 0);
    assert_int_equal(run_auth(qid, FABRICS_AUTH_RECEIVE, sizeof(message)), 0);
}

static void finish_queue(uint16_t qid)
{
    assert_true(auth_host_accepts(&login, message, sizeof(message)));
    auth_success2_emit(message, login.t_id);
    assert_int_equal(run_auth(qid, FABRICS_AUTH_SEND, AUTH_SUCCESS2_LEN), 0);
}

static void test_a_host_over_rdma_authenticates_both_queues(void **state)
{
    struct nvme_host *host = &bed.host->host;

    (void)state;
    add_host();
    assert_int_equal(host_connect(host, &target),
                     NVME_SC_AUTH_REQUIRED | NVME_STATUS_DNR);
    authenticate_queue(0, SECRET);
    finish_queue(0);
    assert_non_null(strstr(machine_console(&bed.drive->machine),
                           "has authenticated with sha256, group ffdhe2048"));
    assert_int_equal(host_enable(host), 0);
    assert_int_equal(host_connect_queue(host, 1, 16), 0);
    authenticate_queue(1, SECRET);
    finish_queue(1);
    assert_int_equal(bed_write(&bed, 1, 0, 8, HOST_DATA_KEYED, false, 1), 0);
    bed_expect(&bed, 1, 0, 8, HOST_DATA_KEYED, 1);
    host_disconnect(host);
    bed_expect_idle(&bed);
}

static void test_a_wrong_secret_ends_the_connection_with_one_line(void **state)
{
    struct nvme_host *host = &bed.host->host;
    struct auth_failure_message failure;

    (void)state;
    add_host();
    assert_int_equal(host_connect(host, &target),
                     NVME_SC_AUTH_REQUIRED | NVME_STATUS_DNR);
    authenticate_queue(0, OTHER_SECRET);
    assert_true(auth_failure_parse(&failure, message, sizeof(message)));
    assert_int_equal(failure.id, AUTH_ID_FAILURE1);
    assert_int_equal(failure.explanation, AUTH_FAILED_PROOF);
    native_world_pass(&bed.world, 10000000);
    assert_true(host_is_broken(host));
    assert_non_null(
        strstr(machine_console(&bed.drive->machine),
               "authentication of queue 0 failed: the secret of one side is "
               "wrong or missing"));
    host_vanish(host);
}
