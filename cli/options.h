// What every verb takes. Filled by the command line before a verb runs.
#pragma once

#include <cstdint>
#include <string>

namespace cgphase {

enum class Output : std::uint8_t { table, wide, json, jsonl, csv, openmetrics };

struct CommonOptions {
  Output output = Output::table;
  bool legend = true;            // column titles, undo hints
  bool quiet = false;            // nothing on standard output but what was asked for by -o
  bool utc = false;
  std::string color = "auto";    // auto, always, never
  std::string socket = "/run/cgphase/read.sock";

  // As text that says nothing on success. Other forms are read by programs.
  bool silent() const { return quiet && (output == Output::table || output == Output::wide); }
  // Next to read.sock.
  std::string runtime_directory() const;
  std::string admin_socket() const;
};

}  // namespace cgphase
