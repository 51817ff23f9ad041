#include "agent/logging/log_entry.h"

#include <fmt/format.h>

#include <array>
#include <cstdio>

#include "base/check.h"
#include "base/text.h"

namespace cgphase {
namespace {

constexpr std::string_view kContainer = "CGROUP_PATH CONTAINER_ID CONTAINER_NAME";
constexpr std::string_view kDecision = "CGROUP_PATH CONTAINER_ID CONTAINER_NAME DECISION_ID";
constexpr std::string_view kChange =
    "CGROUP_PATH CONTAINER_ID CONTAINER_NAME DECISION_ID PHASE REASON KNOB OLD NEW";

// The ids are made with systemd-id128 new.
constexpr std::array kKinds = {
    MessageKind{Message::started, "9c4c101a929c46f0b2240656d15eef24", Priority::info, "MODE"},
    MessageKind{Message::stopped, "1a1b4ccf49344cbc91f36bdd4db4ee33", Priority::info, ""},
    MessageKind{Message::start_refused, "a6d3d2a712f24e81831a269062182309", Priority::error,
                "EXIT_CODE"},
    MessageKind{Message::left_behind, "d730b539d6734c15a0ffb02ae4d2b239", Priority::notice, ""},
    MessageKind{Message::reloaded, "669c7509e957470ba6c3bfbf6302b530", Priority::info, "MODE"},
    MessageKind{Message::reload_refused, "6a52b21655e34911a8c043ec20e52c48", Priority::error, ""},
    MessageKind{Message::key_ignored, "e3583c13d3874f049a724b54b01761d0", Priority::warning, ""},
    MessageKind{Message::kill_switch_on, "d9bfb9b3ba1744269cfb709ceab7ad7b", Priority::warning,
                "KILL_SWITCH"},
    MessageKind{Message::kill_switch_off, "ae647b0617314139974b2ceae2721e2c", Priority::notice,
                "KILL_SWITCH"},
    MessageKind{Message::host_stood_down, "ffef18fcc2114b12b81fb8fedffd8afb", Priority::warning,
                "CAUSE"},
    MessageKind{Message::host_resumed, "994a0e593246400c901daf22c4492b62", Priority::notice,
                "MODE"},
    MessageKind{Message::source_lost, "8725065e2faa4d4ebe2b2765b0f26753", Priority::warning,
                "SOURCE CAUSE"},
    MessageKind{Message::source_back, "c4678240698a41b0abc85b4b85ac9f87", Priority::notice,
                "SOURCE"},
    MessageKind{Message::companion_lost, "6db72d5001584aff80942eeecc5c8cae", Priority::error,
                "CAUSE"},
    MessageKind{Message::stored_damaged, "583a11cc4502426cbc9923556a5608d2", Priority::error, ""},
    MessageKind{Message::model_taken, "51bd545c4b7e460f9b8b491d8b4de044", Priority::notice,
                "MODEL ORIGIN"},
    MessageKind{Message::restore_failed, "4e6055bf80a04fe9991bdffde6e056d0", Priority::error,
                "CAUSE"},
    MessageKind{Message::asked, "6c7b94eeccc2406e9d88797482ee8125", Priority::notice,
                "REQUEST REQUEST_UID"},
    MessageKind{Message::limit_lowered, "f5d456bae8a44b6385f7d4723034bc82", Priority::notice,
                kChange},
    MessageKind{Message::limit_raised, "9995f7915735449f9cebcbafbec944db", Priority::notice,
                kChange},
    MessageKind{Message::limit_restored, "0c4ec4ea77d64166adc21436ba49fec7", Priority::notice,
                kChange},
    MessageKind{Message::trial_reverted, "c29f2c74a21a4380b08de88c2adbf76b", Priority::warning,
                kDecision},
    MessageKind{Message::write_failed, "039791b7cdd94592a7a8949b8aa5b0a5", Priority::warning,
                kDecision},
    MessageKind{Message::container_stood_down, "edfe3f158aae46b9bb49123112287903",
                Priority::warning, kContainer},
};

consteval bool in_order() {
  for (std::size_t i = 0; i < kKinds.size(); ++i)
    if (static_cast<std::size_t>(kKinds[i].message) != i) return false;
  return true;
}
static_assert(in_order());

}  // namespace

std::span<const MessageKind> message_kinds() { return kKinds; }

const MessageKind& kind_of(Message message) {
  const auto row = static_cast<std::size_t>(message);
  CHECK_INVARIANT(row < kKinds.size());
  return kKinds[row];
}

void log_line(Priority priority, std::string_view text) {
  const char* level = priority == Priority::error     ? "error"
                      : priority == Priority::warning ? "warning"
                                                      : "info";
  const std::string line = fmt::format("cgphased: {}: {}\n", level, printable(text));
  std::fputs(line.c_str(), stderr);
}

}  // namespace cgphase
