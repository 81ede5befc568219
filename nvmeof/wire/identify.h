/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identify data: controller, namespace, active list, descriptors.
 * Spec: NVM Express Base 1.4 section 5.15; Fabrics 1.1 section 4.1.
 *
 * This file has emitters only.  A field that is in no struct here is zero,
 * which means "not supported" or "not reported".
 */
#ifndef ESSD_NVMEOF_WIRE_IDENTIFY_H
#define ESSD_NVMEOF_WIRE_IDENTIFY_H

#include <stddef.h>
#include <stdint.h>

enum { /* byte offsets in Identify Controller; little-endian */
       ID_CTRL_VID = 0,
       ID_CTRL_SSVID = 2,
       ID_CTRL_SN = 4,
       ID_CTRL_MN = 24,
       ID_CTRL_FR = 64,
       ID_CTRL_RAB = 72,
       ID_CTRL_IEEE = 73,
       ID_CTRL_CMIC = 76,
       ID_CTRL_MDTS = 77,
       ID_CTRL_CNTLID = 78,
       ID_CTRL_VER = 80,
       ID_CTRL_OAES = 92,
       ID_CTRL_CTRATT = 96,
       ID_CTRL_CNTRLTYPE = 111,
       ID_CTRL_NVMSR = 253, /* NVMSR and MEC are defined by NVMe-MI */
       ID_CTRL_MEC = 255,
       ID_CTRL_OACS = 256,
       ID_CTRL_ACL = 258,
       ID_CTRL_AERL = 259,
       ID_CTRL_FRMW = 260,
       ID_CTRL_LPA = 261,
       ID_CTRL_ELPE = 262,
       ID_CTRL_NPSS = 263,
       ID_CTRL_WCTEMP = 266,
       ID_CTRL_CCTEMP = 268,
       ID_CTRL_TNVMCAP = 280, /* 16 bytes */
       ID_CTRL_UNVMCAP = 296, /* 16 bytes */
       ID_CTRL_EDSTT = 316,
       ID_CTRL_DSTO = 318,
       ID_CTRL_FWUG = 319,
       ID_CTRL_KAS = 320,
       ID_CTRL_SANICAP = 328,
       ID_CTRL_ENDGIDMAX = 340,
       ID_CTRL_ANATT = 342, /* seconds */
       ID_CTRL_ANACAP = 343,
       ID_CTRL_ANAGRPMAX = 344,
       ID_CTRL_NANAGRPID = 348,
       ID_CTRL_PELS = 352, /* units of 64 KiB */
       ID_CTRL_SQES = 512,
       ID_CTRL_CQES = 513,
       ID_CTRL_MAXCMD = 514,
       ID_CTRL_NN = 516,
       ID_CTRL_ONCS = 520,
       ID_CTRL_FUSES = 522,
       ID_CTRL_FNA = 524,
       ID_CTRL_VWC = 525,
       ID_CTRL_AWUN = 526, /* these two: 0's based */
       ID_CTRL_AWUPF = 528,
       ID_CTRL_NWPC = 531,
       ID_CTRL_ACWU = 532, /* 0's based */
       ID_CTRL_OCFS = 534, /* of NVM Command Set 1.0 */
       ID_CTRL_SGLS = 536,
       ID_CTRL_MNAN = 540,
       ID_CTRL_SUBNQN = 768,
       ID_CTRL_IOCCSZ = 1792,
       ID_CTRL_IORCSZ = 1796,
       ID_CTRL_ICDOFF = 1800,
       ID_CTRL_FCATT = 1802,
       ID_CTRL_MSDBD = 1803,
       ID_CTRL_PSD0 = 2048,
       NVME_IDENTIFY_LEN = 4096,
};

enum { /* byte offsets in Identify Namespace; little-endian */
       ID_NS_NSZE = 0,
       ID_NS_NCAP = 8,
       ID_NS_NUSE = 16,
       ID_NS_NSFEAT = 24,
       ID_NS_NLBAF = 25,
       ID_NS_FLBAS = 26,
       ID_NS_METADATA_CAPABILITIES = 27,
       ID_NS_PROTECTION_CAPABILITIES = 28,
       ID_NS_DPS = 29,
       ID_NS_NMIC = 30,
       ID_NS_RESCAP = 31,
       ID_NS_DLFEAT = 33,
       ID_NS_NAWUN = 34, /* these five: 0's based */
       ID_NS_NAWUPF = 36,
       ID_NS_NABSN = 40,
       ID_NS_NABO = 42,
       ID_NS_NABSPF = 44,
       ID_NS_NVMCAP = 48,
       ID_NS_NPWG = 64, /* these five: 0's based */
       ID_NS_NPWA = 66,
       ID_NS_NPDG = 68,
       ID_NS_NPDA = 70,
       ID_NS_NOWS = 72,
       ID_NS_MSSRL = 74, /* these three: NVM Command Set 1.0 */
       ID_NS_MCL = 76,
       ID_NS_MSRC = 80, /* 0's based */
       ID_NS_ANAGRPID = 92,
       ID_NS_NSATTR = 99,
       ID_NS_NVMSETID = 100,
       ID_NS_ENDGID = 102,
       ID_NS_NGUID = 104,
       ID_NS_EUI64 = 120,
       ID_NS_LBAF0 = 128,
};

