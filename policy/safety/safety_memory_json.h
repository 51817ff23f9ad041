// What the safety rules learned, as JSON in the database of the daemon.
//
// {"schema":1, "images":{IMAGE:{"need_bytes", "time_ns"}}, "quarantines":{NAME:{"cpu":{"seconds",
// "time_ns"}, "memory":{..}}}, "runs":[{"device", "inode", "name", "need_bytes"}]}. Beside time_ns
// there is ages_from_ns if the clock was set back.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "base/result.h"
#include "policy/safety/safety_memory.h"

namespace cgphase {

nlohmann::json safety_memory_to_json(const SafetyMemory& memory);
// Data of an older version lack "quarantines" or "runs". Errors: invalid, with the reason.
Result<SafetyMemory> safety_memory_from_json(const nlohmann::json& json);

}  // namespace cgphase
