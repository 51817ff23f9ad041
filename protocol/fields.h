// Writes and reads the members of a struct as JSON. A struct has one function visit_fields(field,
// value) in protocol/report_json.cpp. It passes each key, once, and its member; a FieldWriter and a
// FieldReader drive it. Only .cpp files of protocol/ include this.
#pragma once

#include <chrono>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cgroupfs/limits.h"
#include "protocol/report.h"

namespace cgphase {

// True for T and for const T, so that one visit_fields() serves writing and reading.
template <class R, class T>
concept Is = std::same_as<std::remove_const_t<R>, T>;

// How a member looks in JSON if its type does not say it.
template <class Text>
struct Name {  // a name, path or image: foreign bytes, escaped
  Text& text;
};
template <class Text>
struct OptionalName {  // null if empty
  Text& text;
};
template <class Text>
struct OptionalText {  // null if empty
  Text& text;
};
template <class List>
struct NameList {
  List& list;
};
template <class Number>
struct Index {  // null if negative
  Number& value;
};
template <class T> Name(T&) -> Name<T>;
template <class T> OptionalName(T&) -> OptionalName<T>;
template <class T> OptionalText(T&) -> OptionalText<T>;
template <class T> NameList(T&) -> NameList<T>;
template <class T> Index(T&) -> Index<T>;

class FieldWriter {
 public:
  nlohmann::json out = nlohmann::json::object();

  template <class T>
  void operator()(const char* key, const T& value) { out[key] = json_of(value); }
  // A value that a reader computes itself.
  template <class T>
  void derived(const char* key, const T& value) { out[key] = json_of(value); }
  // A member whose key is left out if it is absent.
  template <class T>
  void if_present(const char* key, const std::optional<T>& value) {
    if (value) out[key] = json_of(*value);
  }
  void if_present(const char* key, const std::string& text) {
    if (!text.empty()) out[key] = json_of(text);
  }
  // Members of the same struct below a key of their own.
  template <class Visit>
  void object(const char* key, const Visit& visit) {
    FieldWriter inner;
    visit(inner);
    out[key] = std::move(inner.out);
  }

  template <class T>
  static nlohmann::json json_of(const T& value) {
    if constexpr (std::is_arithmetic_v<T>) {
      return value;
    } else if constexpr (std::is_enum_v<T>) {
      return to_string(value);
    } else {
      FieldWriter inner;
      visit_fields(inner, value);
      return std::move(inner.out);
    }
  }
  static nlohmann::json json_of(const char* text) { return text; }
  static nlohmann::json json_of(const nlohmann::json& value) { return value; }
  static nlohmann::json json_of(const std::string& text) { return printable(text); }
  template <class T>
  static nlohmann::json json_of(const Name<T>& name) { return escape_name(name.text); }
  template <class T>
  static nlohmann::json json_of(const OptionalName<T>& name) {
    return name.text.empty() ? nlohmann::json() : nlohmann::json(escape_name(name.text));
  }
  template <class T>
  static nlohmann::json json_of(const OptionalText<T>& text) {
    return text.text.empty() ? nlohmann::json() : nlohmann::json(printable(text.text));
  }
  template <class T>
  static nlohmann::json json_of(const NameList<T>& names) {
    nlohmann::json array = nlohmann::json::array();
    for (const std::string& name : names.list) array.push_back(escape_name(name));
    return array;
  }
  template <class T>
  static nlohmann::json json_of(const Index<T>& index) {
    return index.value >= 0 ? nlohmann::json(index.value) : nlohmann::json();
  }
  static nlohmann::json json_of(WallTime time) { return seconds_since_epoch(time); }
  static nlohmann::json json_of(Bytes bytes) { return bytes.value; }
  static nlohmann::json json_of(Cores cores) { return cores.value; }
  static nlohmann::json json_of(Microseconds time) { return time.value; }
  static nlohmann::json json_of(std::chrono::seconds time) { return time.count(); }
  static nlohmann::json json_of(const MemoryLimit& limit) { return json_of(limit.bytes); }
  template <class T>
  static nlohmann::json json_of(const std::optional<T>& value) {
    return value ? json_of(*value) : nlohmann::json();
  }
  template <class T>
  static nlohmann::json json_of(const std::vector<T>& list) {
    nlohmann::json array = nlohmann::json::array();
    for (const T& one : list) array.push_back(json_of(one));
    return array;
  }
  template <class T, std::size_t n>
  static nlohmann::json json_of(const std::array<T, n>& list) { return list; }
};

// Reads what a FieldWriter wrote. A key that is missing or null, or an unknown word of an enum,
// leaves the member as it is. In an optional, an unknown word is absent.
class FieldReader {
 public:
  explicit FieldReader(const nlohmann::json& from) : from_(from) {}

  // The first key with a value of the wrong type; empty if there is none.
  const std::string& fault() const { return fault_; }

