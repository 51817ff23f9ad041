// Options of every verb. The command line fills them before a verb runs.
#pragma once

#include <cstdint>
#include <string>

namespace cgphase {

enum class Output : std::uint8_t { table, wide, json, jsonl, csv, openmetrics };

struct CommonOptions {
  Output output = Output::table;
  bool legend = true;            // column titles, undo hints
  bool quiet = false;            // print only what -o asks for
  bool utc = false;
  std::string color = "auto";    // auto, always, never
  std::string socket = "/run/cgphase/read.sock";

  // True if the verb prints nothing on success. Formats for programs are always printed.
  bool silent() const { return quiet && (output == Output::table || output == Output::wide); }
  // The directory of read.sock.
  std::string runtime_directory() const;
  std::string admin_socket() const;
};

}  // namespace cgphase
