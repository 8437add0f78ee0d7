// SPDX-License-Identifier: Apache-2.0
// CANN SHMEM, device code: everything. <shmem.h> includes it where MEMSPAN_DEVICE_CODE says that a
// source is for the device: names that the host has with other arguments are the device's there.
#ifndef MEMSPAN_ACLSHMEM_DEVICE_H
#define MEMSPAN_ACLSHMEM_DEVICE_H

#ifdef MEMSPAN_OPENSHMEM_SHMEM_H
#error "device code of CANN SHMEM and OpenSHMEM's <shmem.h> in one source"
#endif

#include "gm2gm/engine/shmem_device_mte.h"
#include "gm2gm/engine/shmem_device_rdma.h"
#include "gm2gm/engine/shmem_device_sdma.h"
#include "gm2gm/engine/shmem_device_udma.h"
#include "gm2gm/shmem_device_amo.h"
#include "gm2gm/shmem_device_cc.h"
#include "gm2gm/shmem_device_mo.h"
#include "gm2gm/shmem_device_p2p_sync.h"
#include "gm2gm/shmem_device_rma.h"
#include "gm2gm/shmem_device_so.h"
#include "team/shmem_device_team.h"
#include "ub2gm/engine/shmem_device_mte.h"
#include "ub2gm/shmem_device_rma.h"
#ifdef USE_SIMT
#include "../device_simt/gm2gm/shmem_device_simt_rma.h"
#include "../device_simt/team/shmem_device_simt_team.h"
#endif

#endif
