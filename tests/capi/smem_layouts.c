/* SPDX-License-Identifier: Apache-2.0
 * What programs that were compiled with MemFabric's own headers rely on: sizes, places, values. */
#include <hybm/hybm_def.h>
#include <smem/host/smem_bm_def.h>
#include <smem/host/smem_shm_def.h>
#include <smem/host/smem_trans_def.h>

#define HOLDS(condition) _Static_assert(condition, #condition)
#define STANDS_AT(type, field, place) HOLDS(offsetof(type, field) == (place))

HOLDS(sizeof(smem_tls_config) == 1 + 7 * 256);
STANDS_AT(smem_tls_config, keyPassPath, 1 + 4 * 256);

STANDS_AT(smem_bm_config_t, controlOperationTimeout, 8);
STANDS_AT(smem_bm_config_t, startConfigStoreServer, 12);
STANDS_AT(smem_bm_config_t, autoRanking, 16);
STANDS_AT(smem_bm_config_t, rankId, 18);
STANDS_AT(smem_bm_config_t, flags, 20);
STANDS_AT(smem_bm_config_t, hcomUrl, 24);
STANDS_AT(smem_bm_config_t, hcomTlsConfig, 88);
STANDS_AT(smem_bm_config_t, storeTlsConfig, 88 + 1793);
HOLDS(sizeof(smem_bm_config_t) == 3676);

STANDS_AT(smem_bm_create_option_t, localDRAMSize, 16);
STANDS_AT(smem_bm_create_option_t, dataOpType, 32);
STANDS_AT(smem_bm_create_option_t, tag, 40);
STANDS_AT(smem_bm_create_option_t, tagOpInfo, 72);
STANDS_AT(smem_bm_create_option_t, dramShmFd, 328);
HOLDS(sizeof(smem_bm_create_option_t) == 336);

HOLDS(sizeof(smem_copy_params) == 24);
STANDS_AT(smem_batch_copy_params, batchSize, 24);
HOLDS(sizeof(smem_bm_data_op_type) == 4 && SMEMB_DATA_OP_BUTT == 17);
HOLDS(sizeof(smem_bm_copy_type) == 4 && SMEMB_COPY_BUTT == 10);
HOLDS(SMEM_MEM_TYPE_BUTT == 4);

STANDS_AT(hybm_options, maxHBMSize, 24);
STANDS_AT(hybm_options, transUrl, 72);
STANDS_AT(hybm_options, dramShmFd, 2220);
STANDS_AT(hybm_exchange_info, descLen, 512);
HOLDS(HYBM_DOP_TYPE_HOST_URMA == 32 && HYBM_SCENE_SHM == 4 && HYBM_MEM_TYPE_HOST == 2);
HOLDS(HYBM_DATA_COPY_DIRECTION_AUTO == 12 &&
      HYBM_FLAG_CREATE_WITH_SHM == SMEM_BM_FLAG_CREATE_WITH_SHM);

STANDS_AT(smem_shm_config_t, startConfigStoreServer, 12);
STANDS_AT(smem_shm_config_t, flags, 16);
HOLDS(sizeof(smem_shm_config_t) == 20);
HOLDS(SMEMS_DATA_OP_RDMA == 4 && SMEM_SHM_ATOMIC_NUM_LIMIT == 1024U);

STANDS_AT(smem_trans_config_t, dataOpType, 16);
STANDS_AT(smem_trans_config_t, startConfigServer, 20);
HOLDS(sizeof(smem_trans_config_t) == 24);
HOLDS(SMEM_TRANS_BOTH == 3 && SMEM_TRANS_BUTT == 4);