  template <class T>
  void operator()(const char* key, T&& value) {
    const auto found = from_.find(key);
    if (found == from_.end() || found->is_null()) return;
    if (!take(*found, value) && fault_.empty()) fault_ = key;
  }
  template <class T>
  void derived(const char*, const T&) {}
  template <class T>
  void if_present(const char* key, std::optional<T>& value) {
    if (from_.contains(key)) (*this)(key, value.emplace());
  }
  void if_present(const char* key, std::string& text) { (*this)(key, text); }
  template <class Visit>
  void object(const char* key, const Visit& visit) {
    const auto found = from_.find(key);
    if (found == from_.end() || found->is_null()) return;
    FieldReader inner(*found);
    if (found->is_object()) visit(inner);
    else inner.fault_ = key;
    if (fault_.empty()) fault_ = inner.fault_;
  }

 private:
  using json = nlohmann::json;

  template <class T>
  static bool take(const json& from, T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (!from.is_boolean()) return false;
      value = from.get<bool>();
      return true;
    } else if constexpr (std::is_floating_point_v<T>) {
      if (!from.is_number()) return false;
      value = from.get<T>();
      return std::isfinite(value);
    } else if constexpr (std::is_integral_v<T>) {
      return take_integer(from, value);
    } else if constexpr (std::is_enum_v<T>) {
      if (!from.is_string()) return false;
      value = word_of<T>(from).value_or(value);
      return true;
    } else {
      if (!from.is_object()) return false;
      FieldReader inner(from);
      visit_fields(inner, value);
      return inner.fault_.empty();
    }
  }
  template <class T>
  static bool take_integer(const json& from, T& value) {
    if (!from.is_number_integer()) return false;
    const bool fits = from.is_number_unsigned() ? std::in_range<T>(from.get<std::uint64_t>())
                                                : std::in_range<T>(from.get<std::int64_t>());
    if (fits) value = from.get<T>();
    return fits;
  }
  // A newer daemon may have more words: nothing for one of them. to_string() of the number after
  // the last enumerator is empty.
  template <class T>
  static std::optional<T> word_of(const json& from) {
    const auto& word = from.get_ref<const std::string&>();
    for (int number = 0; *to_string(static_cast<T>(number)) != '\0'; ++number)
      if (word == to_string(static_cast<T>(number))) return static_cast<T>(number);
    return std::nullopt;
  }
  static bool take(const json& from, json& value) {
    value = from;
    return true;
  }
  static bool take(const json& from, std::string& text) {
    if (!from.is_string()) return false;
    text = printable(from.get_ref<const std::string&>());
    return true;
  }
  template <class T>
  static bool take(const json& from, Name<T>& name) {
    if (!from.is_string()) return false;
    name.text = unescape_name(from.get_ref<const std::string&>());
    return true;
  }
  template <class T>
  static bool take(const json& from, OptionalName<T>& name) {
    Name<T> plain{name.text};
    return take(from, plain);
  }
  template <class T>
  static bool take(const json& from, OptionalText<T>& text) { return take(from, text.text); }
  template <class T>
  static bool take(const json& from, NameList<T>& names) {
    if (!from.is_array()) return false;
    for (const json& one : from) {
      Name<std::string> name{names.list.emplace_back()};
      if (!take(one, name)) return false;
    }
    return true;
  }
  template <class T>
  static bool take(const json& from, Index<T>& index) { return take(from, index.value); }
  static bool take(const json& from, WallTime& time) {
    double seconds = 0;
    if (!take(from, seconds) || !(seconds >= 0 && seconds <= 9e9)) return false;
    time = WallTime(std::chrono::milliseconds(std::llround(seconds * 1000)));  // as it was written
    return true;
  }
  static bool take(const json& from, Bytes& bytes) { return take(from, bytes.value); }
  static bool take(const json& from, Cores& cores) { return take(from, cores.value); }
  static bool take(const json& from, Microseconds& time) { return take(from, time.value); }
  static bool take(const json& from, std::chrono::seconds& time) {
    std::int64_t count = 0;
    if (!take_integer(from, count)) return false;
    time = std::chrono::seconds(count);
    return true;
  }
  static bool take(const json& from, MemoryLimit& limit) { return take(from, limit.bytes); }
  template <class T>
  static bool take(const json& from, std::optional<T>& value) {
    if constexpr (std::is_enum_v<T>) {
      value = from.is_string() ? word_of<T>(from) : std::nullopt;
      return from.is_string();
    } else {
      return take(from, value.emplace());
    }
  }
  template <class T>
  static bool take(const json& from, std::vector<T>& list) {
    if (!from.is_array()) return false;
    for (const json& one : from)
      if (!take(one, list.emplace_back())) return false;
    return true;
  }
  template <class T, std::size_t n>
  static bool take(const json& from, std::array<T, n>& list) {
    if (!from.is_array() || from.size() != n) return false;
    for (std::size_t i = 0; i < n; ++i)
      if (!take(from[i], list[i])) return false;
    return true;
  }

  const json& from_;
  std::string fault_;
};

}  // namespace cgphase
