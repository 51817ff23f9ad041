// Records what is logged, for tests.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <vector>

#include "agent/logging/log_entry.h"

namespace cgphase::test {

struct ToldEntries {
  std::function<void(const LogEntry&)> teller() {
    return [this](const LogEntry& entry) { entries.push_back(entry); };
  }

  std::vector<Message> kinds() const {
    std::vector<Message> found;
    for (const LogEntry& entry : entries) found.push_back(entry.message);
    return found;
  }
  const std::string& text(std::size_t index) const { return entries.at(index).text; }
  std::string field(std::size_t index, const std::string& name) const {
    for (const LogField& one : entries.at(index).fields)
      if (one.name == name) return one.value;
    return "(none)";
  }
  // Whether every entry has the fields that the table promises, and no other.
  bool have_their_fields() const {
    for (const LogEntry& entry : entries) {
      std::string names;
      for (const LogField& one : entry.fields)
        names += (names.empty() ? "" : " ") + std::string(one.name);
      CHECK(names == kind_of(entry.message).fields);
      if (names != kind_of(entry.message).fields) return false;
    }
    return !entries.empty();
  }

  std::vector<LogEntry> entries;
};

}  // namespace cgphase::test
