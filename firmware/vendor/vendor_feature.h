/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's vendor specific NVMe features: docs/nvme.md, "Vendor features".
 */
#ifndef ESSD_VENDOR_VENDOR_FEATURE_H
#define ESSD_VENDOR_VENDOR_FEATURE_H

#include "firmware/net/drive_net.h"
#include "firmware/settings/settings.h"
#include "nvmeof/target/target.h"

enum {
    VENDOR_FEATURE_PORT_FEC = 0xd0,
    /* The body of the configuration, then zeroes. */
    VENDOR_FEATURE_CONFIG = 0xd1,
    VENDOR_CONFIG_LEN = 512,

    VENDOR_FEC_MODE = 0, /* in dword 11 and in the answer, 8 bits each */
    VENDOR_FEC_PORT = 8, /* in dword 11 */
    /* In the answer; VENDOR_FEC_NO_LINK while the link is down. */
    VENDOR_FEC_IN_USE = 8,
    /* In the answer: enum port_link_reason, why the link is down. */
    VENDOR_FEC_REASON = 16,
    VENDOR_FEC_NO_LINK = 0xff,
};

/* The objects that the features read and change. */
struct vendor_feature {
    struct settings *settings;
    const struct drive_net *net;
};

/** Return the seam for nvmf_config. @param feature  outlives the target */
struct nvmf_vendor vendor_features(struct vendor_feature *feature);

#endif
