// Formats a reply as -o asks for.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>

#include "base/result.h"
#include "cli/options.h"
#include "cli/output/style.h"

namespace cgphase {

struct CsvColumn {
  const char* title;
  const char* path;  // JSON pointer within a row
};

// The formats of one kind of reply.
struct Form {
  std::function<Result<std::string>(const nlohmann::json& body, const TextStyle& style)> text;
  const char* rows = "";  // JSON pointer to the array of rows; "": the reply is the row
  std::span<const CsvColumn> columns{};   // empty: no CSV
  std::function<Result<std::string>(const nlohmann::json& body)> metrics = {};  // of -o openmetrics
};

// Returns the formatted reply. Errors: unsupported, if the form lacks this output (the text names
// the available ones); invalid, if the reply cannot be read.
Result<std::string> present(const Form& form, const nlohmann::json& body, Output output,
                            const TextStyle& style);

// The forms of the daemon's replies and of the reply of doctor.
extern const Form kStatusForm, kListForm, kShowForm, kExplainForm, kHistoryForm, kEventsForm,
    kActionForm, kDoctorForm;

}  // namespace cgphase
