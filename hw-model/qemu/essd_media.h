/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * essd-media: the media engine of the drive; the core is hw-model/media.
 * See essd_media.c for the QEMU interface.
 */
#ifndef ESSD_HW_QEMU_MEDIA_H
#define ESSD_HW_QEMU_MEDIA_H

#include "qom/object.h"

#define TYPE_ESSD_MEDIA "essd-media"
OBJECT_DECLARE_SIMPLE_TYPE(EssdMediaState, ESSD_MEDIA)

#endif
