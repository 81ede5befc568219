/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * RNIC driver: the command ring and the objects that are one command each
 * (memory regions, local addresses, neighbours).
 * Reference: docs/hardware/rnic.md, sections 1 and 3.
 */
#include "firmware/drivers/rnic_internal.h"

#include "firmware/hal/relax.h"

static uint8_t *command_slot(struct verbs *verbs)
{
    return verbs->commands +
           (size_t)(verbs->cmd_pi & ((1u << CMD_LOG2) - 1)) * RNIC_CMD_LEN;
}

uint8_t *rnic_cmd_begin(struct verbs *verbs, enum rnic_opcode opcode,
                        uint32_t index)
{
    uint8_t *cmd = command_slot(verbs);

    memset(cmd, 0, RNIC_CMD_LEN);
    dram_store8(cmd, RNIC_CMD_OPCODE, (uint8_t)opcode);
    dram_store32(cmd, RNIC_CMD_INDEX, index);
    return cmd;
}

void rnic_kick_sleeper(struct verbs *verbs)
{
    hal_dma_mb();
    if (shared_load32(verbs->page, RNIC_PAGE_ASLEEP) == 1) {
        mmio_write32(verbs->hart_regs + A_RNIC_HART_KICK, 1);
        verbs->counters.kicks++;
    }
}

enum rnic_cmd_status rnic_cmd_run(struct verbs *verbs)
{
    const uint8_t *cmd = command_slot(verbs);
    uint8_t status;

    hal_dma_wmb();
    shared_store32(verbs->page, RNIC_PAGE_CMD_PI, ++verbs->cmd_pi);
    rnic_kick_sleeper(verbs);
    while ((status = shared_load8(cmd, RNIC_CMD_STATUS)) == RNIC_CMD_PENDING) {
        hal_relax();
    }
    hal_dma_rmb();
    if (status != RNIC_CMD_OK) {
        verbs->counters.commands_refused++;
    }
    return (enum rnic_cmd_status)status;
}

void rnic_cmd_must_run(struct verbs *verbs)
{
    enum rnic_cmd_status status = rnic_cmd_run(verbs);

    ASSERT(status == RNIC_CMD_OK);
}

uint32_t verbs_reg_mr(struct verbs *verbs, void *addr, uint64_t len_bytes,
                      unsigned int access)
{
    uint32_t index;
    uint8_t *cmd;

    if (verbs->mr_get == verbs->mr_put) {
        return VERBS_NO_MR;
    }
    index = verbs->free_mrs[verbs->mr_get % RNIC_MR_SLOTS];
    cmd = rnic_cmd_begin(verbs, RNIC_CMD_MR_CREATE, index);
    dram_store16(cmd, RNIC_MR_PD, PD);
    dram_store8(cmd, RNIC_MR_ACCESS, (uint8_t)access);
    dram_store8(cmd, RNIC_MR_VARIANT, verbs->mr_variant[index]);
    dram_store64(cmd, RNIC_MR_VA, hal_dma_addr(addr));
    dram_store64(cmd, RNIC_MR_LENGTH, len_bytes);
    dram_store64(cmd, RNIC_MR_DRAM, hal_dma_addr(addr));
    if (rnic_cmd_run(verbs) != RNIC_CMD_OK) {
        return VERBS_NO_MR;
    }
    verbs->mr_get++;
    return index << 8 | verbs->mr_variant[index];
}

void verbs_dereg_mr(struct verbs *verbs, uint32_t key)
{
    uint32_t index = key >> 8;
    enum rnic_cmd_status status;

    ASSERT(index < RNIC_MR_SLOTS && (key & 0xff) == verbs->mr_variant[index]);
    (void)rnic_cmd_begin(verbs, RNIC_CMD_MR_DESTROY, index);
    status = rnic_cmd_run(verbs);
    /* BAD_INDEX means that a SEND with invalidate or LOCAL_INV came first. */
    ASSERT(status == RNIC_CMD_OK || status == RNIC_CMD_BAD_INDEX);
    verbs->mr_variant[index]++; /* make old keys invalid */
    verbs->free_mrs[verbs->mr_put++ % RNIC_MR_SLOTS] = (uint16_t)index;
}

uint32_t verbs_local_key(const struct verbs *verbs)
{
    return verbs->local_key;
}

bool verbs_set_laddr(struct verbs *verbs, uint8_t index, uint8_t port,
                     const uint8_t mac[6], const struct verbs_gid *ip,
                     uint16_t vlan)
{
    uint8_t *cmd = rnic_cmd_begin(verbs, RNIC_CMD_LADDR_SET, index);

    dram_store8(cmd, RNIC_LADDR_PORT, port);
    memcpy(cmd + RNIC_LADDR_MAC, mac, 6);
    memcpy(cmd + RNIC_LADDR_IP, ip->bytes, 16);
    dram_store16(cmd, RNIC_LADDR_VLAN, vlan);
    return rnic_cmd_run(verbs) == RNIC_CMD_OK;
}

void verbs_clear_laddr(struct verbs *verbs, uint8_t index)
{
    (void)rnic_cmd_begin(verbs, RNIC_CMD_LADDR_CLEAR, index);
    rnic_cmd_must_run(verbs);
}

bool verbs_set_neigh(struct verbs *verbs, uint16_t index, uint8_t port,
                     const uint8_t mac[6], const struct verbs_gid *ip,
                     uint16_t vlan)
{
    uint8_t *cmd = rnic_cmd_begin(verbs, RNIC_CMD_NEIGH_SET, index);

    dram_store8(cmd, RNIC_NEIGH_PORT, port);
    memcpy(cmd + RNIC_NEIGH_MAC, mac, 6);
    memcpy(cmd + RNIC_NEIGH_IP, ip->bytes, 16);
    dram_store16(cmd, RNIC_NEIGH_VLAN, vlan);
    return rnic_cmd_run(verbs) == RNIC_CMD_OK;
}

void verbs_clear_neigh(struct verbs *verbs, uint16_t index)
{
    (void)rnic_cmd_begin(verbs, RNIC_CMD_NEIGH_CLEAR, index);
    rnic_cmd_must_run(verbs);
}
