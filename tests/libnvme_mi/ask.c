/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Asks a drive over NVMe-MI with libnvme-mi, and prints what the library has
 * decoded from the answers: one "name value" a line.  A refusal is printed as
 * "refused" and the status.
 */
#include <stdio.h>
#include <string.h>

#include <libnvme-mi.h>

enum { NETWORK = 1, EID = 9, VPD_READ = 5, VPD_BYTES = 256 };

static int show_refusal(const char *what, int rc)
{
    printf("%s refused %d\n", what, rc);
    return rc;
}

static void ask_subsystem(nvme_mi_ep_t ep)
{
    struct nvme_mi_read_nvm_ss_info info;
    int rc = nvme_mi_mi_read_mi_data_subsys(ep, &info);

    if (rc != 0) {
        show_refusal("subsystem", rc);
        return;
    }
    printf("ports %u\nversion %u.%u\n", info.nump + 1u, info.mjr, info.mnr);
    for (unsigned int i = 0; i <= info.nump; i++) {
        struct nvme_mi_read_port_info port;

        rc = nvme_mi_mi_read_mi_data_port(ep, (__u8)i, &port);
        if (rc != 0) {
            show_refusal("port", rc);
            continue;
        }
        printf("port-%u-type %u\nport-%u-unit %u\n", i, port.portt, i,
               port.mmctptus);
        if (port.portt == 2) {
            printf("port-%u-vpd %02x\nport-%u-mctp %02x\nport-%u-basic %u\n", i,
                   port.smb.vpd_addr, i, port.smb.mme_addr, i,
                   port.smb.nvmebm & 1u);
        }
    }
}

static void ask_controllers(nvme_mi_ep_t ep)
{
    struct nvme_ctrl_list list;
    int rc = nvme_mi_mi_read_mi_data_ctrl_list(ep, 0, &list);

    if (rc != 0) {
        show_refusal("controllers", rc);
        return;
    }
    printf("controllers %u\n", list.num);
    for (unsigned int i = 0; i < list.num; i++) {
        struct nvme_mi_read_ctrl_info info;

        rc = nvme_mi_mi_read_mi_data_ctrl(ep, list.identifier[i], &info);
        printf("controller %u\n", list.identifier[i]);
        if (rc == 0) {
            printf("vendor %04x\n", info.vid);
        } else {
            show_refusal("controller", rc);
        }
    }
}

static void ask_health(nvme_mi_ep_t ep)
{
    struct nvme_mi_nvm_ss_health_status health;
    int rc = nvme_mi_mi_subsystem_health_status_poll(ep, false, &health);

    if (rc != 0) {
        show_refusal("health", rc);
        return;
    }
    printf("status %02x\nwarnings %02x\ncelsius %u\nused %u\n", health.nss,
           health.sw, health.ctemp, health.pdlu);
}

static void ask_configuration(nvme_mi_ep_t ep)
{
    enum nvme_mi_config_smbus_freq freq;
    __u16 unit;
    int rc = nvme_mi_mi_config_get_smbus_freq(ep, 0, &freq);

    if (rc == 0) {
        printf("frequency %d\n", (int)freq);
    } else {
        show_refusal("frequency", rc);
    }
    rc = nvme_mi_mi_config_get_mctp_mtu(ep, 0, &unit);
    if (rc == 0) {
        printf("unit %u\n", unit);
    } else {
        show_refusal("unit", rc);
    }
    rc =
        nvme_mi_mi_config_set_smbus_freq(ep, 0, NVME_MI_CONFIG_SMBUS_FREQ_1MHz);
    if (rc != 0) {
        show_refusal("set-1MHz", rc);
    }
}

/* libnvme-mi has no function for VPD Read.  nvme_mi_mi_xfer() sends any
 * message, and handles its integrity check. */
static void ask_vpd(nvme_mi_ep_t ep)
{
    struct nvme_mi_mi_req_hdr request = {
        .hdr = {.type = NVME_MI_MSGTYPE_NVME,
                .nmp = (NVME_MI_ROR_REQ << 7) | (NVME_MI_MT_MI << 3)},
        .opcode = VPD_READ,
        .cdw1 = VPD_BYTES,
    };
    static struct {
        struct nvme_mi_mi_resp_hdr header;
        unsigned char bytes[VPD_BYTES];
    } response;
    size_t len = VPD_BYTES;
    int rc = nvme_mi_mi_xfer(ep, &request, 0, &response.header, &len);

    if (rc != 0 || response.header.status != 0) {
        show_refusal("vpd", rc != 0 ? rc : response.header.status);
        return;
    }
    printf("vpd ");
    for (size_t i = 0; i < len; i++) {
        printf("%02x", response.bytes[i]);
    }
    printf("\n");
}

static void ask_state(nvme_mi_ep_t ep)
{
    __u16 state;
    int rc = nvme_mi_control(ep, nvme_mi_control_opcode_get_state, 0, &state);

    if (rc == 0) {
        printf("state %04x\n", state);
    } else {
        show_refusal("state", rc);
    }
}

/* The drive takes no admin commands over NVMe-MI, and must refuse them in a way
 * that libnvme-mi understands. */
static void ask_identify(nvme_mi_ep_t ep)
{
    static struct nvme_id_ctrl id;
    nvme_mi_ctrl_t ctrl = nvme_mi_init_ctrl(ep, 1);
    int rc = ctrl != NULL ? nvme_mi_admin_identify_ctrl(ctrl, &id) : -1;

    if (rc == 0) {
        printf("identify %.20s\n", id.sn);
    } else {
        show_refusal("identify", rc);
    }
}

int main(void)
{
    nvme_root_t root = nvme_mi_create_root(stderr, 7);
    nvme_mi_ep_t ep;

    if (root == NULL) {
        return 1;
    }
    ep = nvme_mi_open_mctp(root, NETWORK, EID);
    if (ep == NULL) {
        fprintf(stderr, "cannot open an MCTP endpoint\n");
        return 1;
    }
    nvme_mi_ep_set_timeout(ep, 10000);
    ask_subsystem(ep);
    ask_controllers(ep);
    ask_health(ep);
    ask_configuration(ep);
    ask_vpd(ep);
    ask_state(ep);
    ask_identify(ep);
    nvme_mi_close(ep);
    nvme_mi_free_root(root);
    return 0;
}
