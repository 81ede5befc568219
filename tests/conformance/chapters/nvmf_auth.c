/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Who may connect: in-band authentication with DH-HMAC-CHAP, and the list of
 * allowed hosts.
 *
 * Spec: NVM Express Base 2.0 8.13 (8.3.4 in later revisions); NVMe over Fabrics
 * 1.1 3.3.
 */
#include <stdio.h>
#include <string.h>

#include "lib/bytes.h"
#include "nvmeof/wire/identify.h"
#include "nvmf_lib.h"
#include "tests/auth_secrets.h"
#include "tests/auth_host.h"

#define HOST_NQN "nqn.2026-01.net.example:conform-auth"

enum {
    BUFFER_LEN = 4096,
    ATR = 0x20000,
    AUTHREQ = 0xffff0000,
    ALL_HASHES = 0x0e,
    DH_NULL = BIT(AUTH_DH_NULL),
    COMPUTE_TRIES = 200,
};

/* One queue that authenticates. */
struct login {
    struct conf *conf;
    struct rc *rc;
    struct auth_host host;
    uint8_t message[BUFFER_LEN];
    uint32_t authreq;
};

static void run_console(struct conf *conf, const char *line)
{
    const char *said = conf_console(conf, line);

    conf_check(conf, strstr(said, "error") == NULL, "%s", said);
}

static void add_host(struct conf *conf, const char *least)
{
    char line[160];

    snprintf(line, sizeof(line), "host add " HOST_NQN " %s", least);
    run_console(conf, line);
    run_console(conf, "host secret " HOST_NQN " " SECRET);
    run_console(conf, "host drive-secret " HOST_NQN " " DRIVE_SECRET);
}

static void remove_host(struct conf *conf)
{
    run_console(conf, "host remove " HOST_NQN);
}

static uint16_t connect_with(struct login *login, struct nvmf_attempt *attempt)
{
    struct nvme_cqe cqe = {0};
    uint16_t status;

    memset(attempt->data.hostnqn, 0, sizeof(attempt->data.hostnqn));
    memcpy(attempt->data.hostnqn, HOST_NQN, sizeof(HOST_NQN));
    login->rc = attempt->rc;
    status = nvmf_attempt_run(attempt, &cqe);
    login->authreq = cqe.dw0 & AUTHREQ;
    if (status == NVME_SC_SUCCESS) {
        attempt->rc->config.cntlid = (uint16_t)cqe.dw0;
    }
    return status;
}

/* Connect an admin queue of the host with a key. */
static struct login *open_login(struct conf *conf, const char *secret,
                                const char *drive_secret)
{
    struct login *login = conf_alloc(conf, sizeof(*login));
    struct nvmf_attempt *attempt =
        nvmf_attempt_new(conf, &(struct rc_config){0});
    char *subnqn = conf_alloc(conf, NVME_NQN_FIELD);

    login->conf = conf;
    conf_status(conf, "Connect", connect_with(login, attempt), NVME_SC_SUCCESS);
    memcpy(subnqn, attempt->data.subnqn, NVME_NQN_FIELD);
    auth_host_init(&login->host, HOST_NQN, subnqn, secret, drive_secret);
    return login;
}

static uint16_t run_auth(struct login *login, uint8_t fctype, size_t len)
{
    struct nvme_sqe sqe = {.opcode = NVME_FABRICS,
                           .fctype = fctype,
                           .psdt = SQE_PSDT_SGL,
                           .cdw10 = 0xe9010100,
                           .cdw11 = (uint32_t)len};
    struct sgl sgl = rc_keyed(login->rc, 0, (uint32_t)len);

    return rc_command(login->rc, &sqe, &sgl, NULL, 0, NULL);
}

static void send_message(struct login *login, size_t len)
{
    memcpy(login->rc->mem, login->message, len);
    conf_status(login->conf, "Authentication Send",
                run_auth(login, FABRICS_AUTH_SEND, len), NVME_SC_SUCCESS);
}

