/* SPDX-License-Identifier: Apache-2.0
 *
 * Transfers between named endpoints: types. C99 or C++11. Names, values and layouts are
 * MemFabric's.
 */
#ifndef MEMSPAN_SMEM_TRANS_DEF_H
#define MEMSPAN_SMEM_TRANS_DEF_H

#include <stdbool.h>
#include <stdint.h>

#include "smem_bm_def.h"

#ifdef __cplusplus
extern "C" {
#endif

/* An endpoint of this process; NULL is invalid. */
typedef void* smem_trans_t;

/* Endpoints see those of the other role; BOTH sees and is seen by all. */
typedef enum {
  SMEM_TRANS_NONE = 0,
  SMEM_TRANS_SENDER = 1,
  SMEM_TRANS_RECEIVER = 2,
  SMEM_TRANS_BOTH = 3,
  SMEM_TRANS_BUTT
} smem_trans_role_t;

typedef struct {
  smem_trans_role_t role;
  uint32_t initTimeout; /* seconds, 1 and more */
  uint32_t deviceId;
  uint32_t flags;
  smem_bm_data_op_type dataOpType; /* 0: whatever fits */
  bool startConfigServer;          /* this process may host the store */
} smem_trans_config_t;

#ifdef __cplusplus
}
#endif

#endif /* MEMSPAN_SMEM_TRANS_DEF_H */
