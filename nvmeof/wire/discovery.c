/* SPDX-License-Identifier: BSD-2-Clause */
#include "nvmeof/wire/discovery.h"

#include <stddef.h>
#include <string.h>

#include "lib/bytes.h"

static void put_text(uint8_t *buf, const char *text, size_t max)
{
    for (size_t i = 0; i < max && text[i] != '\0'; i++) {
        buf[i] = (uint8_t)text[i];
    }
}

void discovery_header_emit(uint8_t *buf, uint64_t genctr, uint64_t numrec)
{
    memset(buf, 0, DISCOVERY_HEADER_LEN);
    put_le64(buf + DISCOVERY_GENCTR, genctr);
    put_le64(buf + DISCOVERY_NUMREC, numrec);
}

void discovery_entry_emit(uint8_t *buf, const struct discovery_entry *entry)
{
    memset(buf, 0, DISCOVERY_ENTRY_LEN);
    buf[DISCOVERY_TRTYPE] = entry->trtype;
    buf[DISCOVERY_ADRFAM] = entry->adrfam;
    buf[DISCOVERY_SUBTYPE] = entry->subtype;
    buf[DISCOVERY_TREQ] = entry->treq;
    put_le16(buf + DISCOVERY_PORTID, entry->portid);
    put_le16(buf + DISCOVERY_CNTLID, entry->cntlid);
    put_le16(buf + DISCOVERY_ASQSZ, entry->asqsz);
    put_le16(buf + DISCOVERY_EFLAGS, entry->eflags);
    put_text(buf + DISCOVERY_TRSVCID, entry->trsvcid, 32);
    put_text(buf + DISCOVERY_SUBNQN, entry->subnqn, 223);
    put_text(buf + DISCOVERY_TRADDR, entry->traddr, 256);
    if (entry->trtype == TRTYPE_RDMA) {
        buf[DISCOVERY_RDMA_QPTYPE] = entry->tsas.rdma_qptype;
        buf[DISCOVERY_RDMA_PRTYPE] = entry->tsas.rdma_prtype;
        buf[DISCOVERY_RDMA_CMS] = entry->tsas.rdma_cms;
    } else if (entry->trtype == TRTYPE_TCP) {
        buf[DISCOVERY_TCP_SECTYPE] = entry->tsas.tcp_sectype;
    }
}
