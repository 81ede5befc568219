/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify data, log pages and discovery log entries.
 *
 * Each emitter writes into a buffer filled with 0xa5.  Then every byte must be
 * zero, except those that the test lists.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>
#include <string.h>

#include "lib/util.h"
#include "nvmeof/wire/discovery.h"
#include "nvmeof/wire/identify.h"
#include "nvmeof/wire/lba_status.h"
#include "nvmeof/wire/log.h"

struct patch {
    uint16_t offset;
    const char *bytes;
    uint16_t len;
};

#define AT(offset, text) {offset, text, sizeof(text) - 1}

static void compare_golden(const uint8_t *out, size_t len,
                           const struct patch *patches, size_t count)
{
    uint8_t golden[4096] = {0};

    for (size_t i = 0; i < count; i++) {
        memcpy(golden + patches[i].offset, patches[i].bytes, patches[i].len);
    }
    assert_memory_equal(out, golden, len);
    assert_int_equal(out[len], 0xa5);
}

static void test_identify_controller_matches_golden_bytes(void **state)
{
    static const struct identify_controller id = {
        .vid = 0x1122,
        .ssvid = 0x3344,
        .sn = "SN",
        .mn = "a model name that fills all forty bytes.",
        .fr = "0.1",
        .subnqn = "nqn.x",
        .rab = 6,
        .ieee = {1, 2, 3},
        .cmic = 3,
        .mdts = 5,
        .cntlid = 0x0102,
        .ver = 0x00010400,
        .oaes = 0x80000100,
        .ctratt = 0x41,
        .cntrltype = 1,
        .oacs = 0x0e0d,
        .acl = 3,
        .aerl = 4,
        .frmw = 5,
        .lpa = 6,
        .elpe = 63,
        .npss = 8,
        .wctemp = 0x0157,
        .cctemp = 0x0161,
        .kas = 10,
        .anatt = 11,
        .anacap = 12,
        .anagrpmax = 0x0d,
        .nanagrpid = 0x0e,
        .sqes = 0x66,
        .cqes = 0x44,
        .maxcmd = 64,
        .nn = 128,
        .oncs = 0x1c,
        .vwc = 7,
        .sgls = 0x00100005,
        .ioccsz = 260,
        .iorcsz = 1,
        .icdoff = 9,
        .fcatt = 10,
        .msdbd = 1,
        .power_cw = 2500,
    };
    static const struct patch golden[] = {
        AT(0, "\x22\x11\x44\x33"),
        AT(4, "SN                  "),
        AT(24, "a model name that fills all forty bytes."),
        AT(64, "0.1     "),
        AT(72, "\x06\x01\x02\x03\x03\x05\x02\x01"),
        AT(76, "\x03\x05\x02\x01\x00\x04\x01\x00"),
        AT(92, "\x00\x01\x00\x80\x41"),
        AT(111, "\x01"),
        AT(256, "\x0d\x0e\x03\x04\x05\x06\x3f\x08"),
        AT(266, "\x57\x01\x61\x01"),
        AT(320, "\x0a"),
        AT(342, "\x0b\x0c\x0d\0\0\0\x0e"),
        AT(512, "\x66\x44\x40\x00\x80"),
        AT(520, "\x1c"),
        AT(525, "\x07"),
        AT(536, "\x05\x00\x10"),
        AT(768, "nqn.x"),
        AT(1792, "\x04\x01\x00\x00\x01\x00\x00\x00\x09\x00\x0a\x01"),
        AT(2048, "\xc4\x09"),
    };
    uint8_t out[NVME_IDENTIFY_LEN + 1];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    identify_controller_emit(out, &id);
    compare_golden(out, NVME_IDENTIFY_LEN, golden, ARRAY_LEN(golden));
}

