/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Telemetry, LIDs 07h and 08h.
 *
 * Spec: NVM Express Base 2.0 5.16.1.8, 5.16.1.9, 8.24.
 */
#include <string.h>

#include "nvme_lib.h"

enum { BLOCK = 512, AREAS = 3 };

static struct nvme *open_telemetry(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    if (!(nvme->ctrl[ID_CTRL_LPA] & LPA_TELEMETRY)) {
        conf_not_applicable(conf, "LPA bit 3 is 0");
    }
    return nvme;
}

/* Read one block of a page; it is at admin->mem. */
static const uint8_t *read_block(struct nvme *nvme, uint8_t lid,
                                 uint32_t create, uint32_t block)
{
    conf_status(nvme->conf, "Get Log Page of telemetry",
                nvme_get_log(nvme, lid | LOG_RAE | create,
                             (uint64_t)block * BLOCK, BLOCK),
                NVME_SC_SUCCESS);
    return nvme->admin->mem;
}

static uint32_t last_block(const uint8_t *header, unsigned int area)
{
    return get_le16(header + TELEMETRY_LAST_BLOCK + (size_t)2 * area);
}

static void check_header(struct nvme *nvme, uint8_t lid, const uint8_t *header)
{
    struct conf *conf = nvme->conf;

    conf_equal(conf, "log page identifier", header[TELEMETRY_LID], lid);
    conf_same(conf, "IEEE OUI, as in Identify", header + TELEMETRY_IEEE,
              nvme->ctrl + ID_CTRL_IEEE, 3);
    for (unsigned int i = 1; i < AREAS; i++) {
        conf_check(conf, last_block(header, i) >= last_block(header, i - 1),
                   "data area %u ends at block %u, before the one before it",
                   i + 1, last_block(header, i));
    }
    conf_check(conf, header[TELEMETRY_CTRL_AVAILABLE] <= 1, "byte 382 is %02xh",
               header[TELEMETRY_CTRL_AVAILABLE]);
}

static void telemetry_header(struct conf *conf)
{
    struct nvme *nvme = open_telemetry(conf);

    check_header(nvme, LOG_TELEMETRY_HOST,
                 read_block(nvme, LOG_TELEMETRY_HOST, TELEMETRY_CREATE, 0));
    conf_check(conf, last_block(nvme->admin->mem, 0) > 0,
               "a new dump has no data in area 1");
    check_header(nvme, LOG_TELEMETRY_CTRL,
                 read_block(nvme, LOG_TELEMETRY_CTRL, 0, 0));
    nvme_close(nvme);
}

/* What the host reads is one dump, whatever happens meanwhile. */
static void telemetry_same(struct conf *conf)
{
    struct nvme *nvme = open_telemetry(conf);
    const uint8_t *header =
        read_block(nvme, LOG_TELEMETRY_HOST, TELEMETRY_CREATE, 0);
    uint32_t blocks = last_block(header, AREAS - 1) + 1;
    uint8_t *first = conf_alloc(conf, (size_t)blocks * BLOCK);
    uint8_t generation = header[TELEMETRY_HOST_GENERATION];

    for (uint32_t i = 0; i < blocks; i++) {
        memcpy(first + (size_t)i * BLOCK,
               read_block(nvme, LOG_TELEMETRY_HOST, 0, i), BLOCK);
        nvme_log(nvme, LOG_SMART, LOG_SMART_LEN);
    }
    for (uint32_t i = 0; i < blocks; i++) {
        conf_same(conf, "a block of the dump, read again",
                  read_block(nvme, LOG_TELEMETRY_HOST, 0, i),
                  first + (size_t)i * BLOCK, BLOCK);
    }
    for (uint32_t i = 2; i < blocks; i++) {
        conf_check(conf,
                   memcmp(first + BLOCK, first + (size_t)i * BLOCK, BLOCK) != 0,
                   "block %u of the dump is the same as block 1", i);
    }
    conf_equal(conf, "generation number of the next dump",
               read_block(nvme, LOG_TELEMETRY_HOST, TELEMETRY_CREATE,
                          0)[TELEMETRY_HOST_GENERATION],
               (uint8_t)(generation + 1));
    nvme_close(nvme);
}

static void telemetry_beyond(struct conf *conf)
{
    struct nvme *nvme = open_telemetry(conf);
    uint32_t blocks = 1 + last_block(read_block(nvme, LOG_TELEMETRY_HOST,
                                                TELEMETRY_CREATE, 0),
                                     AREAS - 1);

    conf_status(conf, "Get Log Page beyond the dump's end",
                nvme_get_log(nvme, LOG_TELEMETRY_HOST | LOG_RAE,
                             (uint64_t)blocks * BLOCK + 4, 16),
                NVME_SC_INVALID_FIELD);
    nvme_close(nvme);
}

static const struct conf_test tests[] = {
    CONF_TEST("telemetry.header", "NVMe 2.0 5.16.1.8, 5.16.1.9",
              "the headers of telemetry agree with Identify", telemetry_header),
    CONF_TEST("telemetry.same", "NVMe 2.0 5.16.1.8, 8.24",
              "a dump stays the same until the host asks for another one",
              telemetry_same),
    CONF_TEST("telemetry.beyond", "NVMe 2.0 5.16",
              "an offset beyond the dump is refused", telemetry_beyond),
};
CONF_TESTS(conf_tests_nvme_telemetry, "nvme", tests);
