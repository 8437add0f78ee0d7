// SPDX-License-Identifier: Apache-2.0
// Reports a second copy of this library in one process, such as the wheel's beside an installed
// one. Each copy would have a job, pools and an address plan of its own.
#include "capi/second_copy.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>

#include <vector>

#include "core/log.h"

namespace memspan::capi {
namespace {

const void* begin_of(const void* symbol) {
  Dl_info info;
  return symbol != nullptr && ::dladdr(symbol, &info) != 0 ? info.dli_fbase : nullptr;
}

// Collects what may be a copy, by its name.
int collect(dl_phdr_info* object, std::size_t /*bytes*/, void* paths) {
  const std::string_view path = object->dlpi_name;
  const std::string_view name = path.substr(path.rfind('/') + 1);
  for (const std::string_view ours :
       {"libmemspan.so", "libshmem.so", "libmf_smem.so", "libmf_hybm_core.so"})
    if (name.starts_with(ours)) static_cast<std::vector<std::string>*>(paths)->emplace_back(path);
  return 0;
}

bool is_other_copy(const std::string& path, const void* own_begin) {
  void* const library = ::dlopen(path.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return false;
  const void* const begin = begin_of(::dlsym(library, "memspan_last_error"));
  ::dlclose(library);
  return begin != nullptr && begin != own_begin;
}

}  // namespace

bool report_second_copy() {
  bool is_second = false;
  std::vector<std::string> paths;
  ::dl_iterate_phdr(collect, &paths);
  Dl_info own{};
  ::dladdr(reinterpret_cast<const void*>(&collect), &own);
  for (const std::string& path : paths)
    if (is_other_copy(path, own.dli_fbase)) {
      is_second = true;
      log_line(LogLevel::kWarn,
               fmt::format("this process loads memspan twice, from {} and {}: the two copies share "
                           "no job, pool or handle. Load only one of them",
                           path, own.dli_fname));
    }
  return is_second;
}

}  // namespace memspan::capi
