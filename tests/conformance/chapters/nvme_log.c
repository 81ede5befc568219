/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Get Log Page: each page, whole and in pieces.
 *
 * Spec: NVM Express 1.4 5.14.
 */
#include <string.h>

#include "nvme_lib.h"

static struct nvme *open_offsets(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = nvme_open_page(conf, lid);

    if (!(nvme->ctrl[ID_CTRL_LPA] & LPA_EXTENDED_DATA)) {
        conf_not_applicable(conf, "LPA bit 2 is 0");
    }
    return nvme;
}

/* Bytes [offset, offset + len) must equal those of the whole page. */
static void expect_page_piece(struct nvme *nvme, uint8_t lid, uint32_t offset,
                              uint32_t len)
{
    const uint8_t *page = nvme_whole_page(nvme, lid);

    conf_status(nvme->conf, "Get Log Page",
                nvme_get_log(nvme, lid, offset, len), NVME_SC_SUCCESS);
    conf_same(nvme->conf, "a piece of the page", nvme->admin->mem,
              page + offset, len);
}

static void log_dword(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = nvme_open_page(conf, lid);

    expect_page_piece(nvme, lid, 0, 4);
    expect_page_piece(nvme, lid, 0, 8);
    nvme_close(nvme);
}

static void offset_4(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = open_offsets(conf, lid);

    expect_page_piece(nvme, lid, 4, nvme_page_len(nvme, lid) - 4);
    nvme_close(nvme);
}

static void log_middle(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = open_offsets(conf, lid);
    uint32_t half = nvme_page_len(nvme, lid) / 2;

    expect_page_piece(nvme, lid, half, half);
    expect_page_piece(nvme, lid, half - 8, 16);
    nvme_close(nvme);
}

static void log_last(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = open_offsets(conf, lid);

    expect_page_piece(nvme, lid, nvme_page_len(nvme, lid) - 4, 4);
    nvme_close(nvme);
}

