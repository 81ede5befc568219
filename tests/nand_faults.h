/* SPDX-License-Identifier: BSD-2-Clause */
/* Faults of the NAND array that tests inject with nand_array_inject(). */
#ifndef ESSD_TEST_NAND_FAULTS_H
#define ESSD_TEST_NAND_FAULTS_H

#include "hw-model/nand/nand_array.h"

/* A fault of each operation of a kind, at any place. */
static inline struct nand_injection fault_anywhere(enum nand_op_kind kind,
                                                   enum nand_effect effect)
{
    return (struct nand_injection){
        .kind = (uint8_t)kind,
        .effect = (uint8_t)effect,
        .channel = NAND_ANYWHERE,
        .die = NAND_ANYWHERE,
        .plane = NAND_ANYWHERE,
        .block = NAND_ANYWHERE,
        .wordline = NAND_ANYWHERE,
        .page = NAND_ANYWHERE,
        .unit = NAND_ANYWHERE,
        .trigger = {.chance = FAULT_CHANCE_ALWAYS},
    };
}

#endif
