// SPDX-License-Identifier: Apache-2.0
// Records as bytes (core/bytes.h), for the store's messages and for what the recipes write into it.
// A record lists its fields once, for both directions:
//
//   static void fields(auto& codec, auto& self) { codec(self.rank, self.name, self.parts); }
//
// A number has the bytes of its type, an enumerator and a truth value one byte, a text and a list
// begin with a u32 length. A record is its fields, a status its code and its message.
#pragma once

#include <fmt/format.h>

#include <concepts>
#include <type_traits>

#include "core/bytes.h"
#include "core/status.h"

namespace memspan::inline store {

// The last enumerator: a larger byte is malformed. An enumeration that is a field has its own one.
constexpr Code last_of(Code) {
  return Code::kInternal;
}

template <typename T>
concept StoreByte = std::is_enum_v<T> || std::same_as<T, bool>;

class FieldWriter {
 public:
  template <typename... Fields>
  void operator()(const Fields&... fields) {
    (write(fields), ...);
  }
  // A list without its length, which ends the record.
  void rest(const auto& list) {
    for (const auto& each : list) write(each);
  }
  std::string take() { return writer_.take(); }

 private:
  template <typename T>
  void write(const T& field) {
    if constexpr (StoreByte<T>)
      writer_.u8(static_cast<std::uint8_t>(field));
    else if constexpr (std::integral<T> && sizeof(T) == sizeof(std::uint32_t))
      writer_.u32(static_cast<std::uint32_t>(field));
    else if constexpr (std::integral<T> && sizeof(T) == sizeof(std::uint64_t))
      writer_.u64(static_cast<std::uint64_t>(field));
    else if constexpr (std::convertible_to<const T&, std::string_view>)
      writer_.text(field);
    else if constexpr (std::same_as<T, Status>)
      (*this)(field.code(), field.message());
    else if constexpr (requires { field.first; })
      (*this)(field.first, field.second);
    else if constexpr (requires { T::fields(*this, field); })
      T::fields(*this, field);
    else {
      write(static_cast<std::uint32_t>(field.size()));
      rest(field);
    }
  }
  ByteWriter writer_;
};

// After a malformed field, is_ok() is false for good.
class FieldReader {
 public:
  explicit FieldReader(std::string_view bytes) : reader_(bytes) {}

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (read(fields), ...);
  }
  void rest(auto& list) {
    while (is_ok() && !reader_.is_finished()) append(list);
  }
  bool is_ok() const { return is_ok_ && reader_.is_ok(); }
  // Everything was read, and nothing was malformed.
  bool is_finished() const { return is_ok_ && reader_.is_finished(); }

 private:
  template <typename T>
  void read(T& field) {
    if constexpr (StoreByte<T>) {
      const std::uint8_t byte = reader_.u8();
      field = static_cast<T>(byte);
      if constexpr (std::is_enum_v<T>)
        is_ok_ = is_ok_ && byte <= static_cast<std::uint8_t>(last_of(field));
      else
        is_ok_ = is_ok_ && byte <= 1;
    } else if constexpr (std::integral<T> && sizeof(T) >= sizeof(std::uint32_t)) {
      field = static_cast<T>(sizeof(T) == sizeof(std::uint32_t) ? reader_.u32() : reader_.u64());
    } else if constexpr (std::is_assignable_v<T&, std::string>) {
      field = std::string(reader_.text());
    } else if constexpr (std::same_as<T, Status>) {
      Code code = Code::kOk;
      std::string message;
      (*this)(code, message);
      if (code != Code::kOk) field = Status(code, std::move(message));
    } else if constexpr (requires { field.first; }) {
      (*this)(field.first, field.second);
    } else if constexpr (requires { T::fields(*this, field); }) {
      T::fields(*this, field);
    } else {
      std::uint32_t count = 0;
      read(count);
      for (std::uint32_t i = 0; i < count && is_ok(); ++i) append(field);
    }
  }
  template <typename List>
  void append(List& list) {
    if constexpr (requires { typename List::mapped_type; }) {
      std::pair<typename List::key_type, typename List::mapped_type> each;
      read(each);
      list.insert(std::move(each));
    } else {
      typename List::value_type each{};
      read(each);
      list.insert(list.end(), std::move(each));
    }
  }
  ByteReader reader_;
  bool is_ok_ = true;
};

template <typename Record>
std::string encode_record(const Record& record) {
  FieldWriter writer;
  writer(record);
  return writer.take();
}

// A record that a member has written into the store. `what` names it in the message of kInternal.
template <typename Record>
Result<Record> decode_record(std::string_view bytes, std::string_view what = Record::kWhat) {
  FieldReader reader(bytes);
  Record record;
  reader(record);
  if (reader.is_finished()) return record;
  return Status(Code::kInternal, fmt::format("a malformed {} in the store", what));
}

}  // namespace memspan::inline store
