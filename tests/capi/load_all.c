/* SPDX-License-Identifier: Apache-2.0 */
/* Loads the libraries that it is given, one after the other. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char** paths) {
  for (int i = 1; i < count; ++i) {
    if (dlopen(paths[i], RTLD_NOW | RTLD_LOCAL) == NULL) {
      fprintf(stderr, "%s\n", dlerror());
      return 1;
    }
  }
  return 0;
}
