/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a command is: the rows of the command tables.
 */
#ifndef ESSD_NVMEOF_TARGET_BASE_COMMAND_H
#define ESSD_NVMEOF_TARGET_BASE_COMMAND_H

#include "nvmeof/target/state.h"
#include "nvmeof/wire/opcode.h"

/* Returned by a handler whose command completes later. */
#define NVMF_PENDING 0xffff

enum data_direction { DATA_NONE, DATA_TO_CONTROLLER, DATA_TO_HOST };

enum { /* nvmf_command.flags */
       /* NSID names an active namespace, to which req->ns points. */
       COMMAND_NEEDS_NS = 0x01,
       COMMAND_ON_DISCOVERY = 0x02, /* valid on discovery controllers too */
       COMMAND_WRITES = 0x04,       /* changes user data */
       COMMAND_SGL_LONGER = 0x08, /* the SGL may describe more than is moved */
       COMMAND_HAS_LBA = 0x10,    /* dwords 10 and 11 are an LBA */
       COMMAND_CHANGES_NS = 0x20, /* changes what Identify says of namespaces */
       COMMAND_CHANGES_NS_LIST = 0x40, /* changes which namespaces there are */
       COMMAND_IS_QUERY = 0x80, /* asks what there is; a refusal is no error */
};

/*
 * One row of a command table; the index is the opcode (fabrics: FCTYPE).
 * A row without `execute` stands for a command that does not exist.
 */
struct nvmf_command {
    uint8_t direction; /* enum data_direction */
    uint8_t flags;

    /* Check the fields, and set data_len and steps. @return a status, or 0 */
    uint16_t (*check)(struct nvmf_target *target, struct nvmf_request *req);

    /*
     * Execute the command.  Data to the controller has arrived; buffers for
     * data to the host are allocated.  A command that uses the media is called
     * once for each of its steps, and again for a step for which the media had
     * no room.
     *
     * @return a status, or NVMF_PENDING
     */
    uint16_t (*execute)(struct nvmf_target *target, struct nvmf_request *req);

    /* Called after the last step.  May be NULL. */
    void (*finish)(struct nvmf_target *target, struct nvmf_request *req);

    /* Called instead of finish() when a step has failed at the media.  May be
     * NULL. */
    void (*fail)(struct nvmf_target *target, struct nvmf_request *req);
};

extern const struct nvmf_command fabrics_commands[];
extern const struct nvmf_command admin_commands[];

enum {
    FABRICS_COMMANDS = 0x09,
    ADMIN_COMMANDS = 0x87,
    IO_COMMANDS = 0x1a, /* of every command set */
};

/*
 * The I/O commands of one command set, by opcode.  NULL stands for a command
 * that does not exist.
 */
struct nvmf_command_set {
    uint8_t csi;
    const struct nvmf_command *row[IO_COMMANDS];
    /* What executes a command for a namespace whose blocks have metadata; NULL:
     * the same row. */
    const struct nvmf_command *metadata_row[IO_COMMANDS];
};

extern const struct nvmf_command_set nvm_command_set;
extern const struct nvmf_command_set *const command_sets[]; /* ends with NULL */

/* @return NULL if the target does not have that command set */
const struct nvmf_command_set *command_set_of(uint32_t csi);

extern const struct nvmf_command sanitize_refusal; /* instead of a command */

#endif