static void receive_message(struct login *login)
{
    memset(login->rc->mem, 0xa5, BUFFER_LEN);
    conf_status(login->conf, "Authentication Receive",
                run_auth(login, FABRICS_AUTH_RECEIVE, BUFFER_LEN),
                NVME_SC_SUCCESS);
    memcpy(login->message, login->rc->mem, BUFFER_LEN);
}

static void take_challenge(struct login *login, uint8_t hashes, uint8_t dhs)
{
    send_message(
        login, auth_host_negotiate(&login->host, hashes, dhs, login->message));
    receive_message(login);
}

/* Make the Reply in login->message.  @return its length */
static size_t make_reply(struct login *login)
{
    uint8_t challenge[BUFFER_LEN];
    size_t len;

    memcpy(challenge, login->message, sizeof(challenge));
    len = auth_host_reply(&login->host, challenge, sizeof(challenge),
                          login->message);
    conf_check(login->conf, len != 0,
               "the answer to AUTH_Negotiate is %02x/%02x"
               " and not a Challenge",
               challenge[0], challenge[1]);
    return len;
}

static void prove_identity(struct login *login, uint8_t dhs)
{
    take_challenge(login, ALL_HASHES, dhs);
    send_message(login, make_reply(login));
    receive_message(login);
    conf_check(login->conf,
               auth_host_accepts(&login->host, login->message, BUFFER_LEN),
               "the answer to the Reply is no correct Success1 (%02x/%02x)",
               login->message[0], login->message[1]);
}

static void expect_failure(struct login *login, uint8_t explanation)
{
    conf_equal(login->conf, "AUTH_TYPE", login->message[0], 0x00);
    conf_equal(login->conf, "AUTH_ID: AUTH_Failure1", login->message[1], 0xf0);
    conf_equal(login->conf, "reason code", login->message[6], 1);
    conf_equal(login->conf, "reason code explanation", login->message[7],
               explanation);
    conf_pass(login->conf, NVMF_QUIET_US);
    nvmf_expect_gone(login->rc);
    conf_expect_alive(login->conf);
}

static uint16_t get_csts(struct login *login)
{
    uint64_t value;

    return nvmf_get(login->rc, PROPERTY_CSTS, 4, &value);
}

static void expect_live(struct login *login)
{
    conf_status(login->conf, "Property Get after authentication",
                get_csts(login), NVME_SC_SUCCESS);
    rc_close(login->rc);
    remove_host(login->conf);
}

static void connect_says_so(struct conf *conf)
{
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    conf_equal(conf, "AUTHREQ: ATR without ASCR", login->authreq, ATR);
    rc_close(login->rc);
    remove_host(conf);
    login = open_login(conf, SECRET, "");
    conf_equal(conf, "AUTHREQ of a host without a key", login->authreq, 0);
    conf_status(conf, "Authentication Send without a key",
                run_auth(login, FABRICS_AUTH_SEND, 72), NVME_SC_INVALID_OPCODE);
    rc_close(login->rc);
}

static void one_way(struct conf *conf)
{
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    prove_identity(login, DH_NULL);
    expect_live(login);
}

static void two_way(struct conf *conf)
{
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, SECRET, DRIVE_SECRET);
    prove_identity(login, DH_NULL);
    conf_status(conf, "Property Get before Success2", get_csts(login),
                NVME_SC_AUTH_REQUIRED);
    auth_success2_emit(login->message, login->host.t_id);
    send_message(login, AUTH_SUCCESS2_LEN);
    expect_live(login);
}

static void every_hash(struct conf *conf)
{
    static const char *const least[] = {"sha256", "sha384", "sha512"};

    for (size_t i = 0; i < ARRAY_LEN(least); i++) {
        struct login *login;

        add_host(conf, least[i]);
        login = open_login(conf, SECRET, "");
        prove_identity(login, DH_NULL);
        conf_equal(conf, "hash function", login->host.hash, AUTH_SHA256 + i);
        expect_live(login);
    }
}

