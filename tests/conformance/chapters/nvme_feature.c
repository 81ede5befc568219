/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Features of one dword: their values, capabilities and changes.
 *
 * Spec: NVM Express 1.4 5.13, 5.21, 7.8.
 */
#include "nvme_lib.h"

enum { SAVE = 31, SELECTS = 8 };

struct row {
    uint8_t fid;
    uint32_t defined; /* The bits of the value that are not reserved. */
    uint32_t other;   /* A value that may be set. */
};

static struct nvme *open_with(struct conf *conf, const struct row *row,
                              uint32_t *value)
{
    struct nvme *nvme = nvme_open_admin(conf);
    uint16_t status = nvme_get_feature(nvme, row->fid, 0, 0, value);

    if (row->fid == FEATURE_VOLATILE_WRITE_CACHE &&
        !(nvme->ctrl[ID_CTRL_VWC] & VWC_PRESENT)) {
        conf_not_applicable(conf, "VWC bit 0 is 0");
    }
    conf_status(conf, "Get Features", status, NVME_SC_SUCCESS);
    return nvme;
}

static uint32_t get_row(struct nvme *nvme, const struct row *row,
                        uint8_t select)
{
    uint32_t value;

    conf_status(nvme->conf, "Get Features",
                nvme_get_feature(nvme, row->fid, select, 0, &value),
                NVME_SC_SUCCESS);
    return value;
}

static uint16_t set_row(struct nvme *nvme, const struct row *row, bool save,
                        uint32_t nsid, uint32_t value)
{
    struct nvme_sqe sqe = {.opcode = ADMIN_SET_FEATURES,
                           .nsid = nsid,
                           .cdw10 = row->fid | (uint32_t)save << SAVE,
                           .cdw11 = value};

    return nvme_run(nvme, nvme->admin, &sqe, 0, NULL);
}

static bool has_select(const struct nvme *nvme)
{
    return get_le16(nvme->ctrl + ID_CTRL_ONCS) & ONCS_SAVE_SELECT;
}

static void need_select(struct nvme *nvme)
{
    if (!has_select(nvme)) {
        conf_not_applicable(nvme->conf, "ONCS bit 4 is 0");
    }
}

/* Reserved bits are zero for every Select. */
static void feature_reserved(struct conf *conf, const struct row *row)
{
    uint32_t value;
    struct nvme *nvme = open_with(conf, row, &value);
    unsigned int selects = has_select(nvme) ? 3 : 1;

    for (unsigned int select = 0; select < selects; select++) {
        value = get_row(nvme, row, (uint8_t)select);
        conf_check(conf, !(value & ~row->defined),
                   "Select %u: %08x has reserved bits", select, value);
    }
    nvme_close(nvme);
}

/* The current value is what was set; the default and the saved value do not
 * change. */
