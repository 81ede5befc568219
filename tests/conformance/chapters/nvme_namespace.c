/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify Namespace, the list of namespaces, and the identification
 * descriptors, which must agree.
 *
 * Spec: NVM Express 1.4 5.15.2, 6.1, 7.10.
 */
#include <string.h>

#include "nvme_lib.h"

enum {
    NSFEAT_THIN = 0x01,
    ID_NS_MC = 27,
    ID_NS_DPC = 28,
    NIDT_EUI64 = 1,
    NIDT_NGUID = 2,
    NIDT_UUID = 3,
    NID_HEADER_LEN = 4,
};

/* ---- The namespace. */

WITH_NVME(sizes)
{
    uint64_t nsze = get_le64(nvme->ns + ID_NS_NSZE);
    uint64_t ncap = get_le64(nvme->ns + ID_NS_NCAP);
    uint64_t nuse = get_le64(nvme->ns + ID_NS_NUSE);

    conf_check(conf, nsze >= ncap && ncap >= nuse && ncap != 0,
               "NSZE %llu, NCAP %llu, NUSE %llu", (unsigned long long)nsze,
               (unsigned long long)ncap, (unsigned long long)nuse);
    conf_check(conf, nvme->ns[ID_NS_NSFEAT] & NSFEAT_THIN || ncap == nsze,
               "NCAP is not NSZE, but NSFEAT has no thin provisioning");
}

WITH_NVME(formats)
{
    conf_check(conf,
               (nvme->ns[ID_NS_FLBAS] & 0xf) <= nvme->ns[ID_NS_NLBAF] &&
                   nvme->ns[ID_NS_NLBAF] < 16,
               "FLBAS is %02xh, NLBAF %u", nvme->ns[ID_NS_FLBAS],
               nvme->ns[ID_NS_NLBAF]);
    for (unsigned int i = nvme->ns[ID_NS_NLBAF] + 1u; i < 16; i++) {
        conf_equal(conf, "an LBA format beyond NLBAF",
                   get_le32(nvme->ns + ID_NS_LBAF0 + (size_t)4 * i), 0);
    }
}

/* Without metadata all fields about it are zero. */
WITH_NVME(metadata)
{
    unsigned int flbas = nvme->ns[ID_NS_FLBAS] & 0xf;

    if (get_le16(nvme->ns + ID_NS_LBAF0 + (size_t)4 * flbas) != 0) {
        conf_not_applicable(conf, "the format has metadata");
    }
    conf_equal(conf, "DPS (0: no protection)", nvme->ns[ID_NS_DPS] & 7, 0);
    conf_equal(conf, "FLBAS bit 4", nvme->ns[ID_NS_FLBAS] & 0x10, 0);
}

WITH_NVME(capacity)
{
    uint64_t nvmcap = get_le64(nvme->ns + ID_NS_NVMCAP);

    conf_check(conf,
               nvmcap == 0 || nvmcap >= get_le64(nvme->ns + ID_NS_NCAP) *
                                            nvme->block_bytes,
               "NVMCAP %llu is below NCAP", (unsigned long long)nvmcap);
}

/*
 * With namespace management (OACS bit 3), FFFFFFFFh returns what all namespaces
 * have in common: their formats, but no size.
 */
WITH_NVME(namespace_all)
{
    if (get_le16(nvme->ctrl + ID_CTRL_OACS) & OACS_NS_MANAGEMENT) {
        const uint8_t *all = nvme->admin->mem;

        conf_status(conf, "Identify Namespace FFFFFFFFh",
                    nvme_identify(nvme, CNS_NAMESPACE, NVME_NSID_ALL),
                    NVME_SC_SUCCESS);
        conf_equal(conf, "NSZE of all namespaces",
                   (uint32_t)get_le64(all + ID_NS_NSZE), 0);
        conf_equal(conf, "NLBAF of all namespaces", all[ID_NS_NLBAF],
                   nvme->ns[ID_NS_NLBAF]);
        conf_same(conf, "the LBA formats of all namespaces", all + ID_NS_LBAF0,
                  nvme->ns + ID_NS_LBAF0, 64);
        return;
    }
    conf_status(conf, "Identify Namespace FFFFFFFFh",
                nvme_identify(nvme, CNS_NAMESPACE, NVME_NSID_ALL),
                NVME_SC_INVALID_NS);
}

WITH_NVME(namespace_zero)
{
    conf_status(conf, "Identify Namespace 0",
                nvme_identify(nvme, CNS_NAMESPACE, 0), NVME_SC_INVALID_NS);
}

WITH_NVME(namespace_above)
{
    conf_status(conf, "Identify Namespace NN + 1",
                nvme_identify(nvme, CNS_NAMESPACE, nvme->num_ns + 1),
                NVME_SC_INVALID_NS);
}

