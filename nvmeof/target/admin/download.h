/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The state of a firmware download: firmware.c.
 */
#ifndef ESSD_NVMEOF_TARGET_ADMIN_DOWNLOAD_H
#define ESSD_NVMEOF_TARGET_ADMIN_DOWNLOAD_H

#include "nvmeof/target/target.h"

/* The firmware image that a host downloads: firmware.c. */
struct firmware_manager {
    uint8_t owner;      /* index of the controller that downloads, or NO_CTRL */
    uint64_t owner_us;  /* when the owner's last piece began to arrive */
    uint32_t image;     /* serial number of the image that is collected */
    bool is_overlapped; /* another controller has sent a piece meanwhile */
    bool is_storing;    /* `req` stores the image */
    bool given_up; /* an image was given up before this start of the drive */
    uint32_t end_bytes; /* end of the piece with the highest offset so far */
    uint32_t arrived_bytes; /* bytes of all pieces that have arrived so far */
    /* One bit for each unit of NVMF_FIRMWARE_UNIT bytes: set if a piece with
     * this unit has begun to arrive. */
    uint32_t units[NVMF_FIRMWARE_MAX / NVMF_FIRMWARE_UNIT / 32];
    struct nvmf_request *req; /* the commit that is in progress; or NULL */
};

#endif
