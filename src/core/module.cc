// SPDX-License-Identifier: Apache-2.0
#include "core/module.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <link.h>
#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace memspan::inline core {
namespace {

// The library or program that this code is in. The dynamic linker knows a program only by the name
// that it was started with, which the shell found in PATH.
std::string own_path() {
  Dl_info about = {};
  link_map* map = nullptr;
  if (dladdr1(reinterpret_cast<const void*>(&own_path), &about, reinterpret_cast<void**>(&map),
              RTLD_DL_LINKMAP) != 0 &&
      map != nullptr && map->l_name[0] != '\0')
    return map->l_name;
  std::error_code error;
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

std::string own_folder() {
  const std::string path = own_path();
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

// Relative to the folder of the library or of a program: the places where installations have
// libraries.
constexpr const char* kFolders[] = {"",
                                    "memspan/",
                                    "../lib/",
                                    "../lib64/",
#ifdef MEMSPAN_LIBRARY_ARCHITECTURE
                                    "../lib/" MEMSPAN_LIBRARY_ARCHITECTURE "/",
                                    "../lib/" MEMSPAN_LIBRARY_ARCHITECTURE "/memspan/"
#endif
};

}  // namespace

std::string find_module(const char* file) {
  for (const char* where : kFolders) {
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

}  // namespace memspan::inline core