static void test_identify_namespace_matches_golden_bytes(void **state)
{
    static const struct identify_namespace id = {
        .size_blocks = 0x01000000,
        .used_blocks = 0x02000000,
        .owned_bytes = UINT64_C(0x200000000),
        .anagrpid = 0x0a0b,
        .format = 1,
        .formats = 2,
        .block_shift = {12, 9},
        .nmic = 1,
        .dlfeat = 9,
        .nsattr = 1,
        .atomic_blocks = 8,
        .preferred_blocks = 16,
        .nguid = (const uint8_t *)"0123456789abcdef",
        .eui64 = (const uint8_t *)"EUIEUI64",
    };
    static const struct patch golden[] = {
        AT(0, "\0\0\0\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02"),
        AT(24, "\x12\x01\x01"),
        AT(30, "\x01"),
        AT(33, "\x09\x07\0\x07\0\0\0\x07\0\0\0\x07"),
        AT(48, "\0\0\0\0\x02"),
        AT(64, "\x0f\0\x0f\0\x0f\0\x0f\0\x0f\0"),
        AT(92, "\x0b\x0a"),
        AT(99, "\x01"),
        AT(104, "0123456789abcdef"),
        AT(120, "EUIEUI64"),
        AT(128, "\x00\x00\x0c\x00\x00\x00\x09\x00"),
    };
    uint8_t out[NVME_IDENTIFY_LEN + 1];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    identify_namespace_emit(out, &id);
    compare_golden(out, NVME_IDENTIFY_LEN, golden, ARRAY_LEN(golden));
}

static void test_identify_lists_match_golden_bytes(void **state)
{
    static const uint32_t nsid[] = {1, 0x01020304};
    static const struct patch list[] = {AT(0, "\1\0\0\0\4\3\2\1")};
    static const struct patch all[] = {
        AT(0, "\1\x08\0\0EUIEUI64"),
        AT(12, "\2\x10\0\0nguidnguidnguid!"),
        AT(32, "\3\x10\0\0uuiduuiduuiduuid"),
    };
    static const struct patch uuid_only[] = {
        AT(0, "\3\x10\0\0uuiduuiduuiduuid"),
    };
    const uint8_t *uuid = (const uint8_t *)"uuiduuiduuiduuid";
    uint8_t none[16] = {0};
    uint8_t out[NVME_IDENTIFY_LEN + 1];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    identify_ns_list_emit(out, nsid, 2);
    compare_golden(out, NVME_IDENTIFY_LEN, list, ARRAY_LEN(list));

    memset(out, 0xa5, sizeof(out));
    identify_ns_descriptors_emit(out, uuid, (const uint8_t *)"nguidnguidnguid!",
                                 (const uint8_t *)"EUIEUI64");
    compare_golden(out, NVME_IDENTIFY_LEN, all, ARRAY_LEN(all));

    memset(out, 0xa5, sizeof(out));
    identify_ns_descriptors_emit(out, uuid, none, none);
    compare_golden(out, NVME_IDENTIFY_LEN, uuid_only, ARRAY_LEN(uuid_only));
}

static void test_error_entry_matches_golden_bytes(void **state)
{
    static const struct log_error error = {
        .count = 0x0102030405060708,
        .sqid = 0x1112,
        .cid = 0x1314,
        .status = 0x4080,
        .location = 0x0628,
        .lba = 0x2122232425262728,
        .nsid = 0x31323334,
        .trtype = 1,
    };
    static const struct patch golden[] = {
        AT(0, "\x08\x07\x06\x05\x04\x03\x02\x01"),
        AT(8, "\x12\x11\x14\x13\x00\x81\x28\x06"),
        AT(16, "\x28\x27\x26\x25\x24\x23\x22\x21"),
        AT(24, "\x34\x33\x32\x31\x00\x01"),
    };
    uint8_t out[LOG_ERROR_ENTRY_LEN + 1];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    log_error_emit(out, &error);
    compare_golden(out, LOG_ERROR_ENTRY_LEN, golden, ARRAY_LEN(golden));
}

static void test_smart_log_matches_golden_bytes(void **state)
{
    static const struct log_smart smart = {
        .critical_warning = 2,
        .temperature_k = 0x0139,
        .available_spare_percent = 99,
        .spare_threshold_percent = 10,
        .percentage_used = 1,
        .data_units_read = 0x0102030405060708,
        .data_units_written = 0x12,
        .host_reads = 0x13,
        .host_writes = 0x14,
        .power_cycles = 0x15,
        .power_on_hours = 0x16,
        .unsafe_shutdowns = 0x17,
        .media_errors = 0x18,
        .error_log_entries = 0x19,
    };
    static const struct patch golden[] = {
        AT(0, "\x02\x39\x01\x63\x0a\x01"),
        AT(32, "\x08\x07\x06\x05\x04\x03\x02\x01"),
        AT(48, "\x12"),
        AT(64, "\x13"),
        AT(80, "\x14"),
        AT(112, "\x15"),
        AT(128, "\x16"),
        AT(144, "\x17"),
        AT(160, "\x18"),
        AT(176, "\x19"),
    };
    uint8_t out[LOG_SMART_LEN + 1];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    log_smart_emit(out, &smart);
    compare_golden(out, LOG_SMART_LEN, golden, ARRAY_LEN(golden));
}