static void group_2048(struct conf *conf)
{
    struct login *login;

    add_host(conf, "sha256 ffdhe2048");
    login = open_login(conf, SECRET, "");
    prove_identity(login, 0x3f);
    conf_equal(conf, "group", login->host.dh, AUTH_FFDHE2048);
    expect_live(login);
}

static void commands_before(struct conf *conf)
{
    struct nvme_sqe identify = {.opcode = ADMIN_IDENTIFY, .cdw10 = 1};
    struct login *login;
    struct sgl sgl;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    sgl = rc_keyed(login->rc, 0, 4096);
    conf_status(conf, "Property Get", get_csts(login), NVME_SC_AUTH_REQUIRED);
    conf_status(conf, "Property Set",
                nvmf_set(login->rc, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_AUTH_REQUIRED);
    conf_status(conf, "Identify",
                rc_command(login->rc, &identify, &sgl, NULL, 0, NULL),
                NVME_SC_AUTH_REQUIRED);
    conf_status(conf, "Authentication Receive before Send",
                run_auth(login, FABRICS_AUTH_RECEIVE, BUFFER_LEN),
                NVME_SC_COMMAND_SEQUENCE);
    prove_identity(login, DH_NULL);
    expect_live(login);
}

static void wrong_secret(struct conf *conf)
{
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, OTHER_SECRET, "");
    take_challenge(login, ALL_HASHES, DH_NULL);
    send_message(login, make_reply(login));
    receive_message(login);
    expect_failure(login, AUTH_FAILED_PROOF);
    remove_host(conf);
}

/* The host's entry changes when the drive has checked the Reply, but the host
 * has not fetched Success1 yet. */
static void changed_meanwhile(struct conf *conf)
{
    static const char *const changes[] = {
        "host remove " HOST_NQN,
        "host secret " HOST_NQN " " OTHER_SECRET,
    };

    for (size_t i = 0; i < ARRAY_LEN(changes); i++) {
        struct login *login;

        add_host(conf, "");
        login = open_login(conf, SECRET, "");
        take_challenge(login, ALL_HASHES, DH_NULL);
        send_message(login, make_reply(login));
        run_console(conf, changes[i]);
        receive_message(login);
        expect_failure(login, AUTH_FAILED_PROOF);
    }
    remove_host(conf);
}

/* The same when the drive waits for Success2 of a host that asked for the
 * drive's proof. */
static void changed_before_success2(struct conf *conf)
{
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, SECRET, DRIVE_SECRET);
    prove_identity(login, DH_NULL);
    run_console(conf, "host secret " HOST_NQN " " OTHER_SECRET);
    auth_success2_emit(login->message, login->host.t_id);
    send_message(login, AUTH_SUCCESS2_LEN);
    conf_pass(conf, NVMF_QUIET_US);
    nvmf_expect_gone(login->rc);
    conf_expect_alive(conf);
    remove_host(conf);
}

static void replay_reply(struct conf *conf)
{
    uint8_t reply[BUFFER_LEN];
    struct login *login;
    size_t len;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    take_challenge(login, ALL_HASHES, DH_NULL);
    len = make_reply(login);
    memcpy(reply, login->message, len);
    rc_close(login->rc);
    login = open_login(conf, SECRET, "");
    take_challenge(login, ALL_HASHES, DH_NULL);
    memcpy(login->message, reply, len);
    send_message(login, len);
    receive_message(login);
    expect_failure(login, AUTH_FAILED_PROOF);
    remove_host(conf);
}

static void downgrade_offer(struct conf *conf)
{
    struct login *login;

    add_host(conf, "sha384 ffdhe2048");
    login = open_login(conf, SECRET, "");
    take_challenge(login, BIT(AUTH_SHA256), 0x3f);
    expect_failure(login, AUTH_FAILED_HASH);
    login = open_login(conf, SECRET, "");
    take_challenge(login, ALL_HASHES, DH_NULL);
    expect_failure(login, AUTH_FAILED_DH);
    remove_host(conf);
}

