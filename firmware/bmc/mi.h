/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What a BMC is told about the drive: the data of the Basic Management Command,
 * and the commands of the NVMe Management Interface.
 * Spec: NVM Express Management Interface 1.1; for the Basic Management Command
 * its Appendix A.
 *
 * Not implemented, and refused: VPD Write (the VPD is read-only), Reset, NVMe
 * Admin and PCIe commands, and control primitives except Get State.
 */
#ifndef ESSD_BMC_MI_H
#define ESSD_BMC_MI_H

#include "firmware/bmc/vpd.h"

enum {
    MI_SERIAL_LEN = 20,
    MI_BASIC_LEN = 256,
    MI_BASIC_ADDR = 0x6a, /* seven bits */
    MI_VPD_ADDR = 0x53,
    MI_MCTP_ADDR = 0x1d,
    MI_CONTROLLERS_MAX = 255,
    MI_MESSAGE_MAX = 1024, /* the longest response: a list of controllers */
    MI_MTU = 64,           /* bytes of a message in one packet */
};

/* The drive's health, as SMART has it. */
struct mi_health {
    uint8_t critical_warning;
    uint16_t temperature_k; /* 0: not known */
    bool has_sensor_failed; /* which is why it is not known */
    uint8_t used_percent;
    uint8_t spare_percent;
    bool is_functional; /* the drive can execute hosts' commands */
    bool link_up[2];
};

enum { /* of property CSTS */
       MI_CSTS_READY = 0x01,
       MI_CSTS_FAILED = 0x02,
       MI_CSTS_SHUTDOWN = 0x0c,
       MI_CSTS = MI_CSTS_READY | MI_CSTS_FAILED | MI_CSTS_SHUTDOWN,
};

struct mi_controller {
    uint16_t cntlid;
    uint8_t status; /* of CSTS, the bits of MI_CSTS */
};

/* How many controllers are in a state. */
struct mi_summary {
    unsigned int ready, failed, shut_down;
};

/* What the interface asks the drive. */
struct mi_source {
    void *ctx;
    void (*health)(void *ctx, struct mi_health *health);

    /** The I/O controllers, in ascending order of their identifiers.
     * @return how many, at most MI_CONTROLLERS_MAX */
    unsigned int (*controllers)(void *ctx, struct mi_controller *list);
};

struct mi {
    struct mi_source source;
    uint16_t vendor_id;
    uint8_t vpd[VPD_LEN];
    /* What the last poll has told the BMC: the composite controller status
     * reports differences from it. */
    struct mi_health told;
    struct mi_summary told_controllers;
    uint16_t changes; /* enum of mi.c */
    struct mi_controller list[MI_CONTROLLERS_MAX];
};

/** Insert a controller into a list of `count`, which is and stays in ascending
 * order of identifiers. */
void mi_insert_controller(struct mi_controller *list, unsigned int count,
                          struct mi_controller controller);

void mi_init(struct mi *mi, const struct mi_source *source, uint16_t vendor_id,
             const struct vpd *vpd);

/**
 * Build what the Basic Management Command returns.
 *
 * @param serial  MI_SERIAL_LEN characters
 * @param buf     MI_BASIC_LEN bytes, all written
 */
void mi_basic(const struct mi *mi, const char *serial, uint8_t *buf);

/**
 * Execute an NVMe-MI request message, without its integrity check.
 *
 * @param request   the message from its type on
 * @param response  MI_MESSAGE_MAX bytes, for the message without the check
 * @return the length of the response; 0: the request is not answered
 */
size_t mi_execute(struct mi *mi, const uint8_t *request, size_t len,
                  uint8_t *response);

#endif
