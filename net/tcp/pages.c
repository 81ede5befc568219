/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Memory for bytes that have come early: pages of a common pool.  The page of a
 * byte is found by its offset in the stream, so that storing needs no list.
 */
#include <string.h>

#include "net/tcp/internal.h"

enum { GUARANTEED = 2 };

void tcp_pages_init(struct tcp *tcp)
{
    for (uint16_t i = 0; i < tcp->config.pages; i++) {
        tcp->page_next[i] = i + 1 < tcp->config.pages ? (uint16_t)(i + 1)
                                                      : (uint16_t)TCP_NO_PAGE;
    }
    tcp->saved->free_page = 0;
}

/* Pages that each connection gets, whatever others have taken. */
static uint16_t pages_due(const struct tcp *tcp)
{
    return (uint16_t)MIN(tcp->config.pages / tcp->config.connections,
                         GUARANTEED);
}

/* Beyond its guaranteed pages a connection gets what is not owed to others. */
static bool page_allowed(const struct tcp *tcp, const struct tcp_conn *conn)
{
    uint32_t due = pages_due(tcp);
    uint32_t owed = due * tcp->config.connections - tcp->saved->pages_due_used;

    return conn->page_count < due ||
           (uint32_t)tcp->config.pages - tcp->saved->usage.pages > owed;
}

bool tcp_page_take(struct tcp *tcp, struct tcp_conn *conn, uint16_t *page)
{
    if (!page_allowed(tcp, conn)) {
        return false;
    }
    ASSERT(tcp->saved->free_page != TCP_NO_PAGE);
    *page = tcp->saved->free_page;
    tcp->saved->free_page = tcp->page_next[*page];
    tcp->saved->usage.pages++;
    tcp->saved->pages_due_used =
        (uint16_t)(tcp->saved->pages_due_used +
                   (conn->page_count < pages_due(tcp) ? 1 : 0));
    conn->page_count++;
    return true;
}

static void page_free(struct tcp *tcp, struct tcp_conn *conn, uint16_t *page)
{
    if (*page == TCP_NO_PAGE) {
        return;
    }
    tcp->page_next[*page] = tcp->saved->free_page;
    tcp->saved->free_page = *page;
    tcp->saved->usage.pages--;
    conn->page_count--;
    tcp->saved->pages_due_used =
        (uint16_t)(tcp->saved->pages_due_used -
                   (conn->page_count < pages_due(tcp) ? 1 : 0));
    *page = TCP_NO_PAGE;
}

static uint16_t *page_at(struct tcp_conn *conn, uint64_t offset)
{
    return &conn->pages[offset / TCP_PAGE_BYTES % TCP_HOLD_PAGES];
}

static uint8_t *page_byte(struct tcp *tcp, uint16_t page, uint64_t offset)
{
    return tcp->page_bytes + (size_t)page * TCP_PAGE_BYTES +
           offset % TCP_PAGE_BYTES;
}

/* How many of `len` bytes from `offset` on are in the same page. */
static uint32_t page_share(uint64_t offset, uint32_t len)
{
    uint32_t left = TCP_PAGE_BYTES - (uint32_t)(offset % TCP_PAGE_BYTES);

    return MIN(left, len);
}

bool tcp_pages_store(struct tcp *tcp, struct tcp_conn *conn, uint32_t seq,
                     const uint8_t *data, uint32_t len)
{
    uint64_t offset = conn->rcv_offset + (seq - conn->rcv_nxt);
    uint64_t first = conn->rcv_offset / TCP_PAGE_BYTES;

    if ((offset + len - 1) / TCP_PAGE_BYTES - first >= TCP_HOLD_PAGES) {
        return false;
    }
    while (len != 0) {
        uint32_t share = page_share(offset, len);
        uint16_t *page = page_at(conn, offset);

        /* Pages taken before a failure stay: other bytes may be in them. */
        if (*page == TCP_NO_PAGE && !tcp_page_take(tcp, conn, page)) {
            return false;
        }
        memcpy(page_byte(tcp, *page, offset), data, share);
        data += share;
        offset += share;
        len -= share;
    }
    return true;
}

void tcp_pages_deliver(struct tcp *tcp, struct tcp_conn *conn, uint32_t len)
{
    uint64_t offset = conn->rcv_offset;

    while (len != 0) {
        uint32_t share = page_share(offset, len);
        uint16_t page = *page_at(conn, offset);

        ASSERT(page != TCP_NO_PAGE);
        tcp_user_deliver(tcp, tcp_conn_id(tcp, conn),
                         page_byte(tcp, page, offset), share);
        offset += share;
        len -= share;
    }
}

void tcp_pages_free(struct tcp *tcp, struct tcp_conn *conn, bool all)
{
    uint64_t offset = conn->rcv_offset;

    /* The page of the next byte stays if a range reaches into it. */
    for (uint32_t i = 0; i < TCP_HOLD_PAGES; i++) {
        uint64_t begin = (offset / TCP_PAGE_BYTES + i) * TCP_PAGE_BYTES;
        bool is_needed = false;

        for (uint8_t r = 0; !all && r < conn->range_count; r++) {
            const struct tcp_block *block = &conn->ranges[r].block;
            uint64_t left = offset + (block->left - conn->rcv_nxt);
            uint64_t right = offset + (block->right - conn->rcv_nxt);

            is_needed |= left < begin + TCP_PAGE_BYTES && right > begin;
        }
        if (!is_needed) {
            page_free(tcp, conn, page_at(conn, begin));
        }
    }
}