static void out_of_order(struct conf *conf)
{
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    auth_success2_emit(login->message, login->host.t_id);
    send_message(login, AUTH_SUCCESS2_LEN);
    receive_message(login);
    expect_failure(login, AUTH_FAILED_MESSAGE);
    login = open_login(conf, SECRET, "");
    take_challenge(login, ALL_HASHES, DH_NULL);
    send_message(login, auth_host_negotiate(&login->host, ALL_HASHES, DH_NULL,
                                            login->message));
    receive_message(login);
    expect_failure(login, AUTH_FAILED_MESSAGE);
    remove_host(conf);
}

/* The drive still computes what the Challenge needs, and no Receive waits. */
static void early_message(struct conf *conf)
{
    struct login *login;
    uint8_t message[128];
    size_t len;

    add_host(conf, "sha256 ffdhe2048");
    login = open_login(conf, SECRET, "");
    len = auth_host_negotiate(&login->host, ALL_HASHES, BIT(AUTH_FFDHE2048),
                              login->message);
    memcpy(message, login->message, len);
    send_message(login, len);
    memcpy(login->message, message, len);
    send_message(login, len);
    conf_pass(conf, NVMF_QUIET_US);
    receive_message(login);
    expect_failure(login, AUTH_FAILED_MESSAGE);
    remove_host(conf);
}

static void other_transaction(struct conf *conf)
{
    struct login *login;
    size_t len;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    take_challenge(login, ALL_HASHES, DH_NULL);
    len = make_reply(login);
    login->message[AUTH_T_ID] ^= 1;
    send_message(login, len);
    receive_message(login);
    expect_failure(login, AUTH_FAILED_PAYLOAD);
    remove_host(conf);
}

static void weak_value(struct conf *conf)
{
    struct login *login;
    size_t len;

    add_host(conf, "sha256 ffdhe2048");
    login = open_login(conf, SECRET, "");
    take_challenge(login, ALL_HASHES, BIT(AUTH_FFDHE2048));
    len = make_reply(login);
    memset(login->message + len - 256, 0, 255);
    login->message[len - 1] = 1; /* the secret would be 1, too */
    send_message(login, len);
    receive_message(login);
    expect_failure(login, AUTH_FAILED_PAYLOAD);
    remove_host(conf);
}

static void authenticate_again(struct conf *conf)
{
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    prove_identity(login, DH_NULL);
    take_challenge(login, ALL_HASHES, DH_NULL);
    conf_status(conf, "Property Get during the second authentication",
                get_csts(login), NVME_SC_SUCCESS);
    send_message(login, make_reply(login));
    receive_message(login);
    conf_check(conf,
               auth_host_accepts(&login->host, login->message, BUFFER_LEN),
               "the second authentication failed");
    expect_live(login);
}

