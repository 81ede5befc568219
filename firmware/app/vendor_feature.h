/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The drive's vendor specific NVMe features: docs/nvme.md, "Vendor features".
 */
#ifndef ESSD_APP_VENDOR_FEATURE_H
#define ESSD_APP_VENDOR_FEATURE_H

#include "firmware/net/drive_net.h"
#include "firmware/settings/settings.h"
#include "nvmeof/target/target.h"

enum {
    VENDOR_FEATURE_PORT_FEC = 0xc0,
    VENDOR_FEATURE_CONFIG = 0xc1, /* the configuration's body, then zeroes */
    VENDOR_CONFIG_LEN = 512,

    VENDOR_FEC_MODE = 0,    /* dword 11 and the answer, 8 bits each */
    VENDOR_FEC_PORT = 8,    /* dword 11 */
    VENDOR_FEC_IN_USE = 8,  /* the answer; VENDOR_FEC_NO_LINK: the link is */
    VENDOR_FEC_REASON = 16, /* down, and enum port_link_reason says why */
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
