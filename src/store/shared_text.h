// SPDX-License-Identifier: Apache-2.0
// Immutable text that many answers share: the store and all queues together hold a value once, even
// if 300 watches receive it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

namespace memspan {

// A value; a copy costs a reference. Different copies may be used in different threads.
class SharedText {
 public:
  SharedText() = default;
  // Implicit, so that a text can be passed as a shared one.
  SharedText(std::string text)  // NOLINT(google-explicit-constructor)
      : text_(text.empty() ? nullptr : std::make_shared<std::string>(std::move(text))) {}
  SharedText(const char* text)  // NOLINT(google-explicit-constructor)
      : SharedText(std::string(text)) {}
  operator const std::string&() const { return text(); }  // NOLINT(google-explicit-constructor)
  operator std::string_view() const { return text(); }    // NOLINT(google-explicit-constructor)

  const std::string& text() const {
    static const auto& kEmpty = *new std::string;
    return text_ == nullptr ? kEmpty : *text_;
  }
  std::size_t size() const { return text_ == nullptr ? 0 : text_->size(); }
  bool empty() const { return size() == 0; }
  // Equal for all copies, different for all other texts; null when empty.
  const void* identity() const { return text_.get(); }
  // No other copy exists, so take() moves.
  bool is_sole() const { return text_ != nullptr && text_.use_count() == 1; }
  // Returns the text and leaves this empty. Copies it if others share it.
  std::string take() {
    if (!is_sole()) return std::string(SharedText(std::move(*this)).text());
    return std::move(*std::exchange(text_, nullptr));
  }

  friend bool operator==(const SharedText& one, const SharedText& other) {
    return one.text_ == other.text_ || one.text() == other.text();
  }

 private:
  std::shared_ptr<std::string> text_;  // shared with all copies; null when empty
};

}  // namespace memspan
