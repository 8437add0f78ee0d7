/* SPDX-License-Identifier: Apache-2.0 */
#include "fabric/smem_test.h"

#include <string.h>

int is_failure(int32_t got, int32_t wanted, const char* words) {
  if (got == wanted && smem_get_last_err_code() == wanted &&
      strstr(smem_get_last_err_msg(), words) != NULL)
    return 1;
  fprintf(stderr, "code %d (kept %d), wanted %d and \"%s\"\n", got, smem_get_last_err_code(),
          wanted, words);
  return 0;
}

static void host_store(void) {
  CHECK(smem_create_config_store(page->url) == SMEM_OK);
  helper_is_ready();
}

int main(int argc, char** argv) {
  smem_set_log_level(4);
  return run_scenario(argc, argv, host_store);
}
