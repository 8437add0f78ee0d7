// SPDX-License-Identifier: Apache-2.0
#include "fabric/services.h"

#include <fmt/format.h>

#include <utility>

namespace memspan {

void Services::add(const std::string& name, Service service) {
  auto entry = std::make_shared<Entry>();
  {
    MutexLock lock(entry->mutex);
    entry->service = std::move(service);
  }
  MutexLock lock(mutex_);
  by_name_[name] = std::move(entry);
}

void Services::remove(const std::string& name) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mutex_);
    const auto found = by_name_.find(name);
    if (found == by_name_.end()) return;
    entry = std::move(found->second);
    by_name_.erase(found);
  }
  MutexLock lock(entry->mutex);
  entry->service = nullptr;
}

Result<std::string> Services::answer(const std::string& name, std::string_view request) {
  std::shared_ptr<Entry> entry;
  {
    MutexLock lock(mutex_);
    if (const auto found = by_name_.find(name); found != by_name_.end()) entry = found->second;
  }
  const auto unknown = [&] {
    return Status(Code::kNotFound, fmt::format("this process has no \"{}\" (any more)", name));
  };
  if (entry == nullptr) return unknown();
  MutexLock lock(entry->mutex);
  return entry->service ? entry->service(request) : unknown();
}

}  // namespace memspan
