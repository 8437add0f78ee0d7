// SPDX-License-Identifier: Apache-2.0
// How the result of Device::share_pointer() reaches peers of this host: by the descriptor brokers,
// whose publications hold a few descriptors each.
//
//   NAME      a memfd with the text, descriptors
//   NAME/1    more descriptors, NAME/2 ... until there are as many as the memfd says
#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "core/status.h"
#include "device/memory.h"
#include "node/descriptor_broker.h"

namespace memspan::transfer {

// Published under its names until it ends. Move-only value; the broker outlives it.
class PublishedPointer {
 public:
  // All or nothing.
  static Result<PublishedPointer> publish(DescriptorBroker& broker, std::string name,
                                          SharedPointer shared);
  PublishedPointer(PublishedPointer&& other) noexcept;
  PublishedPointer& operator=(PublishedPointer&&) = delete;
  ~PublishedPointer();

 private:
  PublishedPointer(DescriptorBroker& broker, std::string name)
      : broker_(broker), name_(std::move(name)) {}
  DescriptorBroker& broker_;
  std::string name_;
  std::size_t parts_ = 0;
};

// Fetches what the owner published under the name; `fetch` asks the owner's broker. Returns its
// failures, and kInternal for anything that publish() does not make.
using FetchPublished = std::function<Result<FetchedDescriptors>(const std::string& name)>;
Result<SharedPointer> fetch_pointer(const std::string& name, const FetchPublished& fetch);

}  // namespace memspan::transfer
