/* SPDX-License-Identifier: Apache-2.0
 * FIND for C programs that load the library by name: a variable of the type that has the function
 * of the name, which is not what a header may define it to be. `library` is what dlopen() gave. */
#ifndef MEMSPAN_TESTS_CAPI_LOADED_H
#define MEMSPAN_TESTS_CAPI_LOADED_H

#include <dlfcn.h>

#include "support/check.h"

static void* library;

static void* find(const char* name) {
  void* symbol = dlsym(library, name);
  if (symbol == NULL) fprintf(stderr, "%s\n", dlerror());
  CHECK(symbol != NULL);
  return symbol;
}
#define FIND(type, name) type name = (type)find(#name)

#endif
