// SPDX-License-Identifier: Apache-2.0
// How a member of a pool begins: with the rank that the harness gave it.
#pragma once

#include <smem/host/smem_bm.h>

#include <cstdint>
#include <cstdlib>

#include "silent/silent.h"

namespace silent {

inline void need_ok(int code) {
  need(code == SMEM_OK, smem_get_last_err_msg);
}

inline void begin_pools(int rank, int size) {
  smem_bm_config_t config;
  smem_bm_config_init(&config);
  config.startConfigStoreServer = false;
  config.initTimeout = config.createTimeout = start_limit();
  config.controlOperationTimeout = kTimeout;
  config.autoRanking = false;
  config.rankId = static_cast<std::uint16_t>(rank);
  need_ok(smem_bm_init(std::getenv("SILENT_STORE"), static_cast<std::uint32_t>(size), 0, &config));
}

}  // namespace silent
