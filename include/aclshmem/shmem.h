/* SPDX-License-Identifier: Apache-2.0
 *
 * CANN SHMEM under its names of version 1.5, for host code: a symmetric heap, put and get, signals,
 * waits, teams, barriers, and all of these in the order of a stream. C99 or later, C++11 or later;
 * link with -lshmem.
 *
 * A source that is compiled with MEMSPAN_DEVICE_CODE is device code (C++17): it also has the
 * functions for kernels. If both have a function with the same arguments, the kernels' version is
 * declared; host code may call it.
 *
 * The folder of this file comes first among those where the compiler looks, since <shmem.h> is also
 * OpenSHMEM's (CMake: memspan::aclshmem). A program that uses both includes <aclshmem.h> for this
 * one and <shmem.h> for that.
 */
#ifndef MEMSPAN_ACLSHMEM_SHMEM_H
#define MEMSPAN_ACLSHMEM_SHMEM_H

#include "host/data_plane/shmem_host_cc.h"
#include "host/data_plane/shmem_host_p2p_sync.h"
#include "host/data_plane/shmem_host_rma.h"
#include "host/data_plane/shmem_host_so.h"
#include "host/init/shmem_host_init.h"
#include "host/mem/shmem_host_heap.h"
#include "host/team/shmem_host_team.h"
#include "host/utils/shmem_log.h"
#if !defined MEMSPAN_NO_ACLSHMEM_ALIASES && !defined MEMSPAN_OPENSHMEM_SHMEM_H
#include "host/shmem_host_aliases.h"
#endif
#ifdef MEMSPAN_DEVICE_CODE
#include "device/shmem_device.h"
#ifndef MEMSPAN_NO_ACLSHMEM_ALIASES
#include "device/shmem_device_aliases.h"
#endif
#endif

#endif
