/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What follows from the end of a command that has used a namespace.
 */
#include "nvmeof/target/namespaces/namespaces.h"

/* Somebody may wait until no command uses the namespace any more. */
static void tell_drained(struct nvmf_target *target, const struct nvmf_ns *ns)
{
    if (ns->state != NS_READY && ns->users == 0 && !ns_drained(target, ns) &&
        target->sanitize.req != NULL) {
        ns_hooks.drained(target);
    }
}

/* A command has ended, and somebody may wait for that. */
void ns_released(struct nvmf_target *target, struct nvmf_request *req,
                 struct nvmf_ns *ns, uint16_t status)
{
    if (ns->caution & CAUTION_TRACKED) {
        ns_hooks.written(target, req, ns, status);
    }
    await_command_ended(target, req, ns);
    tell_drained(target, ns);
}

/* A Copy has ended that has read the namespace as a source, and somebody may
 * wait for that. */
void ns_source_released(struct nvmf_target *target, struct nvmf_request *req,
                        struct nvmf_ns *ns)
{
    await_copy_ended(target, req, ns);
    tell_drained(target, ns);
}
