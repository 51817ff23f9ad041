#include "cli/output/print.h"

#include <unistd.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/fd.h"
#include "cli/offline.h"

namespace cgphase {

int complain(Exit exit, std::string_view text) {
  say(text);
  return static_cast<int>(exit);
}

int complain(const Complaint& complaint) {
  return cgphase::complain(complaint.exit, complaint.text);
}

std::unexpected<Complaint> complaint(Exit exit, std::string text) {
  return std::unexpected(Complaint{exit, std::move(text)});
}

std::unexpected<Complaint> complaint(const Error& error) {
  return complaint(static_cast<Exit>(exit_code_of(error)), error.text);
}

int print(const Form& form, const nlohmann::json& body, const CommonOptions& options) {
  const TextStyle style = text_style(options, terminal_environment());
  const Result<std::string> text = present(form, body, options.output, style);
  if (!text)
    return complain(text.error().kind == ErrorKind::unsupported ? Exit::usage : Exit::failure,
                    text.error().text);
  const OrComplaint<void> written = put(*text);
  return written ? 0 : complain(written.error());
}

OrComplaint<void> put(std::string_view text) {
  if (std::fflush(stdout) == 0 && write_all(STDOUT_FILENO, text)) return {};
  return complaint(Exit::failure, "cannot write standard output");
}

}  // namespace cgphase