enum { /* byte offsets in the Namespace Granularity List, CNS 16h */
       ID_GRANULARITY_ATTRIBUTES = 0,
       ID_GRANULARITY_COUNT = 4, /* 0's based */
       ID_GRANULARITY_SIZE = 32, /* of the first descriptor */
       ID_GRANULARITY_CAPACITY = 40,
};

enum { /* byte offsets in a Controller List */
       CTRL_LIST_COUNT = 0,
       CTRL_LIST_FIRST = 2, /* 2 bytes each, in ascending order */
       CTRL_LIST_MAX = 2047,
};

enum { /* byte offsets in the data of CNS 08h, for every command set */
       ID_NS_ANY_NMIC = 1,
       ID_NS_ANY_RESCAP = 2,
       ID_NS_ANY_ANAGRPID = 4,
       ID_NS_ANY_NSATTR = 8,
       ID_NS_ANY_ENDGID = 12,
       ID_NS_ANY_NSTAT = 14,
};

enum { /* Identify Controller bits */
       CMIC_MULTI_PORT = 0x01,
       CMIC_MULTI_CONTROLLER = 0x02,
       CMIC_ANA = 0x08,
       CTRATT_HOSTID_128 = 0x01,
       CTRATT_ENDURANCE_GROUPS = 0x10,
       CTRATT_TBKAS = 0x40,
       CTRATT_NS_GRANULARITY = 0x80,
       OAES_NS_ATTRIBUTE = 0x100,
       OAES_ANA_CHANGE = 0x800,
       OAES_LBA_STATUS = 0x2000,
       OACS_FORMAT = 0x02,
       OACS_FIRMWARE = 0x04, /* Firmware Commit and Image Download */
       OACS_NS_MANAGEMENT = 0x08,
       OACS_SELF_TEST = 0x10,
       OACS_GET_LBA_STATUS = 0x200,
       FRMW_FIRST_READ_ONLY = 0x01,
       FRMW_SLOTS_SHIFT = 1,
       FRMW_DETECTS_OVERLAP = 0x20, /* SMUD, from Base 2.0 */
       FWUG_4096 = 1,
       DSTO_ONE = 0x01, /* one self-test at a time in the subsystem */
       NWPC_WRITE_PROTECT = 0x01,
       NWPC_UNTIL_POWER_CYCLE = 0x02,
       LPA_COMMANDS_EFFECTS = 0x02,
       LPA_EXTENDED_DATA = 0x04,
       LPA_TELEMETRY = 0x08,
       LPA_PERSISTENT_EVENT = 0x10,
       LPA_SUPPORTED_PAGES = 0x20, /* Base 2.0: LIDs 00h, 12h and 13h */
       SANICAP_CRYPTO = 0x01,
       SANICAP_BLOCK = 0x02,
       SANICAP_OVERWRITE = 0x04,
       /* Blocks that are not deallocated are not changed afterwards. */
       SANICAP_UNMODIFIED = 0x40000000,
       ONCS_COMPARE = 0x01,
       ONCS_WRITE_UNCORRECTABLE = 0x02,
       ONCS_DATASET_MANAGEMENT = 0x04,
       ONCS_WRITE_ZEROES = 0x08,
       ONCS_SAVE_SELECT = 0x10,
       ONCS_RESERVATIONS = 0x20,
       ONCS_TIMESTAMP = 0x40,
       ONCS_VERIFY = 0x80,
       ONCS_COPY = 0x100,
       FUSES_COMPARE_AND_WRITE = 0x01,
       OCFS_FORMAT_0 = 0x01,
       OCFS_FORMAT_2 = 0x04,
       VWC_PRESENT = 0x01,
       VWC_FLUSH_ALL = 0x06, /* Flush takes NSID FFFFFFFFh */
       SGLS_SUPPORTED = 0x1,
       SGLS_KEYED = 0x4,
       SGLS_IN_CAPSULE = 0x100000,
       CNTRLTYPE_IO = 1,
       CNTRLTYPE_DISCOVERY = 2,
       NMIC_SHARED = 0x01,
       RESCAP_PTPL = 0x01,
       RESCAP_ALL_TYPES = 0x7e,
       RESCAP_IEKEY_1_3 = 0x80, /* IEKEY has the meaning of NVMe 1.3 */
       DLFEAT_READS_ZEROES = 0x01,
       DLFEAT_WRITE_ZEROES_DEAC = 0x08,
       NVMSR_STORAGE_DEVICE = 0x01,
       MEC_SMBUS = 0x01, /* a management endpoint on an SMBus or I2C port */
       NSATTR_WRITE_PROTECTED = 0x01,
       NSFEAT_NSABP = 0x02,   /* NAWUN to NABSPF are valid */
       NSFEAT_OPTPERF = 0x10, /* NPWG to NOWS are valid */
       NSTAT_READY = 0x01,
};
#define OAES_DISCOVERY_CHANGE 0x80000000u

