/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The firmware seam: what the target needs from the owner of the image slots.
 * The target checks the commands and collects the image; the seam's owner
 * checks the image and writes it to the flash.
 * Spec: NVM Express Base 2.0 sections 3.11, 5.11 and 5.12.
 */
#ifndef ESSD_NVMEOF_TARGET_FIRMWARE_H
#define ESSD_NVMEOF_TARGET_FIRMWARE_H

#include "lib/util.h"

enum {
    NVMF_FIRMWARE_SLOTS = 2,
    NVMF_FIRMWARE_REVISION = 8, /* characters */
    /* Granularity and alignment of the pieces of an image: FWUG. */
    NVMF_FIRMWARE_UNIT = 4096,
    NVMF_FIRMWARE_MAX = 8 * 1024 * 1024, /* bytes of an image */
};

enum nvmf_firmware_result {
    NVMF_FIRMWARE_OK,
    NVMF_FIRMWARE_INVALID,    /* no image, or not one for this drive */
    NVMF_FIRMWARE_PROHIBITED, /* an image that is too old */
    NVMF_FIRMWARE_READ_ONLY,  /* the slot cannot be written */
    NVMF_FIRMWARE_FAILED,     /* the flash cannot be written */
    NVMF_FIRMWARE_RESULTS
};

/* What a Firmware Commit does. */
struct nvmf_firmware_commit {
    uint8_t slot;       /* 1 or 2; 0: the owner chooses */
    bool stores;        /* writes the downloaded image to the slot */
    bool activates;     /* the slot's image starts after the next reset */
    uint32_t len_bytes; /* of the downloaded image, if it is stored */
    uint32_t host;      /* a number for the host that asks for it */
};

struct nvmf_firmware_now {
    char revision[NVMF_FIRMWARE_SLOTS][NVMF_FIRMWARE_REVISION + 1]; /* "" if a
                                                                     * slot is
                                                                     * empty */
    uint8_t active; /* the slot that runs: 1 or 2 */
    uint8_t next;   /* the slot that starts after a subsystem reset, if it holds
                     * another image than the running one; otherwise 0 */
    bool is_first_read_only;
};

struct nvmf_firmware {
    void *ctx;
    uint8_t *image; /* memory of NVMF_FIRMWARE_MAX bytes in which the target
                     * collects an image; NULL: no firmware commands */

    /**
     * Begin a commit; nvmf_firmware_committed() is called at its end, not
     * before this has returned.  One commit is in progress at a time, and the
     * image does not change meanwhile.
     *
     * @return false when the flash has to be spared: the host may try again
     * later, and nvmf_firmware_committed() is not called
     */
    bool (*commit)(void *ctx, const struct nvmf_firmware_commit *commit);

    void (*describe)(void *ctx, struct nvmf_firmware_now *now);
};

#endif
