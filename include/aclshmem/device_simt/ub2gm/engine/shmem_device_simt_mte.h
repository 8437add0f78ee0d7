// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, SIMT code: local memory is ordinary memory, so these are the forms of gm2gm.
#include "../../gm2gm/engine/shmem_device_simt_mte.h"
