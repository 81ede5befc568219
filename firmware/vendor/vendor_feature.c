/* SPDX-License-Identifier: BSD-2-Clause */
#include "firmware/vendor/vendor_feature.h"

#include <string.h>

#include "nvmeof/wire/cqe.h"

_Static_assert(CONFIG_BODY_LEN <= VENDOR_CONFIG_LEN, "");
_Static_assert(VENDOR_CONFIG_LEN <= (int)NVMF_VENDOR_DATA_MAX, "");

static uint8_t byte_of(uint32_t value, unsigned int shift)
{
    return (uint8_t)(value >> shift & 0xff);
}

static uint16_t status_of(enum settings_result result)
{
    switch (result) {
    case SETTINGS_OK:
        return NVME_SC_SUCCESS;
    case SETTINGS_NOT_SAVED:
        return NVME_SC_INTERNAL;
    case SETTINGS_TOO_OFTEN:
        return NVME_SC_COMMAND_INTERRUPTED;
    default:
        return NVME_SC_INVALID_FIELD;
    }
}

static uint32_t fec_in_force(const struct vendor_feature *feature, uint8_t port)
{
    const struct settings *settings = feature->settings;
    struct port_link link;

    drive_net_link(feature->net, port, &link);
    return (uint32_t)settings->in_force.port[port].fec << VENDOR_FEC_MODE |
           (link.is_up ? (uint32_t)link.fec : (uint32_t)VENDOR_FEC_NO_LINK)
               << VENDOR_FEC_IN_USE |
           (uint32_t)link.reason << VENDOR_FEC_REASON;
}

static uint16_t get_value(void *ctx, uint8_t fid, enum nvmf_select select,
                          uint32_t cdw11, uint32_t *value)
{
    const struct vendor_feature *feature = ctx;
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
        *value = feature->settings->saved.port[port].fec;
        break;
    default:
        *value = fec_in_force(feature, port);
        break;
    }
    return NVME_SC_SUCCESS;
}

static uint16_t set_value(void *ctx, uint8_t fid, bool is_saved, uint32_t cdw11)
{
    const struct vendor_feature *feature = ctx;
    uint8_t mode = byte_of(cdw11, VENDOR_FEC_MODE);

    if (fid != VENDOR_FEATURE_PORT_FEC || cdw11 >> 16 != 0 ||
        mode > CONFIG_FEC_RS) {
        return NVME_SC_INVALID_FIELD;
    }
    return status_of(settings_set_fec(feature->settings,
                                      byte_of(cdw11, VENDOR_FEC_PORT),
                                      (enum config_fec)mode, is_saved));
}

/* ---- The configuration */

static uint16_t data_len(void *ctx, uint8_t fid)
{
    (void)ctx;
    return fid == VENDOR_FEATURE_CONFIG ? VENDOR_CONFIG_LEN : 0;
}

static uint16_t get_data(void *ctx, uint8_t fid, enum nvmf_select select,
                         uint32_t cdw11, uint8_t *data)
{
    const struct vendor_feature *feature = ctx;
    const struct settings *settings = feature->settings;
    struct config defaults;

    if (fid != VENDOR_FEATURE_CONFIG || cdw11 != 0) {
        return NVME_SC_INVALID_FIELD;
    }
    config_default(&defaults);
    memset(data, 0, VENDOR_CONFIG_LEN);
    config_body_emit(select == NVMF_SELECT_DEFAULT ? &defaults
                     : select == NVMF_SELECT_SAVED ? &settings->saved
                                                   : &settings->in_force,
                     data);
    return NVME_SC_SUCCESS;
}

/* Log a mistake, because the host gets only a status. */
static void log_mistake(void *ctx, const char *text)
{
    log_line(ctx, "nvme-of: a host's configuration was refused: %s", text);
}

static bool is_zero(const uint8_t *data, size_t len)
{
    for (size_t i = 0; i < len; i++) {
        if (data[i] != 0) {
            return false;
        }
    }
    return true;
}

static uint16_t set_data(void *ctx, uint8_t fid, bool is_saved, uint32_t cdw11,
                         const uint8_t *data)
{
    const struct vendor_feature *feature = ctx;
    struct settings *settings = feature->settings;
    /* Keep the sequence of the saved one. */
    struct config config = settings->saved;

    if (fid != VENDOR_FEATURE_CONFIG || cdw11 != 0) {
        return NVME_SC_INVALID_FIELD;
    }
    if (!config_body_parse(&config, data, CONFIG_BODY_LEN) ||
        !is_zero(data + CONFIG_BODY_LEN, VENDOR_CONFIG_LEN - CONFIG_BODY_LEN)) {
        log_mistake(settings->log, "a field is outside its range");
        return NVME_SC_INVALID_FIELD;
    }
    return status_of(settings_replace(settings, &config, is_saved, log_mistake,
                                      settings->log));
}

struct nvmf_vendor vendor_features(struct vendor_feature *feature)
{
    return (struct nvmf_vendor){
        .ctx = feature,
        .get = get_value,
        .set = set_value,
        .data_len = data_len,
        .get_data = get_data,
        .set_data = set_data,
    };
}
