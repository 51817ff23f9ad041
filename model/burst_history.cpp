#include "model/burst_history.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

namespace cgphase {
namespace {

using nlohmann::json;

constexpr int kBurstSchema = 1;
constexpr double kLargestBurstNumber = 1e300;

std::string source_key(std::size_t source) { return std::string(burst_source_name(source)); }
std::string number_key(std::size_t number) { return std::string(burst_number_name(number)); }

std::unexpected<Error> refuse_bursts(const std::string& what) {
  return failure(ErrorKind::invalid, "history of bursts: " + what);
}

const json* member(const json& object, const std::string& key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() ? nullptr : &*found;
}

// A non-negative number within bounds; absent otherwise.
std::optional<double> amount(const json* value) {
  if (value == nullptr || !value->is_number()) return std::nullopt;
  const double number = value->get<double>();
  if (!(number >= 0 && number <= kLargestBurstNumber)) return std::nullopt;
  return number;
}

json run_to_json(const RunBursts& run) {
  json out = json::object();
  for (std::size_t i = 0; i < kBurstSources; ++i)
    for (std::size_t k = 0; k < kBurstNumbers; ++k) {
      const Moments& moments = run[i].numbers[k];
      if (moments.count > 0)
        out[source_key(i)][number_key(k)] = {moments.count, moments.mean, moments.squares};
    }
  return out;
}

Result<RunBursts> run_from_json(const json& from) {
  if (!from.is_object()) return refuse_bursts("a run is not an object");
  RunBursts run;
  for (std::size_t i = 0; i < kBurstSources; ++i) {
    const json* source = member(from, source_key(i));
    if (source == nullptr) continue;
    for (std::size_t k = 0; k < kBurstNumbers; ++k) {
      const json* triple = member(*source, number_key(k));
      if (triple == nullptr) continue;
      if (!triple->is_array() || triple->size() != 3)
        return refuse_bursts("an entry of a run is not [count, mean, squares]");
      const auto count = amount(&(*triple)[0]), mean = amount(&(*triple)[1]);
      const auto squares = amount(&(*triple)[2]);
      if (!count || !mean || !squares) return refuse_bursts("a number of a run is not valid");
      run[i].numbers[k] = {*count, *mean, *squares};
    }
  }
  return run;
}

}  // namespace

void BurstHistory::Number::add(const Moments& run) {
  if (!(run.count > 0)) return;
  if (runs > 0 && run.mean > 0) {
    predicted += 1;
    error_sum += std::abs(mean - run.mean) / run.mean;
  }
  // This is the update of a weighted mean and its sum of squares by Chan, Golub and LeVeque (The
  // American Statistician 37, 1983). Rounding cannot make the sum negative, which from_json() would
  // refuse.
  const double apart = run.mean - mean, before = count;
  runs += 1;
  count += run.count;
  const double share = run.count / count;
  mean += apart * share;
  squares += apart * apart * before * share;
}

void BurstHistory::add(const RunBursts& run) {
  for (std::size_t i = 0; i < kBurstSources; ++i)
    for (std::size_t k = 0; k < kBurstNumbers; ++k) numbers_[i][k].add(run[i].numbers[k]);
  if (!has_segments(run)) return;
  if (runs_.size() == kBurstRunsKept) runs_.erase(runs_.begin());
  runs_.push_back(run);
}

std::optional<BurstPrediction> BurstHistory::predict(std::size_t source, std::size_t number) const {
  const Number& known = numbers_.at(source).at(number);
  if (!(known.runs > 0)) return std::nullopt;
  BurstPrediction out{.value = known.mean, .runs = known.runs, .count = known.count,
                      .deviation = {}, .relative_error = {}, .predicted_runs = known.predicted};
  if (known.runs > 1)
    out.deviation = std::sqrt(known.squares / known.count * known.runs / (known.runs - 1));
  if (known.predicted > 0) out.relative_error = known.error_sum / known.predicted;
  return out;
}

json BurstHistory::to_json() const {
  json numbers = json::object(), runs = json::array();
  for (std::size_t i = 0; i < kBurstSources; ++i)
    for (std::size_t k = 0; k < kBurstNumbers; ++k)
      if (const Number& known = numbers_[i][k]; known.runs > 0)
        numbers[source_key(i)][number_key(k)] = {
            {"runs", known.runs}, {"count", known.count}, {"mean", known.mean},
            {"squares", known.squares}, {"predicted", known.predicted},
            {"error_sum", known.error_sum}};
  for (const RunBursts& run : runs_) runs.push_back(run_to_json(run));
  return {{"schema", kBurstSchema}, {"numbers", std::move(numbers)}, {"runs", std::move(runs)}};
}

Result<BurstHistory> BurstHistory::from_json(const json& from) {
  const json* schema = member(from, "schema");
  if (schema == nullptr || *schema != kBurstSchema) return refuse_bursts("the schema is not 1");
  const json* numbers = member(from, "numbers");
  const json* runs = member(from, "runs");
  if (numbers == nullptr || !numbers->is_object())
    return refuse_bursts("\"numbers\" is not an object");
  if (runs == nullptr || !runs->is_array() || runs->size() > kBurstRunsKept)
    return refuse_bursts("\"runs\" is not a list of at most " + std::to_string(kBurstRunsKept));
  BurstHistory history;
  for (std::size_t i = 0; i < kBurstSources; ++i) {
    const json* source = member(*numbers, source_key(i));
    for (std::size_t k = 0; source != nullptr && k < kBurstNumbers; ++k) {
      const json* number = member(*source, number_key(k));
      if (number == nullptr) continue;
      Number& known = history.numbers_[i][k];
      for (const auto& [key, field] :
           {std::pair{"runs", &known.runs}, std::pair{"count", &known.count},
            std::pair{"mean", &known.mean}, std::pair{"squares", &known.squares},
            std::pair{"predicted", &known.predicted}, std::pair{"error_sum", &known.error_sum}}) {
        const auto value = amount(member(*number, key));
        if (!value)
          return refuse_bursts("\"" + std::string(key) + "\" is not a non-negative number");
        *field = *value;
      }
      if (known.runs > 0 && !(known.count > 0))
        return refuse_bursts("runs are counted but no segments");
    }
  }
  for (const json& one : *runs) {
    Result<RunBursts> run = run_from_json(one);
    if (!run) return std::unexpected(run.error());
    history.runs_.push_back(*run);
  }
  return history;
}

json predictions_to_json(const BurstHistory& history) {
  json out = json::object();
  for (std::size_t i = 0; i < kBurstSources; ++i) {
    json& source = out[source_key(i)];
    for (std::size_t k = 0; k < kBurstNumbers; ++k) {
      const auto prediction = history.predict(i, k);
      if (!prediction) continue;
      json& number = source[number_key(k)];
      number = {{"value", prediction->value}, {"runs", prediction->runs},
                {"segments", prediction->count}, {"deviation", nullptr},
                {"relative_error", nullptr}, {"predicted_runs", prediction->predicted_runs}};
      if (prediction->deviation) number["deviation"] = *prediction->deviation;
      if (prediction->relative_error) number["relative_error"] = *prediction->relative_error;
    }
  }
  return out;
}

}  // namespace cgphase
