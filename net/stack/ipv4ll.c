/* SPDX-License-Identifier: BSD-2-Clause */
/* IPv4 link-local addresses: see ipv4ll.h. */
#include "net/stack/ipv4ll.h"

#include "lib/bytes.h"
#include "lib/random.h"

enum {
    FIRST = 0xa9fe0100, /* 169.254.1.0 to 169.254.254.255: section 2.1 */
    COUNT = 254 * 256,
    PREFIX_BITS = 16,
};

void ipv4ll_init(struct ipv4ll *ll, struct net_stack *stack, uint8_t port,
                 uint16_t vlan)
{
    *ll = (struct ipv4ll){
        .stack = stack,
        .due_us = UINT64_MAX,
        .vlan = vlan,
        .port = port,
        .local = -1,
    };
}

/* A hash of the MAC, so that similar MACs give different addresses. */
static struct ip_addr address_of(const struct ipv4ll *ll)
{
    const uint8_t *mac = ll->stack->config.ports[ll->port].mac.bytes;
    uint64_t x = (uint64_t)get_be32(mac) << 16 | get_be16(mac + 4);

    x = random_mix(x + ll->candidate * RANDOM_STEP);
    return ip_addr_from_v4((uint32_t)FIRST + (uint32_t)(x % COUNT));
}

void ipv4ll_start(struct ipv4ll *ll, uint64_t now_us)
{
    if (!ll->is_wanted) {
        ll->is_wanted = true;
        ll->due_us = now_us;
    }
}

static void address_drop(struct ipv4ll *ll)
{
    if (ll->local >= 0) {
        net_stack_address_remove(ll->stack, (uint8_t)ll->local);
        ll->local = -1;
    }
}

void ipv4ll_stop(struct ipv4ll *ll)
{
    address_drop(ll);
    ll->is_wanted = false;
    ll->due_us = UINT64_MAX;
}

static void try_candidate(struct ipv4ll *ll, uint64_t now_us)
{
    const struct net_address_config config = {
        .ip = address_of(ll),
        .vlan = ll->vlan,
        .port = ll->port,
        .prefix_bits = PREFIX_BITS,
        .is_probed = true,
        .is_yielding = true,
        .is_leased = true,
    };

    ll->local = net_stack_address_add(ll->stack, &config, now_us);
    ll->due_us = ll->local >= 0 ? UINT64_MAX : now_us + IPV4LL_WAIT_US;
}

uint64_t ipv4ll_timer(struct ipv4ll *ll, uint64_t now_us)
{
    if (ll->local >= 0 && net_stack_is_usable(ll->stack, (uint8_t)ll->local)) {
        ll->conflicts = 0;
    }
    if (ll->local >= 0 &&
        net_stack_is_duplicate(ll->stack, (uint8_t)ll->local)) {
        address_drop(ll);
        ll->candidate++;
        ll->conflicts++;
        ll->due_us = ll->conflicts < IPV4LL_MAX_CONFLICTS
                         ? now_us
                         : now_us + IPV4LL_WAIT_US;
    }
    if (ll->due_us <= now_us) {
        try_candidate(ll, now_us);
    }
    return ll->due_us;
}
