/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The handlers of management requests about hosts, fault rules, crash dumps,
 * hardware errors and peripherals.  The others, and the protocol, are tested in
 * tests/native/test_mgmt.c.
 */
#include "tests/auth_secrets.h"
#include "tests/native/bed.h"

#include <string.h>

#include "firmware/requests/mgmt_requests.h"
#include "firmware/telemetry/crash_store.h"
#include "tests/test_fixture.h"

#define NQN       "nqn.2014-08.org.example:host"
#define FAULT     "\"rule\":3,\"do\":\"status\",\"status\":130"
#define PDU_FAULT "\"rule\":3,\"place\":\"pdu\",\"do\":\"data-digest\""

enum { DUMP_LEN = 5000, DUMP_NUMBER = 7 };

static struct bed bed;
static char answer[MGMT_REPLY_MAX];
static enum crash_cause provoked;
static unsigned int provocations;

static bool read_dump(void *ctx, uint32_t below, uint8_t *buf, size_t *len,
                      uint32_t *number)
{
    (void)ctx;
    for (unsigned int i = 0; i < DUMP_LEN; i++) {
        buf[i] = (uint8_t)i;
    }
    *len = DUMP_LEN;
    *number = DUMP_NUMBER;
    return below > DUMP_NUMBER;
}

static void note_cause(enum crash_cause cause)
{
    provoked = cause;
    provocations++;
}

static int set_up(void **state)
{
    static const struct crash_store crashes = {.read = read_dump,
                                               .provoke = note_cause};
    const struct bed like = {.mtu_bytes = 1500};

    (void)state;
    bed_init_like(&bed, &like);
    bed.crashes = &crashes;
    bed_power_cycle(&bed);
    provocations = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    bed_end(&bed);
    return 0;
}

TEST_FIXTURE(set_up, tear_down)

/* Handle a request with these arguments.  @return whether it is accepted;
 * `answer` has the members of the result, or the refusal */
static bool handle_request(const char *request, const char *arguments)
{
    char text[MGMT_LINE_MAX];
    struct mgmt_refusal refusal = {"refused", "", ""};
    struct json_args args;
    struct json out;
    bool is_accepted = false;

    log_format(text, sizeof(text), "{%s}", arguments);
    assert_true(json_parse(&args, text));
    json_init(&out, answer, sizeof(answer) - 1);
    for (size_t i = 0; i < MGMT_REQUESTS; i++) {
        if (strcmp(mgmt_requests[i].name, request) == 0) {
            is_accepted = mgmt_requests[i].handle(&bed.drive->drive.parts,
                                                  &args, &out, &refusal);
        }
    }
    assert_false(out.is_cut);
    answer[out.len] = '\0';
    if (!is_accepted) {
        log_format(answer, sizeof(answer), "%s: %s", refusal.code,
                   refusal.text);
    }
    return is_accepted;
}

static void expect_answer(const char *request, const char *arguments,
                          const char *part)
{
    assert_true(handle_request(request, arguments));
    if (strstr(answer, part) == NULL) {
        fail_msg("the answer to %s is %s, which has no %s", request, answer,
                 part);
    }
}

static void expect_refusal(const char *request, const char *arguments,
                           const char *part)
{
    assert_false(handle_request(request, arguments));
    if (strstr(answer, part) == NULL) {
        fail_msg("the refusal of %s is %s, which has no %s", request, answer,
                 part);
    }
}

/* ---- Hosts. */

#define TLS_KEY                                                                \
    "NVMeTLSkey-1:01:"                                                         \
    "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:"

