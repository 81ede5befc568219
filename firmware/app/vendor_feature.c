/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/app/vendor_feature.h"

#include "nvmeof/wire/cqe.h"

static uint8_t byte_of(uint32_t value, unsigned int shift)
{
    return (uint8_t)(value >> shift & 0xff);
}

static uint32_t fec_in_force(const struct settings *settings, uint8_t port)
{
    struct port_link link;

    drive_net_link(settings->net, port, &link);
    return (uint32_t)settings->in_force.port[port].fec << VENDOR_FEC_MODE |
           (link.is_up ? (uint32_t)link.fec : (uint32_t)VENDOR_FEC_NO_LINK)
               << VENDOR_FEC_IN_USE |
           (uint32_t)link.reason << VENDOR_FEC_REASON;
}

static uint16_t get(void *ctx, uint8_t fid, enum nvmf_select select,
                    uint32_t cdw11, uint32_t *value)
{
    const struct settings *settings = ctx;
    uint8_t port = byte_of(cdw11, VENDOR_FEC_PORT);
    struct config defaults;

    if (fid != VENDOR_FEATURE_PORT_FEC || port >= CONFIG_PORTS ||
        cdw11 >> 16 != 0) {
        return NVME_SC_INVALID_FIELD;
    }
    switch (select) {
    case NVMF_SELECT_DEFAULT:
        config_default(&defaults);
        *value = defaults.port[port].fec;
        break;
    case NVMF_SELECT_SAVED:
        *value = settings->saved.port[port].fec;
        break;
    default:
        *value = fec_in_force(settings, port);
        break;
    }
    return NVME_SC_SUCCESS;
}

static uint16_t set(void *ctx, uint8_t fid, bool is_saved, uint32_t cdw11)
{
    uint8_t mode = byte_of(cdw11, VENDOR_FEC_MODE);

    if (fid != VENDOR_FEATURE_PORT_FEC || cdw11 >> 16 != 0 ||
        mode > CONFIG_FEC_RS) {
        return NVME_SC_INVALID_FIELD;
    }
    switch (settings_set_fec(ctx, byte_of(cdw11, VENDOR_FEC_PORT),
                             (enum config_fec)mode, is_saved)) {
    case SETTINGS_OK:
        return NVME_SC_SUCCESS;
    case SETTINGS_NOT_SAVED:
        return NVME_SC_INTERNAL;
    default:
        return NVME_SC_INVALID_FIELD;
    }
}

struct nvmf_vendor vendor_features(struct settings *settings)
{
    return (struct nvmf_vendor){.ctx = settings, .get = get, .set = set};
}
