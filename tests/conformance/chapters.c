/* SPDX-License-Identifier: BSD-2-Clause */
#include "chapters.h"

/* One line a file of tests; keep the chapters together. */
#define CHAPTERS(X)   X(smoke)

#define DECLARE(name) extern const struct conf_tests conf_tests_##name;
CHAPTERS(DECLARE)

#define LIST(name) &conf_tests_##name,
const struct conf_tests *const conf_chapters[] = {CHAPTERS(LIST)};
const unsigned int num_conf_chapters = ARRAY_LEN(conf_chapters);
