/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/identify.h"

#include <string.h>

#include "lib/bytes.h"
#include "lib/util.h"

_Static_assert(ID_CTRL_MN == ID_CTRL_SN + 20, "serial number");
_Static_assert(ID_CTRL_FR == ID_CTRL_MN + 40, "model number");
_Static_assert(ID_CTRL_RAB == ID_CTRL_FR + 8, "firmware revision");

enum { /* namespace identification descriptors */
       NIDT_EUI64 = 1,
       NIDT_NGUID = 2,
       NIDT_UUID = 3,
       NID_HEADER = 4,
};

/* ASCII fields are padded with spaces and have no NUL. */
void identify_put_ascii(uint8_t *buf, const char *text, size_t len)
{
    size_t i = 0;

    for (; i < len && text[i] != '\0'; i++) {
        buf[i] = (uint8_t)text[i];
    }
    memset(buf + i, ' ', len - i);
}

static void put_nqn(uint8_t *buf, const char *nqn)
{
    for (size_t i = 0; i < 223 && nqn[i] != '\0'; i++) {
        buf[i] = (uint8_t)nqn[i];
    }
}

static bool is_zero(const uint8_t *p, size_t len)
{
    uint8_t any = 0;

    for (size_t i = 0; i < len; i++) {
        any |= p[i];
    }
    return any == 0;
}

void identify_controller_emit(uint8_t *buf,
                              const struct identify_controller *id)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    put_le16(buf + ID_CTRL_VID, id->vid);
    put_le16(buf + ID_CTRL_SSVID, id->ssvid);
    identify_put_ascii(buf + ID_CTRL_SN, id->sn, 20);
    identify_put_ascii(buf + ID_CTRL_MN, id->mn, 40);
    identify_put_ascii(buf + ID_CTRL_FR, id->fr, 8);
    buf[ID_CTRL_RAB] = id->rab;
    memcpy(buf + ID_CTRL_IEEE, id->ieee, 3);
    buf[ID_CTRL_CMIC] = id->cmic;
    buf[ID_CTRL_MDTS] = id->mdts;
    put_le16(buf + ID_CTRL_CNTLID, id->cntlid);
    put_le32(buf + ID_CTRL_VER, id->ver);
    put_le32(buf + ID_CTRL_OAES, id->oaes);
    put_le32(buf + ID_CTRL_CTRATT, id->ctratt);
    buf[ID_CTRL_CNTRLTYPE] = id->cntrltype;
    buf[ID_CTRL_NVMSR] = id->nvmsr;
    buf[ID_CTRL_MEC] = id->mec;
    put_le16(buf + ID_CTRL_OACS, id->oacs);
    buf[ID_CTRL_ACL] = id->acl;
    buf[ID_CTRL_AERL] = id->aerl;
    buf[ID_CTRL_FRMW] = id->frmw;
    buf[ID_CTRL_LPA] = id->lpa;
    buf[ID_CTRL_ELPE] = id->elpe;
    buf[ID_CTRL_NPSS] = id->npss;
    put_le16(buf + ID_CTRL_WCTEMP, id->wctemp);
    put_le16(buf + ID_CTRL_CCTEMP, id->cctemp);
    put_le64(buf + ID_CTRL_TNVMCAP, id->tnvmcap);
    put_le64(buf + ID_CTRL_UNVMCAP, id->unvmcap);
    put_le16(buf + ID_CTRL_EDSTT, id->edstt);
    buf[ID_CTRL_DSTO] = id->dsto;
    buf[ID_CTRL_FWUG] = id->fwug;
    put_le16(buf + ID_CTRL_ENDGIDMAX, id->endgidmax);
    put_le16(buf + ID_CTRL_KAS, id->kas);
    put_le32(buf + ID_CTRL_SANICAP, id->sanicap);
    buf[ID_CTRL_ANATT] = id->anatt;
    buf[ID_CTRL_ANACAP] = id->anacap;
    put_le32(buf + ID_CTRL_ANAGRPMAX, id->anagrpmax);
    put_le32(buf + ID_CTRL_NANAGRPID, id->nanagrpid);
    put_le32(buf + ID_CTRL_PELS, id->pels);
    buf[ID_CTRL_SQES] = id->sqes;
    buf[ID_CTRL_CQES] = id->cqes;
    put_le16(buf + ID_CTRL_MAXCMD, id->maxcmd);
    put_le32(buf + ID_CTRL_NN, id->nn);
    put_le16(buf + ID_CTRL_ONCS, id->oncs);
    put_le16(buf + ID_CTRL_FUSES, id->fuses);
    buf[ID_CTRL_FNA] = id->fna;
    buf[ID_CTRL_VWC] = id->vwc;
    buf[ID_CTRL_NWPC] = id->nwpc;
    put_le32(buf + ID_CTRL_MNAN, id->mnan);
    put_le16(buf + ID_CTRL_ACWU, id->acwu);
    put_le16(buf + ID_CTRL_OCFS, id->ocfs);
    put_le32(buf + ID_CTRL_SGLS, id->sgls);
    put_nqn(buf + ID_CTRL_SUBNQN, id->subnqn);
    put_le32(buf + ID_CTRL_IOCCSZ, id->ioccsz);
    put_le32(buf + ID_CTRL_IORCSZ, id->iorcsz);
    put_le16(buf + ID_CTRL_ICDOFF, id->icdoff);
    buf[ID_CTRL_FCATT] = id->fcatt;
    buf[ID_CTRL_MSDBD] = id->msdbd;
    put_le16(buf + ID_CTRL_PSD0, id->power_cw);
}

/* Writes of up to so many blocks are atomic if they are within one of the
 * ranges that the boundaries separate. */
