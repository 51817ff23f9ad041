#include "cli/commands/top.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <nlohmann/json.hpp>
#include <string_view>
#include <vector>

#include "cli/output/render.h"
#include "cli/output/view.h"

namespace cgphase {
namespace {

using nlohmann::json;

constexpr std::string_view kHome = "\x1b[H", kNoWrap = "\x1b[?7l", kWrap = "\x1b[?7h",
                           kClearLine = "\x1b[K", kClearBelow = "\x1b[J";

double number_or_least(const json& container, const char* path) {
  return view_number(container, path).value_or(-HUGE_VAL);
}

const char* sorted_by(TopOrder order) {
  switch (order) {
    case TopOrder::memory: return "/usage/memory_need_bytes";
    case TopOrder::saved: return "/saving/memory_bytes";
    default: return "/usage/cpu_cores";
  }
}

}  // namespace

void sort_containers(json& list, TopOrder order) {
  const auto found = list.find("containers");
  if (found == list.end() || !found->is_array()) return;
  auto& containers = found->get_ref<json::array_t&>();
  if (order == TopOrder::name) {
    std::ranges::stable_sort(containers, {},
                             [](const json& one) { return view_text(one, "/name"); });
    return;
  }
  const char* const path = sorted_by(order);
  std::ranges::stable_sort(containers, std::greater<>(),
                           [path](const json& one) { return number_or_least(one, path); });
}

std::string render_top(const json& status, const json& list, const TextStyle& style) {
  return render_summary(status, style) + '\n' + render_list(list, style);
}

std::string top_frame(const std::string& text, std::size_t rows) {
  std::string frame = std::string(kHome) + std::string(kNoWrap);
  std::string_view rest = text;
  std::size_t row = 0;
  for (; !rest.empty() && (rows == 0 || row < rows); ++row) {
    if (row > 0) frame += '\n';
    const std::size_t end = rest.find('\n');
    // Clear before the text: after a line that fills its row the cursor is still on the last
    // column.
    frame.append(kClearLine).append(rest.substr(0, end));
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  }
  if (rows == 0 || row < rows) frame.append(row > 0 ? "\n" : "").append(kClearBelow);
  return frame.append(kWrap);
}

}  // namespace cgphase
