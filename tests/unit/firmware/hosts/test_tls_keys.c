/* SPDX-License-Identifier: BSD-2-Clause */
/* Which keys of TLS the drive has for a name that a host sends. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <string.h>
#include <cmocka.h>

#include "firmware/hosts/tls_keys.h"
#include "lib/util.h"
#include "nvmeof/wire/fabrics.h"
#include "tests/test_fixture.h"

#define HOST      "nqn.2014-08.org.example:host"
#define OTHER     "nqn.2014-08.org.example:other"
#define SUBSYSTEM "nqn.2014-08.org.example:drive"
#define DIGEST    "the digest of the generated key"

enum { NUMBER = 7 };

static struct host_table table;
static struct nvmf_config target_config;
static struct nvmf_generated_key generated;
static struct tls_crypto crypto;
static struct tls_keys keys;

/* ---- What is behind it. */

const struct nvmf_config *nvmf_target_config(const struct nvmf_target *target)
{
    (void)target;
    return &target_config;
}

const struct nvmf_generated_key *nvmf_target_generated_key(
    const struct nvmf_target *target, const char *hostnqn, const char *digest)
{
    (void)target;
    return strcmp(hostnqn, generated.hostnqn) == 0 &&
                   strcmp(digest, generated.digest) == 0
               ? &generated
               : NULL;
}

/* The key's first byte says how it was derived. */
bool tls_psk_derive(const struct tls_crypto *with,
                    const struct auth_key *configured,
                    const struct tls_identity *identity, enum tls_style style,
                    struct tls_secret *psk)
{
    assert_ptr_equal(with, &crypto);
    assert_ptr_equal(configured, host_table_tls_key(&table, HOST));
    assert_string_equal(identity->hostnqn, HOST);
    psk->bytes[0] = (uint8_t)(0x10 + style);
    return true;
}

void tls_psk_generated(const struct tls_crypto *with, const uint8_t *from,
                       struct tls_identity *identity, struct tls_secret *psk)
{
    assert_ptr_equal(with, &crypto);
    assert_int_equal(from[0], 0x55);
    assert_int_equal(identity->version, 1);
    assert_true(identity->is_generated);
    assert_int_equal(identity->hash, AUTH_SHA384);
    assert_string_equal(identity->hostnqn, HOST);
    assert_string_equal(identity->subnqn, SUBSYSTEM);
    memcpy(identity->digest, DIGEST, sizeof(DIGEST));
    memset(psk->bytes, 0x77, sizeof(psk->bytes));
}

/* ---- The tests. */

static int set_up(void **state)
{
    const struct host_change change = {
        .tls_key = "NVMeTLSkey-1:01:"
                   "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAl7OaH:"};

    (void)state;
    memset(&table, 0, sizeof(table));
    memset(&generated, 0, sizeof(generated));
    memcpy(target_config.subnqn, SUBSYSTEM, sizeof(SUBSYSTEM));
    assert_int_equal(host_table_set(&table, HOST, &change), HOST_OK);
    generated.number = NUMBER;
    generated.hash = AUTH_SHA384;
    memcpy(generated.hostnqn, HOST, sizeof(HOST));
    memcpy(generated.digest, DIGEST, sizeof(DIGEST));
    memset(generated.psk, 0x66, sizeof(generated.psk));
    keys = (struct tls_keys){.hosts = &table, .crypto = &crypto};
    return 0;
}

TEST_FIXTURE(set_up, NULL)

static struct tls_identity identity_of(const char *hostnqn, const char *subnqn)
{
    struct tls_identity identity = {.version = 1, .hash = AUTH_SHA384};

    memcpy(identity.hostnqn, hostnqn, strlen(hostnqn) + 1);
    memcpy(identity.subnqn, subnqn, strlen(subnqn) + 1);
    memcpy(identity.digest, DIGEST, sizeof(DIGEST));
    return identity;
}

static unsigned int find_keys(const struct tls_identity *identity,
                              struct tls_secret found[TLS_STYLES])
{
    memset(found, 0, TLS_STYLES * sizeof(found[0]));
    return tls_keys_find(&keys, identity, found);
}

static void test_a_configured_key_is_derived_in_every_style(void **state)
{
    static const char *const good[] = {SUBSYSTEM, NVME_DISCOVERY_NQN};
    struct tls_secret found[TLS_STYLES];

    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++) {
        struct tls_identity identity = identity_of(HOST, good[i]);

        assert_int_equal(find_keys(&identity, found), TLS_STYLES);
        for (int style = 0; style < TLS_STYLES; style++) {
            assert_int_equal(found[style].bytes[0], 0x10 + style);
        }
        assert_int_equal(tls_keys_number(&keys, &identity), 0);
    }
}

static void test_a_configured_key_is_that_of_one_host_and_drive(void **state)
{
    struct tls_identity wrong_drive = identity_of(HOST, OTHER);
    struct tls_identity wrong_host = identity_of(OTHER, SUBSYSTEM);
    struct tls_secret found[TLS_STYLES];

    (void)state;
    assert_int_equal(find_keys(&wrong_drive, found), 0);
    assert_int_equal(find_keys(&wrong_host, found), 0);
}

static void test_a_generated_key_is_found_by_its_whole_name(void **state)
{
    struct tls_identity good = identity_of(HOST, SUBSYSTEM);
    struct tls_identity wrong[5];
    struct tls_secret found[TLS_STYLES];

    (void)state;
    good.is_generated = true;
    assert_int_equal(find_keys(&good, found), 1);
    assert_memory_equal(found[0].bytes, generated.psk, sizeof(found[0].bytes));
    assert_int_equal(tls_keys_number(&keys, &good), NUMBER);

    wrong[0] = identity_of(OTHER, SUBSYSTEM);
    wrong[1] = identity_of(HOST, OTHER);
    wrong[2] = wrong[3] = wrong[4] = good;
    wrong[2].digest[0] ^= 1;
    wrong[3].version = 0;
    wrong[4].hash = AUTH_SHA256;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        wrong[i].is_generated = true;
        assert_int_equal(find_keys(&wrong[i], found), 0);
        assert_int_equal(tls_keys_number(&keys, &wrong[i]), 0);
    }
}

/* The discovery subsystem has no generated keys. */
static void test_a_generated_key_is_not_for_discovery(void **state)
{
    struct tls_identity identity = identity_of(HOST, NVME_DISCOVERY_NQN);
    struct tls_secret found[TLS_STYLES];

    (void)state;
    identity.is_generated = true;
    assert_int_equal(find_keys(&identity, found), 0);
}

static void test_a_generated_key_is_replaced_by_what_is_derived(void **state)
{
    uint8_t want[AUTH_PSK_MAX];

    (void)state;
    memset(generated.psk, 0x55, sizeof(generated.psk));
    memset(generated.digest, 0, sizeof(generated.digest));
    memset(want, 0x77, sizeof(want));
    tls_keys_derive(&keys, &generated);
    assert_memory_equal(generated.psk, want, sizeof(want));
    assert_string_equal(generated.digest, DIGEST);
}