static void log_beyond(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = open_offsets(conf, lid);
    uint32_t len = nvme_page_len(nvme, lid);

    conf_status(conf, "an offset beyond the page",
                nvme_get_log(nvme, lid, len + 4, 4), NVME_SC_INVALID_FIELD);
    conf_status(conf, "an offset with its upper half set",
                nvme_get_log(nvme, lid, (uint64_t)1 << 32, 4),
                NVME_SC_INVALID_FIELD);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* The target refuses the offset, or ignores bits 1:0: 5.14 allows either. */
static void log_unaligned(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = open_offsets(conf, lid);
    const uint8_t *page = nvme_whole_page(nvme, lid);
    uint16_t status = nvme_get_log(nvme, lid, 9, 8);

    conf_check(conf,
               status == NVME_SC_INVALID_FIELD ||
                   (status == NVME_SC_SUCCESS &&
                    memcmp(nvme->admin->mem, page + 8, 8) == 0),
               "Get Log Page at offset 9: status %03xh, or wrong data", status);
    nvme_close(nvme);
}

/*
 * No page here belongs to a namespace; LPA bit 0 would allow it for SMART.  The
 * clause says that the command should be refused.  A drive may serve SMART's
 * page to a program that names an active namespace.
 */
static void log_namespace(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = nvme_open_page(conf, lid);
    struct nvme_sqe sqe = {
        .opcode = ADMIN_GET_LOG_PAGE, .nsid = nvme->nsid, .cdw10 = lid};
    uint16_t status;

    if (lid == LOG_SMART && nvme->ctrl[ID_CTRL_LPA] & 1) {
        conf_not_applicable(conf, "LPA bit 0 is 1");
    }
    status = nvme_run(nvme, nvme->admin, &sqe, 4, NULL);
    if (lid != LOG_SMART || status != NVME_SC_SUCCESS) {
        conf_status(conf, "Get Log Page of a namespace", status,
                    NVME_SC_INVALID_FIELD);
    }
    sqe.nsid = nvme_inactive_nsid(nvme);
    conf_status(conf, "Get Log Page of an inactive namespace",
                nvme_run(nvme, nvme->admin, &sqe, 4, NULL),
                NVME_SC_INVALID_FIELD);
    sqe.nsid = 0;
    conf_status(conf, "Get Log Page, NSID 0",
                nvme_run(nvme, nvme->admin, &sqe, 4, NULL), NVME_SC_SUCCESS);
    nvme_close(nvme);
}

/* The SGL has another length than NUMD. */
static void log_sgl(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = nvme_open_page(conf, lid);
    struct nvme_sqe sqe = {.opcode = ADMIN_GET_LOG_PAGE,
                           .nsid = NVME_NSID_ALL,
                           .cdw10 = lid | 127u << 16};

    memset(nvme->admin->mem, 0x3c, 512);
    conf_status(conf, "512 bytes into 256",
                nvme_run(nvme, nvme->admin, &sqe, 256, NULL),
                NVME_SC_SGL_INVALID_LENGTH);
    conf_equal(conf, "a byte that must not change", nvme->admin->mem[0], 0x3c);
    conf_status(conf, "512 bytes into 512",
                nvme_run(nvme, nvme->admin, &sqe, 512, NULL), NVME_SC_SUCCESS);
    nvme_close(nvme);
}

#define PAGES(X, test, id, clause, purpose)                                    \
    X(test, error, LOG_ERROR, "error-" id, clause, purpose)                    \
    X(test, smart, LOG_SMART, "smart-" id, clause, purpose)                    \
    X(test, firmware, LOG_FIRMWARE_SLOT, "firmware-" id, clause, purpose)      \
    X(test, changed, LOG_CHANGED_NS_LIST, "changed-" id, clause, purpose)      \
    X(test, effects, LOG_COMMANDS_EFFECTS, "effects-" id, clause, purpose)
#define ALL(X)                                                                 \
    PAGES(X, log_dword, "dword", "5.14",                                       \
          "the first dword and the first two can be read")                     \
    PAGES(X, offset_4, "offset-4", "5.14",                                     \
          "the page can be read from byte 4 on")                               \
    PAGES(X, log_middle, "middle", "5.14",                                     \
          "the second half, and bytes across the middle, can be read")         \
    PAGES(X, log_last, "last", "5.14", "the last dword can be read")           \
    PAGES(X, log_beyond, "beyond", "5.14",                                     \
          "an offset beyond the page is refused with Invalid Field")           \
    PAGES(X, log_unaligned, "unaligned", "5.14",                               \
          "offset 9 is refused, or taken for 8")                               \
    PAGES(X, log_namespace, "namespace", "5.14",                               \
          "the page belongs to no namespace")                                  \
    PAGES(X, log_sgl, "sgl", "5.14, 4.4",                                      \
          "an SGL of another length than NUMD is refused")

#define FUNCTION(test, name, lid, id, clause, purpose)                         \
    static void test##_##name(struct conf *conf)                               \
    {                                                                          \
        test(conf, lid);                                                       \
    }
ALL(FUNCTION)

/* ---- The command. */

static void log_unknown(struct conf *conf, uint8_t lid)
{
    struct nvme *nvme = nvme_open_admin(conf);

    conf_status(conf, "Get Log Page", nvme_get_log(nvme, lid, 0, 512),
                NVME_SC_INVALID_LOG_PAGE);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

#define UNKNOWN(X)                                                             \
    X(0x1f, "reserved page 1Fh")                                               \
    X(0x6f, "reserved page 6Fh")                                               \
    X(0x70, "the discovery log page, on an I/O controller,")                   \
    X(0x7f, "reserved page 7Fh")                                               \
    X(0xbf, "reserved page BFh")
#define UNKNOWN_FUNCTION(lid, purpose)                                         \
    static void unknown_##lid(struct conf *conf)                               \
    {                                                                          \
        log_unknown(conf, lid);                                                \
    }
UNKNOWN(UNKNOWN_FUNCTION)

/* NUMD exceeds MDTS. */
static void above_mdts(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);
    unsigned int mdts = nvme->ctrl[ID_CTRL_MDTS];

    if (mdts == 0 || mdts > 8) {
        conf_not_applicable(conf, "MDTS is %u", mdts);
    }
    conf_status(conf, "Get Log Page of one dword more than MDTS",
                nvme_get_log(nvme, LOG_SMART, 0, (4096u << mdts) + 4),
                NVME_SC_INVALID_FIELD);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

/* RAE is allowed for a page without events. */
static void log_retain(struct conf *conf)
{
    struct nvme *nvme = nvme_open_admin(conf);

    conf_status(conf, "Get Log Page with RAE",
                nvme_get_log(nvme, LOG_FIRMWARE_SLOT | LOG_RAE, 0, 512),
                NVME_SC_SUCCESS);
    nvme_close(nvme);
}

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST("log." id, "NVMe 1.4 " clause, purpose, fn)
#define PAGE_TEST(test, name, lid, id, clause, purpose)                        \
    TEST(id, clause, purpose, test##_##name),
#define UNKNOWN_TEST(lid, purpose)                                             \
    TEST("unknown-" #lid, "5.14", purpose " is refused with Invalid Log Page", \
         unknown_##lid),

static const struct conf_test tests[] = {
    ALL(PAGE_TEST) UNKNOWN(UNKNOWN_TEST) /* */
    TEST("mdts", "5.14, 5.15.2.2",
         "a length above MDTS is refused with Invalid Field", above_mdts),
    TEST("retain", "5.14", "RAE is accepted for a page without events",
         log_retain),
};
CONF_TESTS(conf_tests_nvme_log, "nvme", tests);
