#include "cli/commands/top.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <string_view>

#include "base/text.h"
#include "cli/output/render.h"
#include "cli/output/view.h"

namespace cgphase {
namespace {

constexpr std::string_view kHome = "\x1b[H", kNoWrap = "\x1b[?7l", kWrap = "\x1b[?7h",
                           kClearLine = "\x1b[K", kClearBelow = "\x1b[J";

std::optional<double> sorted_by(const ContainerReport& container, TopOrder order) {
  switch (order) {
    case TopOrder::memory: return real(container.memory_need_bytes);
    case TopOrder::saved: return real(container.saving.memory_bytes);
    default: return container.cpu_cores;
  }
}

}  // namespace

void sort_containers(ListReply& list, TopOrder order) {
  if (order == TopOrder::name)
    return void(std::ranges::stable_sort(list.containers, {}, [](const ContainerReport& one) {
      return escape_name(one.container.name);
    }));
  std::ranges::stable_sort(list.containers, std::greater<>(),
                           [order](const ContainerReport& one) { return sorted_by(one, order); });
}

std::string render_top(const StatusReport& status, const ListReply& list, const TextStyle& style) {
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