static void io_queue(struct conf *conf)
{
    struct login *login, *io = conf_alloc(conf, sizeof(*io));
    struct nvme_sqe read = nvmf_io(conf, NVM_READ, 0, 1);
    struct nvmf_attempt *attempt;
    struct sgl sgl;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    prove_identity(login, DH_NULL);
    conf_status(conf, "Property Set CC",
                nvmf_set(login->rc, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(login->rc, CSTS_RDY, CSTS_RDY);
    *io = *login;
    attempt = nvmf_attempt_io(login->rc, 1);
    conf_status(conf, "Connect of the I/O queue", connect_with(io, attempt),
                NVME_SC_SUCCESS);
    conf_equal(conf, "AUTHREQ of the I/O queue", io->authreq, ATR);
    sgl = rc_keyed(io->rc, 0, 512);
    conf_status(conf, "Read before authentication",
                rc_command(io->rc, &read, &sgl, NULL, 0, NULL),
                NVME_SC_AUTH_REQUIRED);
    prove_identity(io, DH_NULL);
    conf_status(conf, "Read", rc_command(io->rc, &read, &sgl, NULL, 0, NULL),
                NVME_SC_SUCCESS);
    rc_close(io->rc);
    expect_live(login);
}

/* An enabled admin queue of the host with a key. */
static struct login *open_enabled(struct conf *conf)
{
    struct login *login = open_login(conf, SECRET, "");

    prove_identity(login, DH_NULL);
    conf_status(conf, "Property Set CC",
                nvmf_set(login->rc, PROPERTY_CC, 4, NVMF_CC_ENABLE),
                NVME_SC_SUCCESS);
    nvmf_wait_csts(login->rc, CSTS_RDY, CSTS_RDY);
    return login;
}

static uint16_t claim_queue(struct login *login, struct login *io)
{
    struct nvmf_attempt *attempt = nvmf_attempt_io(login->rc, 1);

    *io = *login;
    return connect_with(io, attempt);
}

/* Who knows a host's names, which are no secret, gets none of its queues, in
 * whichever order the two come. */
static void io_queue_yields(struct conf *conf)
{
    add_host(conf, "");
    for (unsigned int first = 0; first < 2; first++) {
        struct login *login = open_enabled(conf);
        struct login *io = conf_alloc(conf, 2 * sizeof(*io));

        for (unsigned int i = 0; i < 2; i++) {
            conf_status(conf, "Connect of the I/O queue",
                        claim_queue(login, &io[i]), NVME_SC_SUCCESS);
        }
        prove_identity(&io[first], DH_NULL);
        conf_pass(conf, NVMF_QUIET_US);
        nvmf_expect_gone(io[1 - first].rc);
        conf_status(conf, "a further Connect of the queue",
                    claim_queue(login, &io[1 - first]),
                    NVME_SC_COMMAND_SEQUENCE);
        nvmf_expect_works(login->rc);
        rc_close(io[1 - first].rc);
        rc_close(io[first].rc);
        rc_close(login->rc);
    }
    remove_host(conf);
}

/* Whether Identify CNS 13h lists a controller. */
static bool is_in_list(struct conf *conf, struct rc *rc, uint16_t cntlid)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_IDENTIFY,
                           .psdt = SQE_PSDT_SGL,
                           .cdw10 = CNS_CONTROLLERS};
    struct sgl sgl = rc_keyed(rc, 0, BUFFER_LEN);
    uint16_t count;

    conf_status(conf, "Identify CNS 13h",
                rc_command(rc, &sqe, &sgl, NULL, 0, NULL), NVME_SC_SUCCESS);
    count = get_le16(rc->mem);
    for (uint16_t i = 0; i < count; i++) {
        if (get_le16(rc->mem + 2 + 2 * (size_t)i) == cntlid) {
            return true;
        }
    }
    return false;
}

static void unproven_is_not_listed(struct conf *conf)
{
    struct nvmf_pair other =
        nvmf_open_pair(conf, &(struct rc_config){.host = 1});
    struct login *login;
    uint16_t cntlid;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    cntlid = login->rc->config.cntlid;
    conf_check(conf, !is_in_list(conf, other.admin, cntlid),
               "a controller is listed before authentication");
    prove_identity(login, DH_NULL);
    conf_check(conf, is_in_list(conf, other.admin, cntlid),
               "a controller is not listed after authentication");
    nvmf_close_pair(&other);
    expect_live(login);
}

static void refuse_fields(struct conf *conf)
{
    static const struct {
        const char *what;
        uint32_t cdw10, cdw11;
    } rows[] = {
        {"SECP EAh", 0xea010100, 72},
        {"SPSP0 2", 0xe9010200, 72},
        {"SPSP1 2", 0xe9020100, 72},
        {"TL 0", 0xe9010100, 0},
    };
    struct login *login;

    add_host(conf, "");
    login = open_login(conf, SECRET, "");
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        struct nvme_sqe sqe = {.opcode = NVME_FABRICS,
                               .fctype = FABRICS_AUTH_SEND,
                               .psdt = SQE_PSDT_SGL,
                               .cdw10 = rows[row].cdw10,
                               .cdw11 = rows[row].cdw11};
        struct sgl sgl = rc_keyed(login->rc, 0, 72);

        conf_status(conf, rows[row].what,
                    rc_command(login->rc, &sqe, &sgl, NULL, 0, NULL),
                    NVME_SC_INVALID_FIELD);
    }
    prove_identity(login, DH_NULL);
    expect_live(login);
}

