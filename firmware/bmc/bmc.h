/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive as a BMC sees it on an I2C bus: the Basic Management Command at
 * address 6Ah, the VPD at 53h, and MCTP messages at 1Dh, which the drive
 * answers as the bus's controller.
 * Spec: DMTF DSP0236 (MCTP), DSP0237 (MCTP over SMBus); NVM Express Management
 * Interface 1.1.
 *
 * Not implemented: SMBus ARP, and what mctp.h leaves out.
 * While a response is being sent, requests wait in the I2C controller, which
 * does not acknowledge its address when it is full.
 */
#ifndef ESSD_BMC_BMC_H
#define ESSD_BMC_BMC_H

#include "firmware/bmc/mctp.h"
#include "firmware/bmc/mctp_control.h"
#include "firmware/bmc/mi.h"
#include "firmware/drivers/i2c.h"

enum { BMC_ATTEMPTS = 8 }; /* at writing a packet that is not acknowledged */

struct bmc_counters {
    uint32_t requests;  /* complete messages */
    uint32_t responses; /* those whose packets were all acknowledged */
    uint32_t bad_pec;
    uint32_t bad_packets; /* malformed, out of order, or not for the drive */
    uint32_t bad_checks;  /* the integrity check of a message was wrong */
    uint32_t unsent;      /* responses that the BMC did not acknowledge */
};

struct bmc_config {
    struct i2c *bus;
    struct mi_source source;
    struct vpd vpd;
    uint16_t vendor_id;
    char serial[MI_SERIAL_LEN + 1]; /* padded with spaces */
    uint8_t uuid[MCTP_UUID_LEN];
};

/* Treat as opaque. */
struct bmc {
    struct i2c *bus; /* NULL: there is no BMC interface */
    struct mi mi;
    struct bmc_counters counters;
    char serial[MI_SERIAL_LEN];
    struct mctp_control control;
    uint64_t image_us;
    struct mctp_assembly assembly;
    /* The response whose packets are being sent. */
    struct mctp_peer to;
    bool is_sending;
    uint8_t attempts;
    uint8_t seq;
    size_t sent_len;
    size_t response_len;
    uint8_t response[MI_MESSAGE_MAX];
    struct i2c_request packet;
    size_t packet_data_len; /* bytes of the response in `packet` */
};

/** Begin to answer. `bmc` must not move afterwards. */
void bmc_init(struct bmc *bmc, const struct bmc_config *config);

/**
 * Take the requests that have come.
 *
 * @param deadline_us  lowered to when to call this again
 * @return whether anything was done
 */
bool bmc_step(struct bmc *bmc, uint64_t now_us, uint64_t *deadline_us);

#endif