WITH_NVME(namespace_inactive)
{
    uint32_t nsid = nvme_inactive_nsid(nvme);

    if (nsid == 0) {
        conf_not_applicable(conf, "all NN namespaces are active");
    }
    memset(nvme->admin->mem, 0xff, NVME_IDENTIFY_LEN);
    conf_status(conf, "Identify of an inactive namespace",
                nvme_identify(nvme, CNS_NAMESPACE, nsid), NVME_SC_SUCCESS);
    conf_same(conf, "the data of an inactive namespace", nvme->admin->mem,
              conf_alloc(conf, NVME_IDENTIFY_LEN), NVME_IDENTIFY_LEN);
}

/* ---- Lists. */

WITH_NVME(list)
{
    const uint8_t *mem = nvme->admin->mem;
    uint32_t last = 0;
    bool has_ours = false, is_over = false;

    conf_status(conf, "Identify, active namespaces",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, 0), NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < NVME_IDENTIFY_LEN; i += 4) {
        uint32_t nsid = get_le32(mem + i);

        is_over = is_over || nsid == 0;
        conf_check(conf, is_over ? nsid == 0 : nsid > last,
                   "entry %u is %u, not above %u", i / 4, nsid, last);
        conf_check(conf, nsid <= nvme->num_ns, "namespace %u is above NN",
                   nsid);
        has_ours = has_ours || nsid == nvme->nsid;
        last = nsid;
    }
    conf_check(conf, has_ours, "namespace %u is not in the list", nvme->nsid);
}

WITH_NVME(list_after)
{
    conf_status(conf, "Identify, active namespaces above ours",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, nvme->nsid),
                NVME_SC_SUCCESS);
    for (unsigned int i = 0; i < NVME_IDENTIFY_LEN; i += 4) {
        uint32_t nsid = get_le32(nvme->admin->mem + i);

        conf_check(conf, nsid == 0 || nsid > nvme->nsid, "entry %u is %u",
                   i / 4, nsid);
    }
}

WITH_NVME(list_before)
{
    conf_status(conf, "Identify, active namespaces above the one before ours",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, nvme->nsid - 1),
                NVME_SC_SUCCESS);
    conf_equal(conf, "the first entry", get_le32(nvme->admin->mem), nvme->nsid);
}

WITH_NVME(list_end)
{
    conf_status(conf, "Identify, active namespaces above NN",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, nvme->num_ns),
                NVME_SC_SUCCESS);
    conf_same(conf, "an empty list", nvme->admin->mem,
              conf_alloc(conf, NVME_IDENTIFY_LEN), NVME_IDENTIFY_LEN);
}

WITH_NVME(list_all)
{
    conf_status(conf, "Identify, active namespaces above FFFFFFFFh",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, NVME_NSID_ALL),
                NVME_SC_INVALID_NS);
}

WITH_NVME(list_nearly_all)
{
    conf_status(conf, "Identify, active namespaces above FFFFFFFEh",
                nvme_identify(nvme, CNS_ACTIVE_NS_LIST, NVME_NSID_ALL - 1),
                NVME_SC_INVALID_NS);
}

/* ---- Descriptors. */

/* Each type occurs once and has its length, and only zeroes follow. */
WITH_NVME(descriptors)
{
    static const uint8_t lengths[] = {0, 8, 16, 16};
    const uint8_t *mem = nvme->admin->mem;
    unsigned int at = 0, seen = 0;

    conf_status(conf, "Identify, descriptors",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, nvme->nsid),
                NVME_SC_SUCCESS);
    while (at + NID_HEADER_LEN <= NVME_IDENTIFY_LEN && mem[at] != 0) {
        unsigned int nidt = mem[at], nidl = mem[at + 1];

        conf_check(conf, nidt >= ARRAY_LEN(lengths) || nidl == lengths[nidt],
                   "the descriptor of type %u has %u bytes", nidt, nidl);
        conf_check(conf, !(seen & 1u << (nidt & 31)),
                   "there are two descriptors of type %u", nidt);
        seen |= 1u << (nidt & 31);
        at += NID_HEADER_LEN + nidl;
    }
    conf_check(conf, seen != 0, "there is no identifier");
    while (at < NVME_IDENTIFY_LEN) {
        conf_equal(conf, "a byte after the descriptors", mem[at++], 0);
    }
}

static const uint8_t *find_descriptor(struct nvme *nvme, uint8_t nidt)
{
    const uint8_t *mem = nvme->admin->mem;

    conf_status(nvme->conf, "Identify, descriptors",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, nvme->nsid),
                NVME_SC_SUCCESS);
    for (size_t at = 0; at + 20 < NVME_IDENTIFY_LEN && mem[at] != 0;
         at += NID_HEADER_LEN + (size_t)mem[at + 1]) {
        if (mem[at] == nidt) {
            return mem + at + NID_HEADER_LEN;
        }
    }
    return NULL;
}