static void test_hosts_are_added_changed_and_removed(void **state)
{
    (void)state;
    expect_answer("hosts", "", "\"exclusive\":false,\"hosts\":[]");
    expect_answer("host-set", "\"nqn\":\"" NQN "\",\"secret\":\"" SECRET "\"",
                  "");
    expect_answer("hosts", "",
                  "\"nqn\":\"" NQN "\",\"secret\":true,\"drive-secret\":false,"
                  "\"tls-key\":false,\"tls-identities\":[],"
                  "\"least-hash\":\"sha256\",\"least-group\":\"null\"");
    assert_null(strstr(answer, "DHHC"));
    expect_answer("host-set", "\"nqn\":\"" NQN "\",\"tls-key\":\"" TLS_KEY "\"",
                  "");
    expect_answer("hosts", "",
                  "\"tls-key\":true,\"tls-identities\":[\"NVMe0R01 " NQN
                  " nqn.");
    expect_answer("hosts", "", "\"NVMe1R01 " NQN " nqn.");
    assert_null(strstr(answer, "NVMeTLS"));
    expect_answer("host-set", "\"nqn\":\"" NQN "\",\"tls-key\":\"\"", "");
    expect_answer("host-set",
                  "\"nqn\":\"" NQN "\",\"drive-secret\":\"" SECRET "\","
                  "\"least-hash\":\"sha384\",\"least-group\":\"ffdhe3072\"",
                  "");
    expect_answer("hosts", "",
                  "\"secret\":true,\"drive-secret\":true,\"tls-key\":false,"
                  "\"tls-identities\":[],\"least-hash\":"
                  "\"sha384\",\"least-group\":\"ffdhe3072\"");
    expect_answer("hosts-exclusive", "\"on\":true", "");
    expect_answer("hosts", "", "\"exclusive\":true");
    expect_answer("host-remove", "\"nqn\":\"" NQN "\"", "");
    expect_answer("hosts", "", "\"hosts\":[]");
}

/* TLS_KEY as text, or its first bytes as digits. */
static bool has_key(const char *text)
{
    return strstr(text, "AQIDBAUGBwgJ") != NULL ||
           strstr(text, "0102030405060708") != NULL;
}

static void test_no_answer_and_no_line_of_the_log_has_a_key(void **state)
{
    (void)state;
    expect_answer("host-set",
                  "\"nqn\":\"" NQN "\",\"secret\":\"" SECRET
                  "\",\"tls-key\":\"" TLS_KEY "\"",
                  "");
    for (size_t i = 0; i < MGMT_REQUESTS; i++) {
        if (strcmp(mgmt_requests[i].name, "shutdown") != 0) {
            (void)handle_request(mgmt_requests[i].name, "");
            if (has_key(answer)) {
                fail_msg("%s shows a key: %s", mgmt_requests[i].name, answer);
            }
            assert_null(strstr(answer, "AAECAwQFBgcI"));
        }
    }
    assert_false(has_key(machine_console(&bed.drive->machine)));
    /* It would have been found. */
    log_format(answer, sizeof(answer), "{\"tls-key\":\"%s\"}", TLS_KEY);
    assert_true(has_key(answer));
    log_format(answer, sizeof(answer), "key 0102030405060708090a");
    assert_true(has_key(answer));
}

static void test_hosts_are_listed_in_pages(void **state)
{
    (void)state;
    for (char letter = 'a'; letter < 'a' + 10; letter++) {
        char arguments[80];

        log_format(arguments, sizeof(arguments), "\"nqn\":\"" NQN "%c\"",
                   letter);
        expect_answer("host-set", arguments, "");
    }
    expect_answer("hosts", "", "\"next\":8");
    assert_null(strstr(answer, NQN "i"));
    expect_answer("hosts", "\"from\":8", NQN "i");
    assert_null(strstr(answer, "\"next\""));
    expect_answer("hosts", "\"from\":18446744073709551615", "\"hosts\":[]");
}

static void test_wrong_hosts_are_refused(void **state)
{
    (void)state;
    expect_refusal("host-set", "", "bad-argument");
    expect_refusal("host-set", "\"nqn\":\"host\"", "bad-argument");
    expect_refusal("host-set", "\"nqn\":\"" NQN "\",\"secret\":\"DHHC-1:00:x\"",
                   "bad-argument");
    expect_refusal("host-set",
                   "\"nqn\":\"" NQN "\",\"drive-secret\":\"" SECRET "\"",
                   "bad-argument");
    expect_refusal("host-set", "\"nqn\":\"" NQN "\",\"least-hash\":\"md5\"",
                   "bad-argument");
    expect_refusal("host-set", "\"nqn\":\"" NQN "\",\"least-group\":\"2048\"",
                   "bad-argument");
    expect_refusal("host-remove", "\"nqn\":\"" NQN "\"", "bad-argument");
    expect_refusal("hosts-exclusive", "", "true or false");
    expect_answer("hosts", "", "\"hosts\":[]");
}