struct identify_controller {
    uint16_t vid, ssvid;
    const char *sn;     /* at most 20 characters; padded with spaces */
    const char *mn;     /* at most 40 */
    const char *fr;     /* at most 8 */
    const char *subnqn; /* at most 223 */
    uint8_t rab;
    uint8_t ieee[3];
    uint8_t cmic;
    uint8_t mdts;
    uint16_t cntlid;
    uint32_t ver;
    uint32_t oaes;
    uint32_t ctratt;
    uint8_t cntrltype;
    uint8_t nvmsr, mec;
    uint16_t oacs;
    uint8_t acl, aerl; /* 0's based */
    uint8_t frmw;
    uint8_t lpa;
    uint8_t elpe, npss;      /* 0's based */
    uint16_t wctemp, cctemp; /* kelvin */
    uint64_t tnvmcap, unvmcap;
    uint16_t endgidmax; /* highest identifier of an endurance group */
    uint16_t kas;       /* in units of 100 ms */
    uint8_t anatt;      /* seconds */
    uint8_t anacap;
    uint32_t anagrpmax, nanagrpid;
    uint32_t pels;  /* 64 KiB */
    uint16_t edstt; /* minutes */
    uint8_t dsto;
    uint8_t fwug;
    uint32_t sanicap;
    uint8_t sqes, cqes;
    uint16_t maxcmd;
    uint32_t nn, mnan;
    uint16_t oncs;
    uint16_t fuses;
    uint8_t fna;
    uint8_t vwc;
    uint8_t nwpc;
    uint16_t acwu; /* 0's based */
    uint16_t ocfs;
    uint32_t sgls;
    uint32_t ioccsz, iorcsz; /* 16 bytes */
    uint16_t icdoff;         /* 16 bytes */
    uint8_t fcatt;
    uint8_t msdbd;
    uint16_t power_cw; /* maximum of power state 0, in centiwatts */
};

enum { ID_NS_FORMATS_MAX = 4 };

enum {                     /* MC: how metadata may be transferred */
       MC_EXTENDED = 0x01, /* after the data of its block */
};

enum {                   /* DPC */
       DPC_TYPES = 0x07, /* protection information of types 1, 2 and 3 */
       DPC_FIRST = 0x08, /* in the first bytes of the metadata */
       DPC_LAST = 0x10,  /* in the last ones */
};

struct identify_namespace {
    uint64_t size_blocks;
    uint64_t used_blocks;
    uint64_t owned_bytes; /* NVMCAP */
    uint32_t anagrpid;
    uint8_t format;                          /* FLBAS */
    uint8_t formats;                         /* LBA formats, at least 1 */
    uint8_t block_shift[ID_NS_FORMATS_MAX];  /* of each format */
    uint8_t metadata_len[ID_NS_FORMATS_MAX]; /* of each format */
    uint8_t mc;
    uint8_t dpc;
    uint8_t dps;
    uint8_t nmic;
    uint8_t rescap;
    uint8_t dlfeat;
    uint8_t nsattr;
    /* Blocks of an aligned range within which a write is atomic, in normal
     * operation and when the power fails; 0: what the controller reports. */
    uint16_t atomic_blocks;
    /* Blocks of the aligned units that the medium prefers to write and to
     * deallocate; 0: not reported. */
    uint16_t preferred_blocks;
    uint16_t endgid;      /* 0: no endurance group */
    uint16_t mssrl;       /* most blocks of one source range of Copy */
    uint32_t mcl;         /* most blocks of one Copy */
    uint8_t msrc;         /* most source ranges of Copy, 0's based */
    const uint8_t *nguid; /* 16 bytes; NULL: all zeroes */
    const uint8_t *eui64; /* 8 bytes; all zeroes or NULL if there is none */
};

/** Write a text of at most `len` characters, padded with spaces. */
void identify_put_ascii(uint8_t *buf, const char *text, size_t len);

/* Each of these functions writes NVME_IDENTIFY_LEN bytes. */
void identify_controller_emit(uint8_t *buf,
                              const struct identify_controller *id);
void identify_namespace_emit(uint8_t *buf, const struct identify_namespace *id);
/** Emit the data of CNS 08h, which has only nmic, rescap, anagrpid and nsattr.
 */
void identify_namespace_any_emit(uint8_t *buf,
                                 const struct identify_namespace *id);
/** Emit a Controller List. */
void identify_ctrl_list_emit(uint8_t *buf, const uint16_t *cntlid,
                             uint16_t count);
/** Emit a Namespace Granularity List with one descriptor. */
void identify_granularity_emit(uint8_t *buf, uint64_t bytes);
/** Emit an Endurance Group List: the groups from `first` on. */
void identify_endurance_groups_emit(uint8_t *buf, uint16_t first,
                                    uint16_t count);
void identify_ns_list_emit(uint8_t *buf, const uint32_t *nsid, uint16_t count);
void identify_ns_descriptors_emit(uint8_t *buf, const uint8_t *uuid,
                                  const uint8_t *nguid, const uint8_t *eui64);

#endif
