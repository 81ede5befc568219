/* SPDX-License-Identifier: BSD-2-Clause */
/* All tests, in the order they are run: chapters.c is the list. */
#ifndef ESSD_CONFORM_CHAPTERS_H
#define ESSD_CONFORM_CHAPTERS_H

#include "conform.h"

extern const struct conf_tests *const conf_chapters[];
extern const unsigned int num_conf_chapters;

#endif
