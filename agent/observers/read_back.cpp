#include "agent/observers/read_back.h"

#include "cgroupfs/knob_file.h"

namespace cgphase {

std::string read_back_text(const Limits& before, const Limits& in_force) {
  std::string text;
  for (const Knob knob : kKnobs) {
    const Result<KnobText> old_value = format_knob(knob, before);
    const Result<KnobText> new_value = format_knob(knob, in_force);
    if (!new_value || (old_value && old_value->view() == new_value->view())) continue;
    text += (text.empty() ? "" : ", ") + std::string(file_name(knob)) + " reads " +
            std::string(new_value->view());
  }
  return text.empty() ? "all files read as before" : text;
}

}  // namespace cgphase
