/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The functions of the C library that the firmware calls.  Those for memory are
 * the process's, since they use all that its processor has.
 */
#include "firmware/native_hart/hart.h"

#include <string.h>

void *memcpy(void *restrict to, const void *restrict from, size_t len)
{
    return native_ops->copy(to, from, len);
}

void *memmove(void *to, const void *from, size_t len)
{
    return native_ops->move(to, from, len);
}

void *memset(void *to, int value, size_t len)
{
    return native_ops->fill(to, value, len);
}

int memcmp(const void *a, const void *b, size_t len)
{
    return native_ops->compare(a, b, len);
}

void explicit_bzero(void *memory, size_t len)
{
    native_ops->fill(memory, 0, len);
    __asm__ volatile("" : : "r"(memory) : "memory");
}

size_t strnlen(const char *text, size_t max)
{
    size_t len = 0;

    while (len < max && text[len] != '\0') {
        len++;
    }
    return len;
}

size_t strlen(const char *text)
{
    return strnlen(text, SIZE_MAX);
}

int strncmp(const char *a, const char *b, size_t len)
{
    for (; len != 0; len--, a++, b++) {
        if (*a != *b || *a == '\0') {
            return (unsigned char)*a - (unsigned char)*b;
        }
    }
    return 0;
}

int strcmp(const char *a, const char *b)
{
    return strncmp(a, b, SIZE_MAX);
}

char *strchr(const char *text, int c)
{
    for (; *text != (char)c; text++) {
        if (*text == '\0') {
            return NULL;
        }
    }
    return (char *)(uintptr_t)text;
}

size_t strcspn(const char *text, const char *reject)
{
    size_t len = 0;

    while (text[len] != '\0' && strchr(reject, text[len]) == NULL) {
        len++;
    }
    return len;
}

char *strncpy(char *restrict to, const char *restrict from, size_t size)
{
    size_t len = strnlen(from, size);

    native_ops->copy(to, from, len);
    native_ops->fill(to + len, 0, size - len);
    return to;
}

char *strstr(const char *text, const char *part)
{
    size_t len = strlen(part);

    for (; strncmp(text, part, len) != 0; text++) {
        if (*text == '\0') {
            return NULL;
        }
    }
    return (char *)(uintptr_t)text;
}

void *memchr(const void *memory, int value, size_t len)
{
    const unsigned char *at = memory;

    for (; len != 0; len--, at++) {
        if (*at == (unsigned char)value) {
            return (void *)(uintptr_t)at;
        }
    }
    return NULL;
}