static void test_connects_of_hosts_that_are_not_on_the_list_are_counted(
    void **state)
{
    struct host_target target;

    (void)state;
    expect_answer("authentication", "",
                  "\"proven\":0,\"refused\":0,\"expired\":0,\"displaced\":0,"
                  "\"skipped\":0,\"disallowed\":0");
    expect_answer("hosts-exclusive", "\"on\":true", "");
    assert_true(native_target(bed.host, bed.drive, 0, &target));
    assert_int_not_equal(host_connect(&bed.host->host, &target), 0);
    host_vanish(&bed.host->host);
    expect_answer("authentication", "", "\"disallowed\":1");
}

/* ---- Fault rules. */

static void test_a_fault_rule_is_added_turned_and_removed(void **state)
{
    struct nvme_host *host = &bed.host->host;

    (void)state;
    bed_connect(&bed, 0, 1, 64);
    expect_answer("faults", "", "\"faults\":[]");
    expect_answer("fault-add", FAULT ",\"queue\":\"admin\",\"opcode\":24", "");
    expect_answer("faults", "", "{\"rule\":3,\"matched\":0,\"fired\":0}");
    assert_int_equal(host_keep_alive(host) & NVME_SC_MASK, 130);
    expect_answer("faults", "", "{\"rule\":3,\"matched\":1,\"fired\":1}");
    expect_answer("fault-turn", "\"rule\":3,\"on\":false", "");
    assert_int_equal(host_keep_alive(host), 0);
    expect_answer("fault-turn", "\"rule\":3,\"on\":true", "");
    assert_int_equal(host_keep_alive(host) & NVME_SC_MASK, 130);
    expect_answer("fault-remove", "\"rule\":3", "");
    assert_int_equal(host_keep_alive(host), 0);
    expect_answer("faults", "", "\"faults\":[]");
    host_disconnect(host);
}

/* What the rule does is tested with NVMe/TCP. */
static void test_a_rule_for_pdus_is_added_turned_and_removed(void **state)
{
    const struct nvme_tcp_faults *faults = &bed.drive->drive.tcp.pdu_faults;

    (void)state;
    expect_answer("fault-add",
                  PDU_FAULT ",\"type\":6,\"directions\":1,\"qid\":2", "");
    assert_int_equal(faults->count, 1);
    assert_int_equal(faults->list[0].action, NVME_TCP_FAULT_DATA_DIGEST);
    assert_int_equal(faults->list[0].type, 6);
    assert_int_equal(faults->list[0].queue, NVMF_FAULT_QID);
    assert_int_equal(faults->list[0].qid, 2);
    assert_true(faults->list[0].is_in);
    assert_false(faults->list[0].is_out);
    expect_answer("faults", "", "{\"rule\":3,\"matched\":0,\"fired\":0}");
    expect_answer("fault-turn", "\"rule\":3,\"on\":false", "");
    assert_true(faults->list[0].is_off);
    expect_answer("fault-remove", "\"rule\":3", "");
    assert_int_equal(faults->count, 0);

    expect_answer("fault-add", "\"rule\":4,\"place\":\"pdu\",\"do\":\"reset\"",
                  "");
    assert_int_equal(faults->list[0].type, NVME_TCP_FAULT_ANY);
    assert_int_equal(faults->list[0].queue, NVMF_FAULT_ANY_QUEUE);
    assert_true(faults->list[0].is_in && faults->list[0].is_out);
    expect_answer("fault-remove", "\"rule\":4", "");
}