static void test_the_firmware_slot_log_has_the_configured_revisions(
    void **state)
{
    static const char *const slot[] = {"12345678", "", "1.2"};
    static const struct patch golden[] = {
        AT(0, "\x03"),
        AT(8, "12345678"),
        AT(24, "1.2     "),
    };
    uint8_t out[LOG_FIRMWARE_SLOT_LEN + 1];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    log_firmware_slot_emit(out, 3, slot, ARRAY_LEN(slot));
    compare_golden(out, LOG_FIRMWARE_SLOT_LEN, golden, ARRAY_LEN(golden));
}

/* Each emitter writes all of its bytes, and none after them. */
static void test_lba_status_matches_golden_bytes(void **state)
{
    static const struct patch header[] = {AT(0, "\x03\x02"), AT(4, "\x02")};
    static const struct patch descriptor[] = {
        AT(0, "\x08\x07\x06\x05\x04\x03\x02\x01"), AT(8, "\xff\x01"),
        AT(13, "\x01")};
    static const struct patch log[] = {AT(0, "\x40"), AT(4, "\x02"),
                                       AT(8, "\x0a\x01"), AT(14, "\xcd\xab")};
    static const struct patch element[] = {
        AT(0, "\x80"), AT(4, "\xff\xff\xff\xff"), AT(8, "\x10")};
    static const struct patch range[] = {AT(0, "\x10\x32\x54\x76\x98"),
                                         AT(8, "\xff\xff\xff\xff")};
    uint8_t buf[LBA_DESCRIPTOR_LEN + 1];

    (void)state;
    memset(buf, 0xa5, sizeof(buf));
    lba_status_header_emit(buf, 0x203, LBA_CMPC_COMPLETE);
    compare_golden(buf, LBA_STATUS_HEADER_LEN, header, ARRAY_LEN(header));
    memset(buf, 0xa5, sizeof(buf));
    lba_descriptor_emit(buf, 0x0102030405060708, 0x200, LBA_UNREADABLE);
    compare_golden(buf, LBA_DESCRIPTOR_LEN, descriptor, ARRAY_LEN(descriptor));
    memset(buf, 0xa5, sizeof(buf));
    lba_log_header_emit(buf, 64, 2, 0x10a, 0xabcd);
    compare_golden(buf, LBA_LOG_HEADER_LEN, log, ARRAY_LEN(log));
    memset(buf, 0xa5, sizeof(buf));
    lba_element_emit(buf, 128, LBA_LOG_UNKNOWN, LBA_ACTION_SCAN);
    compare_golden(buf, LBA_ELEMENT_LEN, element, ARRAY_LEN(element));
    memset(buf, 0xa5, sizeof(buf));
    lba_range_emit(buf, 0x9876543210, 0); /* 2^32 blocks */
    compare_golden(buf, LBA_RANGE_LEN, range, ARRAY_LEN(range));
}

static void test_discovery_log_matches_golden_bytes(void **state)
{
    static const struct discovery_entry entry = {
        .trtype = 1,
        .adrfam = 2,
        .subtype = 3,
        .treq = 6,
        .portid = 0x0102,
        .cntlid = 0xffff,
        .asqsz = 32,
        .eflags = 3,
        .trsvcid = "4420",
        .subnqn = "nqn.x",
        .traddr = "2001:db8::2",
        .tsas = {1, 4, 1, 0},
    };
    static const struct patch header[] = {
        AT(0, "\x08\x07\x06\x05\x04\x03\x02\x01\x04"),
    };
    static const struct patch golden[] = {
        AT(0, "\x01\x02\x03\x06\x02\x01\xff\xff\x20\x00\x03"),
        AT(32, "4420"),
        AT(256, "nqn.x"),
        AT(512, "2001:db8::2"),
        AT(768, "\x01\x04\x01"),
    };
    uint8_t out[DISCOVERY_ENTRY_LEN + 1];

    (void)state;
    memset(out, 0xa5, sizeof(out));
    discovery_header_emit(out, 0x0102030405060708, 4);
    compare_golden(out, DISCOVERY_HEADER_LEN, header, ARRAY_LEN(header));
    memset(out, 0xa5, sizeof(out));
    discovery_entry_emit(out, &entry);
    compare_golden(out, DISCOVERY_ENTRY_LEN, golden, ARRAY_LEN(golden));
}
