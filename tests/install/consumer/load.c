/* SPDX-License-Identifier: Apache-2.0
 * load LIBRARY: loads it as programs do that choose their library at run time, looks up the names
 * that such programs use, and hosts a store (which loads what TLS needs from beside it). */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static const char* const names[] = {
    "smem_init",
    "smem_uninit",
    "smem_create_config_store",
    "smem_set_extern_logger",
    "smem_set_log_level",
    "smem_set_conf_store_tls",
    "smem_set_config_store_tls_key",
    "smem_get_last_err_msg",
    "smem_get_and_clear_last_err_msg",
};

int main(int argc, char** argv) {
  void* library = argc == 2 ? dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL) : NULL;
  if (library == NULL) return printf("not loaded: %s\n", argc == 2 ? dlerror() : "no name") > 0;
  for (unsigned i = 0; i < sizeof names / sizeof *names; ++i)
    if (dlsym(library, names[i]) == NULL) return printf("%s is missing\n", names[i]) > 0;
  int32_t (*host)(const char*) =
      (int32_t(*)(const char*))dlsym(library, "smem_create_config_store");
  const char* (*why)(void) = (const char* (*)(void))dlsym(library, "smem_get_last_err_msg");
  char url[64];
  for (int port = 21000; port < 22000; ++port) {
    snprintf(url, sizeof url, "tcp://127.0.0.1:%d", port);
    if (host(url) == 0) return 0;
  }
  return printf("no store: %s\n", why()) > 0;
}
