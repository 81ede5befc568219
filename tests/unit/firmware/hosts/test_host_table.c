/* SPDX-License-Identifier: BSD-2-Clause */
/* Changes of the list of hosts, and what the target finds in it. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <stdio.h>
#include <cmocka.h>

#include "firmware/hosts/host_table.h"
#include "tests/auth_secrets.h"
#include "tests/own_stack.h"
#include "tests/test_fixture.h"

#include <string.h>

#define NQN "nqn.2014-08.org.example:host"

#define PSK "NVMeTLSkey-1:00:AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:"

static struct host_table table;
static unsigned int saves;
static enum host_save result_of_save;

static enum host_save save_list(void *ctx, const struct host_list *list)
{
    (void)ctx;
    assert_ptr_equal(list, &table.list);
    saves += result_of_save == HOST_SAVED;
    return result_of_save;
}

static int empty_table(void **state)
{
    (void)state;
    memset(&table, 0, sizeof(table));
    table.save = save_list;
    saves = 0;
    result_of_save = HOST_SAVED;
    return 0;
}

TEST_FIXTURE(empty_table, NULL)

static bool find_host(const char *nqn, struct nvmf_host *host)
{
    struct nvmf_hosts ops = host_table_ops(&table);

    *host = (struct nvmf_host){0};
    return ops.find(ops.ctx, nqn, host);
}

static void test_by_default_every_host_may_connect_without_a_key(void **state)
{
    struct nvmf_host host;

    (void)state;
    assert_true(find_host(NQN, &host));
    assert_null(host.host_key);
    assert_true(find_host("", &host));
}

static void test_an_exclusive_list_keeps_others_out(void **state)
{
    struct nvmf_host host;

    (void)state;
    assert_int_equal(host_table_set(&table, NQN, &(struct host_change){0}),
                     HOST_OK);
    assert_int_equal(host_table_set_exclusive(&table, true), HOST_OK);
    assert_true(find_host(NQN, &host));
    assert_int_equal(host.host_key->len, 0);
    assert_false(find_host(NQN "2", &host));
    assert_false(find_host("", &host));
    assert_int_equal(saves, 2);
}

/* A list may be made while the configuration is lost, but opens nothing. */
static void test_a_closed_drive_lets_no_host_in(void **state)
{
    const struct host_change change = {.tls_key = PSK};
    struct nvmf_host host;

    (void)state;
    table.is_closed = true;
    assert_false(find_host(NQN, &host));
    assert_int_equal(host_table_set(&table, NQN, &change), HOST_OK);
    assert_int_equal(host_table_set_exclusive(&table, false), HOST_OK);
    assert_false(find_host(NQN, &host));
    assert_false(find_host("", &host));
    assert_null(host_table_tls_key(&table, NQN));
    table.is_closed = false;
    assert_true(find_host(NQN, &host));
    assert_non_null(host_table_tls_key(&table, NQN));
}

static void test_a_change_keeps_what_it_does_not_name(void **state)
{
    struct nvmf_host host;

    (void)state;
    assert_int_equal(
        host_table_set(&table, NQN,
                       &(struct host_change){.host_secret = SECRET,
                                             .ctrl_secret = SECRET,
                                             .least_hash = "sha384",
                                             .least_dh = "ffdhe3072"}),
        HOST_OK);
    assert_int_equal(
        host_table_set(&table, NQN, &(struct host_change){.least_dh = "null"}),
        HOST_OK);
    assert_true(find_host(NQN, &host));
    assert_int_equal(host.host_key->len, 32);
    assert_int_equal(host.ctrl_key->len, 32);
    assert_int_equal(host.least_hash, AUTH_SHA384);
    assert_int_equal(host.least_dh, AUTH_DH_NULL);
    assert_int_equal(
        host_table_set(&table, NQN, &(struct host_change){.ctrl_secret = ""}),
        HOST_OK);
    assert_int_equal(host.ctrl_key->len, 0);
    assert_int_equal(table.list.count, 1);
}

static void test_invalid_changes_change_nothing(void **state)
{
    static const struct {
        const char *nqn;
        struct host_change change;
        enum host_list_result result;
    } rows[] = {
        {"", {0}, HOST_BAD_NQN},
        {"nqn", {0}, HOST_BAD_NQN},
        {"nqn.a b", {0}, HOST_BAD_NQN},
        {"nqn.a\"b", {0}, HOST_BAD_NQN},
        {"nqn.a\x01", {0}, HOST_BAD_NQN},
        {NQN, {.host_secret = "secret"}, HOST_BAD_SECRET},
        {NQN, {.host_secret = SECRET, .ctrl_secret = "x"}, HOST_BAD_SECRET},
        {NQN, {.ctrl_secret = SECRET}, HOST_NEEDS_KEY},
        {NQN, {.least_hash = "md5"}, HOST_BAD_HASH},
        {NQN, {.least_hash = "none"}, HOST_BAD_HASH},
        {NQN, {.least_dh = "modp"}, HOST_BAD_DH},
    };

    (void)state;
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        assert_int_equal(
            host_table_set(&table, rows[row].nqn, &rows[row].change),
            rows[row].result);
        assert_int_equal(table.list.count, 0);
    }
    assert_int_equal(host_table_remove(&table, NQN), HOST_UNKNOWN);
    assert_int_equal(saves, 0);
    for (unsigned int i = 0; i < HOST_RESULTS; i++) {
        assert_non_null(host_list_result_text((enum host_list_result)i));
    }
}