static void feature_changes(struct conf *conf, const struct row *row)
{
    uint32_t before;
    struct nvme *nvme = open_with(conf, row, &before);
    uint32_t other = row->other != (before & row->defined) ? row->other : 0;
    uint32_t kept = has_select(nvme) ? get_row(nvme, row, 1) : 0;
    uint32_t saved = has_select(nvme) ? get_row(nvme, row, 2) : 0;

    conf_status(conf, "Set Features", set_row(nvme, row, false, 0, other),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the value", get_row(nvme, row, 0), other);
    if (has_select(nvme)) {
        conf_equal(conf, "the default", get_row(nvme, row, 1), kept);
        conf_equal(conf, "the saved value", get_row(nvme, row, 2), saved);
    }
    conf_status(conf, "Set Features back", set_row(nvme, row, false, 0, before),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the value", get_row(nvme, row, 0), before);
    nvme_close(nvme);
}

/* The capabilities have three bits; a feature that is not changeable refuses a
 * change. */
static void feature_capabilities(struct conf *conf, const struct row *row)
{
    uint32_t before;
    struct nvme *nvme = open_with(conf, row, &before);
    uint32_t able;

    need_select(nvme);
    able = get_row(nvme, row, FEATURE_SELECT_CAPABILITIES);
    conf_check(conf, !(able & ~7u), "the capabilities %08x have reserved bits",
               able);
    conf_status(conf, "Set Features", set_row(nvme, row, false, 0, before),
                able & FEATURE_CHANGEABLE ? NVME_SC_SUCCESS
                                          : NVME_SC_FEATURE_NOT_CHANGEABLE);
    nvme_close(nvme);
}

/* A feature that is not saveable refuses SV and keeps its value. */
static void feature_save(struct conf *conf, const struct row *row)
{
    uint32_t before;
    struct nvme *nvme = open_with(conf, row, &before);
    uint32_t able;

    need_select(nvme);
    able = get_row(nvme, row, FEATURE_SELECT_CAPABILITIES);
    if (able & FEATURE_SAVEABLE) {
        conf_status(conf, "Set Features, save",
                    set_row(nvme, row, true, 0, before), NVME_SC_SUCCESS);
        conf_equal(conf, "the saved value", get_row(nvme, row, 2), before);
    } else {
        conf_status(conf, "Set Features, save",
                    set_row(nvme, row, true, 0, row->other),
                    NVME_SC_FEATURE_NOT_SAVEABLE);
        conf_equal(conf, "the value", get_row(nvme, row, 0), before);
        conf_equal(conf, "the saved value is the default",
                   get_row(nvme, row, 2), get_row(nvme, row, 1));
    }
    nvme_close(nvme);
}

/*
 * A feature that belongs to no namespace refuses an NSID; FFFFFFFFh is allowed.
 */
static void feature_namespace(struct conf *conf, const struct row *row)
{
    uint32_t before;
    struct nvme *nvme = open_with(conf, row, &before);

    need_select(nvme);
    if (get_row(nvme, row, FEATURE_SELECT_CAPABILITIES) & FEATURE_NS_SPECIFIC) {
        conf_not_applicable(conf, "the feature belongs to a namespace");
    }
    conf_status(conf, "Set Features of a namespace",
                set_row(nvme, row, false, nvme->nsid, row->other),
                NVME_SC_FEATURE_NOT_NS_SPECIFIC);
    conf_equal(conf, "the value", get_row(nvme, row, 0), before);
    conf_status(conf, "Set Features, NSID FFFFFFFFh",
                set_row(nvme, row, false, NVME_NSID_ALL, before),
                NVME_SC_SUCCESS);
    nvme_close(nvme);
}

static void reserved_select(struct conf *conf, const struct row *row)
{
    uint32_t value;
    struct nvme *nvme = open_with(conf, row, &value);

    need_select(nvme);
    for (unsigned int select = 4; select < SELECTS; select++) {
        conf_status(
            conf, "Get Features, a reserved Select",
            nvme_get_feature(nvme, row->fid, (uint8_t)select, 0, &value),
            NVME_SC_INVALID_FIELD);
    }
    nvme_close(nvme);
}

/* A controller reset restores the saved value, or else the default. */
static void feature_reset(struct conf *conf, const struct row *row)
{
    uint32_t before, kept;
    struct nvme *nvme = open_with(conf, row, &before);

    need_select(nvme);
    kept = get_row(nvme, row, FEATURE_SELECT_SAVED);
    conf_status(
        conf, "Set Features",
        set_row(nvme, row, false, 0, row->other != kept ? row->other : 0),
        NVME_SC_SUCCESS);
    nvme_reset(nvme);
    conf_equal(conf, "the value after a reset", get_row(nvme, row, 0), kept);
    nvme_close(nvme);
}

/* Setting the feature on one controller does not change it on another. */
static void feature_apart(struct conf *conf, const struct row *row)
{
    uint32_t before, value;
    struct nvme *nvme = open_with(conf, row, &before);
    struct nvme *second = open_with(conf, row, &value);

    conf_status(conf, "Set Features", set_row(nvme, row, false, 0, row->other),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the other controller's value", get_row(second, row, 0),
               value);
    nvme_close(second);
    nvme_close(nvme);
}

#define FEATURES(X, test, tail, purpose, clause)                               \
    FEATURES_RESET(X, test, tail, purpose, clause)                             \
    X(test, tail, purpose, clause, cache, "write-cache", 0x06, 0x1, 0)         \
    X(test, tail, purpose, clause, kato, "kato", 0x0f, UINT32_MAX, 60000)
/* Features of which each controller has its own, with a known default. */
#define FEATURES_RESET(X, test, tail, purpose, clause)                         \
    X(test, tail, purpose, clause, arbitration, "arbitration", 0x01,           \
      0xffffff07, 0x01020304)                                                  \
    X(test, tail, purpose, clause, power, "power", 0x02, 0xff, 0x20)           \
    X(test, tail, purpose, clause, temperature, "temperature", 0x04, 0x3fffff, \
      390)                                                                     \
    X(test, tail, purpose, clause, recovery, "error-recovery", 0x05, 0x1ffff,  \
      100)                                                                     \
    X(test, tail, purpose, clause, atomicity, "atomicity", 0x0a, 0x1, 1)       \
    X(test, tail, purpose, clause, events, "events", 0x0b, 0x8000ffff, 0x1f)

#define ALL(X)                                                                 \
    FEATURES(X, feature_reserved, "reserved",                                  \
             "reserved bits of the value are zero", "5.21.1")                  \
    FEATURES(X, feature_changes, "set",                                        \
             "the current value is what was set, and nothing else changes",    \
             "5.21, 7.8")                                                      \
    FEATURES(X, feature_capabilities, "capabilities",                          \
             "Select 3 returns valid capabilities, and the feature has them",  \
             "5.13, 7.8")                                                      \
    FEATURES(X, feature_save, "save",                                          \
             "Save works or is refused, as the capabilities tell",             \
             "5.21, 7.8")                                                      \
    FEATURES(X, feature_namespace, "namespace",                                \
             "the feature belongs to no namespace", "5.21, 7.8")               \
    FEATURES(X, reserved_select, "select",                                     \
             "a reserved Select (4 to 7) is refused with Invalid Field",       \
             "5.13")                                                           \
    FEATURES_RESET(X, feature_reset, "reset",                                  \
                   "a controller reset restores the default", "7.3.2, 7.8")    \
    FEATURES_RESET(X, feature_apart, "apart",                                  \
                   "each controller has its own value", "7.8")

#define FUNCTION(test, tail, purpose, clause, name, id, fid, defined, other)   \
    static void test##_##name(struct conf *conf)                               \
    {                                                                          \
        test(conf, &(struct row){fid, defined, other});                        \
    }
ALL(FUNCTION)

/* ---- Features that do not exist. */

static void feature_unknown(struct conf *conf, uint8_t fid)
{
    struct nvme *nvme = nvme_open_admin(conf);
    const struct row row = {.fid = fid};
    uint32_t value;

    for (unsigned int select = 0; select < 4; select++) {
        conf_status(conf, "Get Features",
                    nvme_get_feature(nvme, fid, (uint8_t)select, 0, &value),
                    NVME_SC_INVALID_FIELD);
    }
    conf_status(conf, "Set Features", set_row(nvme, &row, false, 0, 0),
                NVME_SC_INVALID_FIELD);
    nvme_expect_works(nvme);
    nvme_close(nvme);
}

static void feature_unless(struct conf *conf, uint8_t fid, unsigned int byte,
                           uint8_t bits)
{
    struct nvme *nvme = nvme_open_admin(conf);
    bool has = nvme->ctrl[byte] & bits;

    nvme_close(nvme);
    if (has) {
        conf_not_applicable(conf, "Identify byte %u has bits %02x", byte, bits);
    }
    feature_unknown(conf, fid);
}

#define UNKNOWN(X)                                                             \
    X(0x00, "the reserved feature 00h", 0, 0)                                  \
    X(0x08, "interrupt coalescing, which fabrics do not have,", 0, 0)          \
    X(0x09, "interrupt vector configuration, which fabrics do not have,", 0,   \
      0)                                                                       \
    X(0x0c, "autonomous power state transition without APSTA", 265, 1)         \
    X(0x0d, "a host memory buffer, which fabrics do not have,", 0, 0)          \
    X(0x10, "thermal management without HCTMA", 322, 1)                        \
    X(0x77, "the reserved feature 77h", 0, 0)                                  \
    X(0x82, "a reservation notification mask without ONCS bit 5", 520, 0x20)   \
    X(0x83, "reservation persistence without ONCS bit 5", 520, 0x20)           \
    X(0x84, "write protection without NWPC", 531, 1)
#define UNKNOWN_FUNCTION(fid, purpose, byte, bits)                             \
    static void unknown_##fid(struct conf *conf)                               \
    {                                                                          \
        feature_unless(conf, fid, byte, bits);                                 \
    }
UNKNOWN(UNKNOWN_FUNCTION)

#define TEST(id, clause, purpose, fn)                                          \
    CONF_TEST("feature." id, "NVMe 1.4 " clause, purpose, fn)
#define ROW(test, tail, purpose, clause, name, id, fid, defined, other)        \
    TEST(id "-" tail, clause, purpose, test##_##name),
#define UNKNOWN_TEST(fid, purpose, byte, bits)                                 \
    TEST("unknown-" #fid, "5.13, 5.21",                                        \
         purpose " is refused with Invalid Field", unknown_##fid),

static const struct conf_test tests[] = {ALL(ROW) UNKNOWN(UNKNOWN_TEST)};
CONF_TESTS(conf_tests_nvme_feature, "nvme", tests);