static void put_atomicity(uint8_t *buf, uint16_t blocks)
{
    uint16_t field = (uint16_t)(blocks - 1);

    if (blocks == 0) {
        return;
    }
    buf[ID_NS_NSFEAT] |= NSFEAT_NSABP;
    put_le16(buf + ID_NS_NAWUN, field);
    put_le16(buf + ID_NS_NAWUPF, field);
    put_le16(buf + ID_NS_NABSN, field);
    put_le16(buf + ID_NS_NABSPF, field);
}

/* Granularity and alignment are the same for writes and for deallocation, and
 * a single unit is written as well as many are. */
static void put_preferences(uint8_t *buf, uint16_t blocks)
{
    uint16_t unit = (uint16_t)(blocks - 1);

    if (blocks == 0) {
        return;
    }
    buf[ID_NS_NSFEAT] |= NSFEAT_OPTPERF;
    put_le16(buf + ID_NS_NPWG, unit);
    put_le16(buf + ID_NS_NPWA, unit);
    put_le16(buf + ID_NS_NPDG, unit);
    put_le16(buf + ID_NS_NPDA, unit);
    put_le16(buf + ID_NS_NOWS, unit);
}

void identify_namespace_emit(uint8_t *buf, const struct identify_namespace *id)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    put_le64(buf + ID_NS_NSZE, id->size_blocks);
    put_le64(buf + ID_NS_NCAP, id->size_blocks);
    put_le64(buf + ID_NS_NUSE, id->used_blocks);
    buf[ID_NS_NLBAF] = (uint8_t)(id->formats - 1);
    buf[ID_NS_FLBAS] = id->format;
    buf[ID_NS_METADATA_CAPABILITIES] = id->mc;
    buf[ID_NS_PROTECTION_CAPABILITIES] = id->dpc;
    buf[ID_NS_DPS] = id->dps;
    buf[ID_NS_NMIC] = id->nmic;
    buf[ID_NS_RESCAP] = id->rescap;
    buf[ID_NS_DLFEAT] = id->dlfeat;
    put_atomicity(buf, id->atomic_blocks);
    put_preferences(buf, id->preferred_blocks);
    put_le64(buf + ID_NS_NVMCAP, id->owned_bytes);
    put_le16(buf + ID_NS_MSSRL, id->mssrl);
    put_le32(buf + ID_NS_MCL, id->mcl);
    buf[ID_NS_MSRC] = id->msrc;
    put_le32(buf + ID_NS_ANAGRPID, id->anagrpid);
    buf[ID_NS_NSATTR] = id->nsattr;
    put_le16(buf + ID_NS_ENDGID, id->endgid);
    if (id->nguid != NULL) {
        memcpy(buf + ID_NS_NGUID, id->nguid, 16);
    }
    if (id->eui64 != NULL) {
        memcpy(buf + ID_NS_EUI64, id->eui64, 8);
    }
    for (uint8_t i = 0; i < id->formats; i++) {
        put_le16(buf + ID_NS_LBAF0 + 4 * i, id->metadata_len[i]);
        buf[ID_NS_LBAF0 + 4 * i + 2] = id->block_shift[i]; /* LBADS */
    }
}

void identify_namespace_any_emit(uint8_t *buf,
                                 const struct identify_namespace *id)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    buf[ID_NS_ANY_NMIC] = id->nmic;
    buf[ID_NS_ANY_RESCAP] = id->rescap;
    put_le32(buf + ID_NS_ANY_ANAGRPID, id->anagrpid);
    buf[ID_NS_ANY_NSATTR] = id->nsattr;
    put_le16(buf + ID_NS_ANY_ENDGID, id->endgid);
    buf[ID_NS_ANY_NSTAT] = NSTAT_READY;
}

void identify_ctrl_list_emit(uint8_t *buf, const uint16_t *cntlid,
                             uint16_t count)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    put_le16(buf + CTRL_LIST_COUNT, count);
    for (uint16_t i = 0; i < count; i++) {
        put_le16(buf + CTRL_LIST_FIRST + 2 * i, cntlid[i]);
    }
}

void identify_granularity_emit(uint8_t *buf, uint64_t bytes)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    put_le64(buf + ID_GRANULARITY_SIZE, bytes);
    put_le64(buf + ID_GRANULARITY_CAPACITY, bytes);
}

void identify_endurance_groups_emit(uint8_t *buf, uint16_t first,
                                    uint16_t count)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    put_le16(buf, count);
    for (uint16_t i = 0; i < count; i++) {
        put_le16(buf + 2 + (size_t)2 * i, (uint16_t)(first + i));
    }
}

void identify_ns_list_emit(uint8_t *buf, const uint32_t *nsid, uint16_t count)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    for (uint16_t i = 0; i < count && i < NVME_IDENTIFY_LEN / 4; i++) {
        put_le32(buf + 4 * i, nsid[i]);
    }
}

static uint8_t *put_descriptor(uint8_t *buf, uint8_t nidt, const uint8_t *nid,
                               uint8_t len)
{
    if (is_zero(nid, len)) {
        return buf;
    }
    buf[0] = nidt;
    buf[1] = len;
    memcpy(buf + NID_HEADER, nid, len);
    return buf + NID_HEADER + len;
}

void identify_ns_descriptors_emit(uint8_t *buf, const uint8_t *uuid,
                                  const uint8_t *nguid, const uint8_t *eui64)
{
    memset(buf, 0, NVME_IDENTIFY_LEN);
    buf = put_descriptor(buf, NIDT_EUI64, eui64, 8);
    buf = put_descriptor(buf, NIDT_NGUID, nguid, 16);
    put_descriptor(buf, NIDT_UUID, uuid, 16);
}