static void test_names_have_up_to_223_characters(void **state)
{
    char nqn[226];

    (void)state;
    memset(nqn, 'a', sizeof(nqn));
    memcpy(nqn, "nqn.", 4);
    nqn[223] = '\0';
    assert_int_equal(host_table_set(&table, nqn, &(struct host_change){0}),
                     HOST_OK);
    nqn[223] = 'a';
    nqn[224] = '\0';
    assert_int_equal(host_table_set(&table, nqn, &(struct host_change){0}),
                     HOST_BAD_NQN);
}

static void test_a_full_list_refuses_one_more(void **state)
{
    char nqn[64];

    (void)state;
    for (unsigned int i = 0; i <= HOSTS_MAX; i++) {
        (void)snprintf(nqn, sizeof(nqn), NQN "-%u", i);
        assert_int_equal(host_table_set(&table, nqn, &(struct host_change){0}),
                         i < HOSTS_MAX ? HOST_OK : HOST_FULL);
    }
    assert_int_equal(host_table_set(&table, NQN "-5",
                                    &(struct host_change){.least_dh = "null"}),
                     HOST_OK);
    assert_int_equal(host_table_remove(&table, NQN "-5"), HOST_OK);
    assert_int_equal(table.list.count, HOSTS_MAX - 1);
    assert_string_equal(table.list.entry[5].nqn, NQN "-63");
}

static void test_a_change_that_cannot_be_saved_is_taken_back(void **state)
{
    struct nvmf_host host;

    (void)state;
    assert_int_equal(
        host_table_set(&table, NQN,
                       &(struct host_change){.host_secret = SECRET}),
        HOST_OK);
    result_of_save = HOST_SAVE_FAILED;
    assert_int_equal(host_table_set(&table, NQN "2", &(struct host_change){0}),
                     HOST_NOT_SAVED);
    assert_int_equal(
        host_table_set(&table, NQN, &(struct host_change){.host_secret = ""}),
        HOST_NOT_SAVED);
    assert_int_equal(host_table_remove(&table, NQN), HOST_NOT_SAVED);
    assert_int_equal(host_table_set_exclusive(&table, true), HOST_NOT_SAVED);
    assert_int_equal(table.list.count, 1);
    assert_false(table.list.is_exclusive);
    assert_true(find_host(NQN, &host));
    assert_int_equal(host.host_key->len, 32);
}

/* What is in force now is what is in force after the next start. */
static void test_a_change_in_one_copy_holds_and_is_reported(void **state)
{
    struct nvmf_host host;

    (void)state;
    assert_int_equal(host_table_set(&table, NQN, &(struct host_change){0}),
                     HOST_OK);
    result_of_save = HOST_SAVED_ONCE;
    assert_int_equal(
        host_table_set(&table, NQN,
                       &(struct host_change){.host_secret = SECRET}),
        HOST_SAVED_HALF);
    assert_true(find_host(NQN, &host));
    assert_int_equal(host.host_key->len, 32);
    assert_int_equal(host_table_set_exclusive(&table, true), HOST_SAVED_HALF);
    assert_true(table.list.is_exclusive);
    assert_int_equal(host_table_remove(&table, NQN), HOST_SAVED_HALF);
    assert_false(find_host(NQN, &host));
    assert_int_equal(table.list.entry[0].host_key.len, 0);
}

static void add_host(void *arg)
{
    (void)!host_table_set(arg, NQN,
                          &(struct host_change){.host_secret = SECRET});
}

static void remove_host(void *arg)
{
    (void)!host_table_remove(arg, NQN);
}

static void test_a_change_leaves_no_key_on_the_stack(void **state)
{
    uint8_t key[32];

    (void)state;
    own_stack_run(add_host, &table);
    assert_int_equal(table.list.entry[0].host_key.len, sizeof(key));
    memcpy(key, table.list.entry[0].host_key.bytes, sizeof(key));
    assert_false(own_stack_has(key, sizeof(key)));
    own_stack_run(add_host, &table);
    assert_false(own_stack_has(key, sizeof(key)));
    own_stack_run(remove_host, &table);
    assert_int_equal(table.list.count, 0);
    assert_false(own_stack_has(key, sizeof(key)));
}
