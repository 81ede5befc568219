/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Read lines of "KEY VALUE", set them with the firmware's own code, and print
 * its errors and the resulting configuration.  test_settings.py compares the
 * output with that of the tools.  With one argument, print the keys that take
 * effect at once; with two, print the content of the configuration block that
 * the second one gives in hexadecimal digits.
 */
#include "firmware/settings/config_check.h"

#include <stdio.h>
#include <string.h>

static void print_mistake(void *ctx, const char *text)
{
    (void)ctx;
    printf("mistake: %s\n", text);
}

static void print_live_keys(const struct config *config)
{
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line shown;

        config_text_get(config, i, &shown);
        if (config_text_is_live(shown.key)) {
            printf("%s\n", shown.key);
        }
    }
}

static void print_values(const struct config *config)
{
    for (unsigned int i = 0; i < config_text_count(); i++) {
        struct config_line shown;

        config_text_get(config, i, &shown);
        printf("%s %s\n", shown.key, shown.value);
    }
}

/* @return the exit status */
static int print_block(const char *digits)
{
    uint8_t block[CONFIG_LEN_MAX];
    struct config config;
    size_t len = 0;
    unsigned int byte;

    while (len < sizeof(block) && sscanf(digits + 2 * len, "%2x", &byte) == 1) {
        block[len++] = (uint8_t)byte;
    }
    if (!config_parse(&config, block, len)) {
        return 1;
    }
    print_values(&config);
    return 0;
}

int main(int argc, char **argv)
{
    uint8_t body[CONFIG_BODY_LEN];
    struct config config;
    struct config_error error;
    char line[256];

    if (argc > 2) {
        return print_block(argv[2]);
    }
    config_default(&config);
    if (argc > 1) {
        print_live_keys(&config);
        return 0;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        char *space = strchr(line, ' ');

        line[strcspn(line, "\n")] = '\0';
        if (space == NULL) {
            return 1;
        }
        *space = '\0';
        if (!config_text_set(&config, line, space + 1, &error)) {
            printf("error: %s\n", error.text);
        }
    }
    config_check(&config, print_mistake, NULL);
    print_values(&config);
    config_body_emit(&config, body);
    for (size_t i = 0; i < sizeof(body); i++) {
        printf("%02x", body[i]);
    }
    printf("\n");
    return 0;
}
