#include "tests/workloads/mix.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/parse.h"
#include "base/units.h"
#include "tests/workloads/plan.h"

namespace cgphase::workloads {

namespace {

constexpr double kMinCores = 0.01, kMaxCores = 1024;
constexpr std::size_t kMaxNameBytes = 64;

std::optional<StaticLimits> limits_of(std::string_view kind) {
  if (kind == "train") return StaticLimits{0.8, 160 * kMiB};
  if (kind == "serve") return StaticLimits{0.7, 96 * kMiB};
  if (kind == "batch") return StaticLimits{0.7, 112 * kMiB};
  return std::nullopt;
}

template <class Number>
bool take(std::optional<Number> parsed, Number low, Number high, Number& into) {
  if (!parsed || *parsed < low || *parsed > high) return false;
  into = *parsed;
  return true;
}

// Whether a name may be the name of a directory and a file.
bool plain(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes &&
         std::all_of(name.begin(), name.end(), [](char c) {
           return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
         });
}

bool take_setting(std::string_view key, std::string_view value, MixItem& item, bool& memory_given) {
  if (key == "name") return plain(item.name = value);
  if (key == "seed")
    return take(parse_u64(value), std::uint64_t{0}, ~std::uint64_t{0}, item.run.seed);
  if (key == "size") return take(parse_double(value), kMinSize, kMaxSize, item.run.size);
  if (key == "seconds")
    return take(parse_double(value), kMinSeconds, kMaxSeconds, item.run.seconds);
  if (key == "wait") return take(parse_double(value), 0.0, kMaxSeconds, item.run.wait);
  if (key == "cpu") return take(parse_double(value), kMinCores, kMaxCores, item.limits.cpu_cores);
  if (key != "memory") return false;
  memory_given = true;
  return take(parse_bytes(value), kMiB, std::uint64_t{1} << 50, item.limits.memory_bytes);
}

}  // namespace

Result<MixItem> parse_mix_item(std::string_view text, const RunOptions& defaults) {
  const auto refuse = [text](std::string_view why) {
    return failure(ErrorKind::invalid, fmt::format("mix item \"{}\": {}", text, why));
  };
  const std::size_t colon = std::min(text.find(':'), text.size());
  MixItem item{
      .name = std::string(text.substr(0, colon)), .kind = item.name, .run = defaults, .limits = {}};
  const auto limits = limits_of(item.kind);
  if (!limits) return refuse("no such workload; use train, serve or batch");
  item.limits = *limits;
  bool memory_given = false;
  for (std::string_view rest = text.substr(std::min(colon + 1, text.size())); !rest.empty();) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    const std::string_view setting = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const std::size_t equals = std::min(setting.find('='), setting.size());
    const std::string_view value = setting.substr(std::min(equals + 1, setting.size()));
    if (!take_setting(setting.substr(0, equals), value, item, memory_given))
      return refuse(fmt::format("\"{}\" is unknown or out of range", setting));
  }
  if (!memory_given && item.run.size > 1)
    item.limits.memory_bytes =
        static_cast<std::uint64_t>(static_cast<double>(item.limits.memory_bytes) * item.run.size);
  return item;
}

Result<std::vector<MixItem>> parse_mix(const std::vector<std::string>& texts,
                                       const RunOptions& defaults) {
  if (texts.size() > kMaxMixItems)
    return failure(ErrorKind::invalid, fmt::format("mix: more than {} items", kMaxMixItems));
  std::vector<MixItem> mix;
  for (const std::string& text : texts) {
    auto item = parse_mix_item(text, defaults);
    if (!item) return std::unexpected(item.error());
    for (const MixItem& earlier : mix)
      if (earlier.name == item->name)
        return failure(ErrorKind::invalid, fmt::format("mix: two items named {}", item->name));
    mix.push_back(std::move(*item));
  }
  return mix;
}

}  // namespace cgphase::workloads
