// One reply in the form that -o asks for.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "cli/output/style.h"
#include "protocol/metrics.h"

namespace cgphase {

struct CsvColumn {
  const char* title;
  const char* path;  // JSON pointer within a row
};

// How one kind of reply can be shown.
struct Form {
  std::string (*text)(const nlohmann::json& body, const TextStyle& style) = nullptr;
  const char* rows = "";                  // pointer to the array of rows; "": the reply is the row
  std::span<const CsvColumn> columns{};   // none: no CSV
  std::span<const Metric> metrics{};      // of a row; none: no OpenMetrics
};

// Errors: invalid where the form has no such output, naming those that it has.
Result<std::string> present(const Form& form, const nlohmann::json& body, Output output,
                            const TextStyle& style);

// The forms of the daemon's replies and of doctor's.
extern const Form kStatusForm, kListForm, kShowForm, kExplainForm, kHistoryForm, kEventsForm,
    kActionForm, kDoctorForm;

}  // namespace cgphase