static void same_identifier(struct nvme *nvme, uint8_t nidt, size_t offset,
                            size_t len)
{
    const uint8_t *nid = find_descriptor(nvme, nidt);
    const uint8_t *said = nvme->ns + offset;
    bool is_said = false;

    for (size_t i = 0; i < len; i++) {
        is_said = is_said || said[i] != 0;
    }
    conf_equal(nvme->conf,
               "whether there is a descriptor for what Identify Namespace has",
               nid != NULL, is_said);
    if (nid != NULL) {
        conf_same(nvme->conf, "the identifier", nid, said, len);
    }
}

WITH_NVME(nguid)
{
    (void)conf;
    same_identifier(nvme, NIDT_NGUID, ID_NS_NGUID, 16);
}

WITH_NVME(eui64)
{
    (void)conf;
    same_identifier(nvme, NIDT_EUI64, ID_NS_EUI64, 8);
}

/* RFC 4122: the bits of variant and version. */
WITH_NVME(uuid)
{
    const uint8_t *nid = find_descriptor(nvme, NIDT_UUID);

    if (nid == NULL) {
        conf_not_applicable(conf, "the namespace has no UUID");
    }
    conf_equal(conf, "variant", nid[8] >> 6, 2);
    conf_check(conf, nid[6] >> 4 >= 1 && nid[6] >> 4 <= 8,
               "the UUID has version %u", nid[6] >> 4);
}

WITH_NVME(descriptors_inactive)
{
    uint32_t nsid = nvme_inactive_nsid(nvme);

    if (nsid == 0) {
        conf_not_applicable(conf, "all NN namespaces are active");
    }
    conf_check(conf,
               nvme_identify(nvme, CNS_NS_DESCRIPTORS, nsid) != NVME_SC_SUCCESS,
               "an inactive namespace has descriptors");
}

WITH_NVME(descriptors_zero)
{
    conf_status(conf, "descriptors of namespace 0",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, 0), NVME_SC_INVALID_NS);
}

WITH_NVME(descriptors_above)
{
    conf_status(conf, "descriptors of namespace NN + 1",
                nvme_identify(nvme, CNS_NS_DESCRIPTORS, nvme->num_ns + 1),
                NVME_SC_INVALID_NS);
}

#define TEST(id, clause, purpose, ...)                                         \
    CONF_TEST("identify." id, "NVMe 1.4 " clause, purpose, __VA_ARGS__)

static const struct conf_test tests[] = {
    TEST("sizes", "5.15.2.1", "NSZE, NCAP and NUSE agree", sizes),
    TEST("formats", "5.15.2.1", "the format is one of the listed ones",
         formats),
    TEST("metadata", "5.15.2.1, 8.3", "without metadata there is no protection",
         metadata),
    TEST("capacity", "5.15.2.1", "NVMCAP is at least NCAP", capacity),
    TEST("namespace-all", "5.15.2.1",
         "NSID FFFFFFFFh is refused without namespace management",
         namespace_all),
    TEST("namespace-zero", "5.15.2.1, 6.1",
         "NSID 0 is refused with Invalid Namespace", namespace_zero),
    TEST("namespace-above", "5.15.2.1, 6.1",
         "NSID NN + 1 is refused with Invalid Namespace", namespace_above),
    TEST("namespace-inactive", "5.15.2.1", "an inactive NSID returns zeroes",
         namespace_inactive),
    TEST("list", "5.15.2.3",
         "the list is ascending, has our namespace, and ends with zeroes",
         list),
    TEST("list-after", "5.15.2.3",
         "the list has only namespaces above the NSID", list_after),
    TEST("list-before", "5.15.2.3",
         "the list begins with the namespace after the NSID", list_before),
    TEST("list-end", "5.15.2.3", "the list above NN is empty", list_end),
    TEST("list-all", "5.15.2.3",
         "NSID FFFFFFFFh is refused with Invalid Namespace", list_all),
    TEST("list-nearly-all", "5.15.2.3",
         "NSID FFFFFFFEh is refused with Invalid Namespace", list_nearly_all),
    TEST("descriptors", "5.15.2.4",
         "the descriptors are well-formed, and each type occurs once",
         descriptors),
    TEST("nguid", "5.15.2.4, 7.10", "NGUID equals the one of the descriptor",
         nguid),
    TEST("eui64", "5.15.2.4, 7.10", "EUI64 equals the one of the descriptor",
         eui64),
    TEST("uuid", "5.15.2.4, 7.10", "the UUID is valid", uuid),
    TEST("descriptors-inactive", "5.15.2.4", "an inactive NSID is refused",
         descriptors_inactive),
    TEST("descriptors-zero", "5.15.2.4",
         "NSID 0 is refused with Invalid Namespace", descriptors_zero),
    TEST("descriptors-above", "5.15.2.4",
         "NSID NN + 1 is refused with Invalid Namespace", descriptors_above),
};
CONF_TESTS(conf_tests_nvme_namespace, "nvme", tests);