/* The list is exclusive only while the Connect is under way, so that a failure
 * of this test keeps no other host out. */
static void not_on_the_list(struct conf *conf)
{
    struct login *login = conf_alloc(conf, sizeof(*login));
    struct nvmf_attempt *attempt =
        nvmf_attempt_new(conf, &(struct rc_config){0});
    uint16_t status;

    login->conf = conf;
    run_console(conf, "host exclusive on");
    status = connect_with(login, attempt);
    run_console(conf, "host exclusive off");
    conf_status(conf, "Connect of a host that is not on the list", status,
                NVME_SC_CONNECT_INVALID_HOST);
    conf_status(conf, "Connect again", connect_with(login, attempt),
                NVME_SC_SUCCESS);
    rc_close(attempt->rc);
}

#define TEST(id, clause, purpose, run)                                         \
    CONF_TEST(id, clause, purpose, run, .needs = CONF_NEEDS_CONTROL)

static const struct conf_test tests[] = {
    TEST("auth.connect", "3.3; Base 2.0 8.13.2",
         "Connect tells a host with a key that it has to authenticate",
         connect_says_so),
    TEST("auth.one-way", "Base 2.0 8.13.5",
         "a host that knows the secret authenticates", one_way),
    TEST("auth.two-way", "Base 2.0 8.13.5",
         "the drive proves its identity to a host that asks for it", two_way),
    TEST("auth.hashes", "Base 2.0 8.13.5.2",
         "SHA-256, SHA-384 and SHA-512 work", every_hash),
    TEST("auth.group", "Base 2.0 8.13.5.3",
         "a secret is agreed on in the group ffdhe2048", group_2048),
    TEST("auth.before", "3.3; Base 2.0 8.13.2",
         "other commands get Authentication Required before", commands_before),
    TEST("auth.wrong", "Base 2.0 8.13.5.4",
         "a host with a wrong secret is refused", wrong_secret),
    TEST("auth.changed", "Base 2.0 8.13.5",
         "a host whose entry changes after its Reply is refused",
         changed_meanwhile),
    TEST("auth.changed-later", "Base 2.0 8.13.5",
         "a host whose entry changes before its Success2 is refused",
         changed_before_success2),
    TEST("auth.replay", "Base 2.0 8.13.5.4",
         "the Reply of an earlier transaction is refused", replay_reply),
    TEST("auth.downgrade", "Base 2.0 8.13.5.2",
         "a host that offers only weaker algorithms is refused",
         downgrade_offer),
    TEST("auth.order", "Base 2.0 8.13.5",
         "messages out of order end the connection", out_of_order),
    TEST("auth.early", "Base 2.0 8.13.5",
         "a message that comes too early ends the connection", early_message),
    TEST("auth.transaction", "Base 2.0 8.13.5.4",
         "a Reply with another T_ID is refused", other_transaction),
    TEST("auth.value", "Base 2.0 8.13.5.4; RFC 7919 5.1",
         "the DH value 1 is refused", weak_value),
    TEST("auth.again", "Base 2.0 8.13.3",
         "a live queue authenticates again and works meanwhile",
         authenticate_again),
    TEST("auth.io-queue", "3.3", "each I/O queue authenticates", io_queue),
    TEST("auth.io-queue-yields", "3.3",
         "the first proof decides who gets a queue identifier",
         io_queue_yields),
    TEST("auth.not-listed", "3.3; NVMe 1.4 5.15.2.13",
         "a controller is not listed before authentication",
         unproven_is_not_listed),
    TEST("auth.fields", "3.1; Base 2.0 6.1",
         "invalid fields of Authentication Send are refused", refuse_fields),
    TEST("auth.list", "3.3", "an exclusive list keeps other hosts out",
         not_on_the_list),
};
CONF_TESTS(conf_tests_nvmf_auth, "nvmf", tests);
