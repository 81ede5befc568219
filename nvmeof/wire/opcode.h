/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Opcodes, fabrics command types, Identify CNS values, log page and feature
 * identifiers, and asynchronous event types.
 * Spec: NVM Express Base 1.4 sections 5 and 6; Fabrics 1.1 section 3.
 */
#ifndef ESSD_NVMEOF_WIRE_OPCODE_H
#define ESSD_NVMEOF_WIRE_OPCODE_H

enum { /* admin command set */
       ADMIN_GET_LOG_PAGE = 0x02,
       ADMIN_IDENTIFY = 0x06,
       ADMIN_ABORT = 0x08,
       ADMIN_SET_FEATURES = 0x09,
       ADMIN_GET_FEATURES = 0x0a,
       ADMIN_ASYNC_EVENT_REQUEST = 0x0c,
       ADMIN_NS_MANAGEMENT = 0x0d,
       ADMIN_FIRMWARE_COMMIT = 0x10,
       ADMIN_FIRMWARE_DOWNLOAD = 0x11,
       ADMIN_DEVICE_SELF_TEST = 0x14,
       ADMIN_NS_ATTACHMENT = 0x15,
       ADMIN_KEEP_ALIVE = 0x18,
       ADMIN_FORMAT_NVM = 0x80,
       ADMIN_SANITIZE = 0x84,
       ADMIN_GET_LBA_STATUS = 0x86,
       NVME_FABRICS = 0x7f, /* valid on every queue */
};

enum { /* NVM command set */
       NVM_FLUSH = 0x00,
       NVM_WRITE = 0x01,
       NVM_READ = 0x02,
       NVM_WRITE_UNCORRECTABLE = 0x04,
       NVM_COMPARE = 0x05,
       NVM_WRITE_ZEROES = 0x08,
       NVM_DATASET_MANAGEMENT = 0x09,
       NVM_VERIFY = 0x0c,
       NVM_RESERVATION_REGISTER = 0x0d,
       NVM_RESERVATION_REPORT = 0x0e,
       NVM_RESERVATION_ACQUIRE = 0x11,
       NVM_RESERVATION_RELEASE = 0x15,
       NVM_COPY = 0x19,
};

enum { /* FCTYPE */
       FABRICS_PROPERTY_SET = 0x00,
       FABRICS_CONNECT = 0x01,
       FABRICS_PROPERTY_GET = 0x04,
       FABRICS_AUTH_SEND = 0x05,
       FABRICS_AUTH_RECEIVE = 0x06,
       FABRICS_DISCONNECT = 0x08,
};

enum { /* Identify CNS */
       CNS_NAMESPACE = 0x00,
       CNS_CONTROLLER = 0x01,
       CNS_ACTIVE_NS_LIST = 0x02,
       CNS_NS_DESCRIPTORS = 0x03,
       /* From Base 2.0; the first three have a command set (CSI) in CDW11
        * 31:24. */
       CNS_NS_OF_COMMAND_SET = 0x05,
       CNS_CONTROLLER_OF_COMMAND_SET = 0x06,
       CNS_ACTIVE_NS_LIST_OF_COMMAND_SET = 0x07,
       CNS_NS_OF_ALL_COMMAND_SETS = 0x08,
       CNS_ALLOCATED_NS_LIST = 0x10,
       CNS_ALLOCATED_NS = 0x11,
       CNS_CONTROLLERS_OF_NS = 0x12,
       CNS_CONTROLLERS = 0x13,
       CNS_NS_GRANULARITY = 0x16,
       CNS_ENDURANCE_GROUPS = 0x19,
       CNS_COMMAND_SETS = 0x1c, /* with a CNTID in CDW10 31:16 */
       CSI_NVM = 0x00,          /* CSI of the NVM command set */
};

enum {                       /* log page identifiers */
       LOG_SUPPORTED = 0x00, /* Base 2.0, as 12h and 13h */
       LOG_ERROR = 0x01,
       LOG_SMART = 0x02,
       LOG_FIRMWARE_SLOT = 0x03,
       LOG_CHANGED_NS_LIST = 0x04,
       LOG_COMMANDS_EFFECTS = 0x05,
       LOG_TELEMETRY_HOST = 0x07,
       LOG_TELEMETRY_CTRL = 0x08,
       LOG_ENDURANCE_GROUP = 0x09,
       LOG_ANA = 0x0c,
       LOG_PERSISTENT_EVENT = 0x0d,
       LOG_LBA_STATUS = 0x0e,
       LOG_SELF_TEST = 0x06,
       LOG_FEATURE_EFFECTS = 0x12,
       LOG_MI_EFFECTS = 0x13,
       LOG_DISCOVERY = 0x70,
       LOG_RESERVATION = 0x80,
       LOG_SANITIZE = 0x81,
       LOG_OCP_SMART = 0xc0, /* OCP Datacenter NVMe SSD Specification 2.0 */
       LOG_OCP_RECOVERY = 0xc1,
       LOG_OCP_LATENCY = 0xc3,
       LOG_OCP_CAPABILITIES = 0xc4,
       LOG_NEIGHBOURS = 0xd0,  /* our own: docs/nvme.md */
       LOG_ERROR_TIMES = 0xd1, /* our own: docs/nvme.md */
};

enum { /* feature identifiers */
       FEATURE_ARBITRATION = 0x01,
       FEATURE_POWER_MANAGEMENT = 0x02,
       FEATURE_TEMPERATURE_THRESHOLD = 0x04,
       FEATURE_ERROR_RECOVERY = 0x05,
       FEATURE_VOLATILE_WRITE_CACHE = 0x06,
       FEATURE_NUMBER_OF_QUEUES = 0x07,
       FEATURE_WRITE_ATOMICITY = 0x0a,
       FEATURE_ASYNC_EVENT_CONFIG = 0x0b,
       FEATURE_TIMESTAMP = 0x0e,
       FEATURE_KEEP_ALIVE_TIMER = 0x0f,
       FEATURE_LBA_STATUS = 0x15,
       FEATURE_HOST_BEHAVIOR = 0x16,
       FEATURE_HOST_IDENTIFIER = 0x81,
       FEATURE_RESERVATION_MASK = 0x82,
       FEATURE_RESERVATION_PERSISTENCE = 0x83,
       FEATURE_NS_WRITE_PROTECTION = 0x84,
       FEATURE_OCP_LATENCY = 0xc5, /* OCP's latency monitor */
       /* Ours, up to FFh.  C0h to CFh belong to the OCP Datacenter NVMe SSD
        * Specification. */
       FEATURE_VENDOR_FIRST = 0xd0,
};

enum { /* asynchronous event types and information */
       EVENT_TYPE_ERROR = 0,
       EVENT_TYPE_SMART = 1,
       EVENT_TYPE_NOTICE = 2,
       EVENT_TYPE_IO = 6, /* I/O command set specific */

       EVENT_ERROR_FIRMWARE_LOAD = 5,
       EVENT_SMART_RELIABILITY = 0,
       EVENT_SMART_TEMPERATURE = 1,
       EVENT_SMART_SPARE = 2,
       EVENT_NOTICE_NS_CHANGED = 0x00,
       EVENT_SANITIZE_COMPLETED = 0x01, /* of EVENT_TYPE_IO */
       EVENT_NOTICE_ANA_CHANGED = 0x03,
       EVENT_NOTICE_LBA_STATUS = 0x05,
       EVENT_NOTICE_DISCOVERY_CHANGED = 0xf0,
       EVENT_IO_RESERVATION = 0, /* a log page is available */
};

/* The NSID that means all namespaces. */
#define NVME_NSID_ALL 0xffffffffu

#endif