static void test_wrong_fault_rules_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "\"rule\":0,\"do\":\"drop\"",
        "\"rule\":4294967296,\"do\":\"drop\"",
        "\"rule\":3,\"do\":\"dance\"",
        "\"rule\":3,\"do\":\"delay\"",
        "\"rule\":3,\"do\":\"status\"",
        "\"rule\":3,\"do\":\"status\",\"status\":0",
        "\"rule\":3,\"do\":\"status\",\"status\":2048",
        FAULT ",\"queue\":\"both\"",
        FAULT ",\"qid\":65536",
        FAULT ",\"opcode\":256",
        FAULT ",\"controller\":65536",
        FAULT ",\"nsid\":4294967296",
        FAULT ",\"nth\":4294967296",
        FAULT ",\"chance\":4294967297",
        FAULT ",\"place\":\"moon\"",
        "\"rule\":3,\"place\":\"pdu\",\"do\":\"drop\"",
        PDU_FAULT ",\"type\":256",
        PDU_FAULT ",\"directions\":0",
        PDU_FAULT ",\"directions\":4",
        PDU_FAULT ",\"queue\":\"both\"",
        PDU_FAULT ",\"nth\":4294967296",
    };

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        expect_refusal("fault-add", wrong[i], "bad-argument");
    }
    expect_answer("fault-add", FAULT, "");
    expect_refusal("fault-add", FAULT, "refused");
    expect_refusal("fault-turn", "\"rule\":3", "true or false");
    expect_refusal("fault-turn", "\"rule\":4,\"on\":true", "bad-argument");
    expect_refusal("fault-remove", "\"rule\":4", "bad-argument");
    expect_refusal("fault-remove", "", "bad-argument");
    expect_answer("fault-remove", "\"rule\":3", "");
}

/* ---- Crash dumps. */

static void test_a_crash_dump_is_read_in_pieces(void **state)
{
    (void)state;
    /* The dump has no head that this firmware understands. */
    expect_answer("crashes", "", "\"crashes\":[]");
    expect_answer("crash-data", "\"number\":7", "\"data\":\"000102030405");
    assert_non_null(strstr(answer, "\"next\":4096"));
    expect_answer("crash-data", "\"number\":7,\"from\":4096",
                  "\"data\":\"000102");
    assert_null(strstr(answer, "\"next\""));
    expect_answer("crash-data", "\"number\":7,\"from\":4999",
                  "\"data\":\"87\"");
    expect_answer("crash-data", "\"number\":7,\"from\":5000", "\"data\":\"\"");
    expect_refusal("crash-data", "\"number\":7,\"from\":5001", "bad-argument");
    expect_refusal("crash-data", "\"number\":8", "bad-argument");
    expect_refusal("crash-data", "\"number\":4294967302", "bad-argument");
    expect_refusal("crash-data", "", "bad-argument");
}

static void test_a_crash_is_provoked_by_its_name_only(void **state)
{
    (void)state;
    expect_refusal("crash-now", "", "bad-argument");
    expect_refusal("crash-now", "\"how\":\"memory\"", "bad-argument");
    assert_int_equal(provocations, 0);
    expect_answer("crash-now", "\"how\":\"trap\"", "");
    assert_int_equal(provocations, 1);
    assert_string_equal(crash_cause_name(provoked), "trap");
}

/* ---- Hardware. */

static void test_hardware_errors_are_listed_newest_first(void **state)
{
    struct drive *drive = &bed.drive->drive;

    (void)state;
    expect_answer("hardware-errors", "",
                  "\"memory-corrected\":0,\"memory-lost\":0,\"nand-transfer\":0"
                  ",\"rnic-transfer\":0,\"nand-rule\":0,\"dropped\":0,"
                  "\"errors\":[]");
    for (uint64_t i = 1; i <= 3; i++) {
        const struct hw_error error = {.kind = HW_ERROR_ERASE, .address = i};

        hw_log_note(&drive->hw_log, &error, drive->now_us);
    }
    native_world_pass(&bed.world, UINT64_C(100000000));
    expect_answer("hardware-errors", "", "\"kind\":\"erase-failed\"");
    assert_true(strstr(answer, "\"address\":3,") != NULL);
    assert_true(strstr(answer, "\"address\":3,") <
                strstr(answer, "\"address\":1,"));
}

static void test_modules_and_sensors_are_listed(void **state)
{
    (void)state;
    native_world_pass(&bed.world, UINT64_C(3000000000));
    expect_answer("modules", "", "\"modules\":[{\"port\":0,\"state\":");
    assert_non_null(strstr(answer, "{\"port\":1,\"state\":"));
    expect_answer("sensors", "", "\"answers\":true,\"millikelvin\":");
    assert_non_null(strstr(answer, "\"bmc\":{\"requests\":0,"));
}
