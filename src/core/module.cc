// SPDX-License-Identifier: Apache-2.0
#include "core/module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <unistd.h>

namespace memspan {
namespace {

// The folder of the library or program that this code is in.
std::string own_folder() {
  Dl_info about = {};
  if (dladdr(reinterpret_cast<const void*>(&own_folder), &about) == 0 || about.dli_fname == nullptr)
    return ".";
  const std::string path = about.dli_fname;
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

}  // namespace

std::string find_module(const char* file) {
  for (const char* where : {"", "../lib/"}) {
    std::string path = fmt::format("{}/{}{}", own_folder(), where, file);
    if (::access(path.c_str(), R_OK) == 0) return path;
  }
  return {};
}

Result<void*> load_module(const char* file, const char* symbol) {
  const std::string path = find_module(file);
  if (path.empty())
    return Status(Code::kNotSupported, fmt::format("there is no {} in {}", file, own_folder()));
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) return Status(Code::kNotSupported, dlerror());
  void* address = dlsym(module, symbol);
  if (address == nullptr)
    return Status(Code::kNotSupported,
                  fmt::format("\"{}\" is not of this version, " MEMSPAN_VERSION, path));
  return address;
}

}  // namespace memspan
