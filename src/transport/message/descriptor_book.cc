// SPDX-License-Identifier: Apache-2.0
#include "transport/message/descriptor_book.h"

#include <fcntl.h>
#include <unistd.h>

namespace memspan {

DescriptorBook::Page::Page() {
  for (auto& number : numbers) number.store(-1, std::memory_order_relaxed);
}

void DescriptorBook::add(int descriptor) {
  for (Page* page = &first_;; page = page->next.load()) {
    for (auto& number : page->numbers)
      if (int none = -1; number.compare_exchange_strong(none, descriptor)) return;
    if (page->next.load() != nullptr) continue;
    auto* fresh = new Page;
    if (Page* none = nullptr; !page->next.compare_exchange_strong(none, fresh)) delete fresh;
  }
}

void DescriptorBook::remove(int descriptor) {
  for (Page* page = &first_; page != nullptr; page = page->next.load())
    for (auto& number : page->numbers)
      if (int expected = descriptor; number.compare_exchange_strong(expected, -1)) return;
}

void DescriptorBook::give_up_in_child() {
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (Page* page = &first_; page != nullptr; page = page->next.load())
    for (auto& number : page->numbers)
      if (const int descriptor = number.load(); descriptor >= 0 && null >= 0)
        ::dup3(null, descriptor, O_CLOEXEC);
  if (null >= 0) ::close(null);
}

}  // namespace memspan
