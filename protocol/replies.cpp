#include "protocol/replies.h"

#include <fmt/format.h>

#include <utility>

#include "protocol/fields.h"
#include "protocol/protocol.h"
#include "protocol/read_reply.h"

namespace cgphase {

using nlohmann::json;

void visit_fields(auto& field, Is<HostCapacity> auto& host) {
  field("cpu_cores", host.cpu_cores);
  field("memory_bytes", host.memory);
}

void visit_fields(auto& field, Is<ConfigEntry> auto& row) {
  field("key", row.key);
  field("value", row.value);
  field("origin", row.origin);
}

void visit_fields(auto& field, Is<ConfigReply> auto& reply) {
  field("config", reply.config);
  field("modes", reply.modes);
}

void visit_fields(auto& field, Is<ConfigDifference> auto& row) {
  field("key", row.key);
  field("value", row.value);
  field("origin", row.origin);
  field("default", row.shipped);
}

void visit_fields(auto& field, Is<ConfigDifferences> auto& differences) {
  field("config", differences.config);
}

void visit_fields(auto& field, Is<LearnedReply> auto& reply) {
  field("name", Name{reply.name});
  field("policy", reply.policy);
  field("host", reply.host);
  field("learned", reply.learned);
}

void visit_fields(auto& field, Is<Amount> auto& amount) {
  field("cpu_cores", amount.cpu_cores);
  field("memory_bytes", amount.memory_bytes);
}

void visit_fields(auto& field, Is<FitReply::Demand> auto& demand) {
  field("peak", demand.peak);
  field("at_most", demand.at_most);
  field("basis", demand.basis);
}

void visit_fields(auto& field, Is<FitReply::Container> auto& container) {
  field("name", Name{container.name});
  field("cpu_cores", container.cpu_cores);
  field("memory_bytes", container.memory_bytes);
}

void visit_fields(auto& field, Is<FitReply::Change> auto& change) {
  field("name", Name{change.name});
  field("probability", change.probability);
  field("in_seconds", change.in_seconds);
}

void visit_fields(auto& field, Is<FitReply> auto& reply) {
  field("fits", reply.fits);
  field("sentence", reply.sentence);
  field("risk", reply.risk);
  field("seconds", reply.seconds);
  field("asked", reply.asked);
  field("free", reply.free);
  field("host", reply.host);
  field("reserve", reply.reserve);
  field("outside", reply.outside);
  field("containers_need", reply.containers_need);
  field("fits_for_seconds", reply.fits_for_seconds);
  field("next_change", reply.next_change);
  field("containers", reply.containers);
}

namespace {

std::string amount(double cores, double bytes) {
  return fmt::format("{:.2f} cores and {}", cores, human_bytes(bytes));
}

std::string lasting(std::chrono::seconds duration) {
  return human_duration(static_cast<double>(duration.count()));
}

std::string sentence(const FitAnswer& answer) {
  const FitQuestion& question = answer.question;
  std::string text = fmt::format(
      "{}: {} are free for {} at a risk of {:.3g} %; {} are requested", answer.fits ? "yes" : "no",
      amount(answer.free_cpu_cores, answer.free_memory_bytes), lasting(question.duration),
      question.risk * 100, amount(question.cpu_cores, question.memory_bytes));
  if (answer.fits) return text;
  if (answer.fits_for) return text + "; it would fit for " + lasting(*answer.fits_for);
  if (answer.change)
    text += fmt::format("; try again in {}: {} is then expected to change its phase "
                        "({:.0f} %) and leave room",
                        lasting(answer.change->in), escape_name(answer.change->name),
                        answer.change->probability * 100);
  return text;
}

FitReply::Demand demand(const Peak& peak, PeakBasis basis) {
  if (peak.empty()) return {.basis = basis};
  return {peak.front().value, peak.back().value, basis};
}

}  // namespace

FitReply fit_reply(const FitAnswer& answer) {
  const HostCapacity& host = answer.host.capacity;
  FitReply reply{
      .fits = answer.fits,
      .sentence = sentence(answer),
      .risk = answer.question.risk,
      .seconds = answer.question.duration.count(),
      .asked = {answer.question.cpu_cores, answer.question.memory_bytes},
      .free = {answer.free_cpu_cores, answer.free_memory_bytes},
      .reserve = {host.cpu_cores * kFitReserve,
                  static_cast<double>(host.memory.value) * kFitReserve},
      .outside = {answer.host.outside_cpu_cores, answer.host.outside_memory_bytes},
      .containers_need = {answer.containers_cpu_cores, answer.containers_memory_bytes},
      .host = host};
  if (answer.fits_for) reply.fits_for_seconds = answer.fits_for->count();
  if (const auto& change = answer.change)
    reply.next_change = {change->name, change->probability, change->in.count()};
  for (const FitDemand& one : answer.demands)
    reply.containers.push_back({one.name, demand(one.cpu_cores, one.cpu_basis),
                                demand(one.memory_bytes, one.memory_basis)});
  return reply;
}

json to_json(const ConfigReply& reply) { return ok_reply(FieldWriter::json_of(reply)); }
json to_json(const ConfigDifferences& differences) {
  return ok_reply(FieldWriter::json_of(differences));
}
json to_json(const LearnedReply& reply) { return ok_reply(FieldWriter::json_of(reply)); }
json to_json(const FitReply& reply) { return ok_reply(FieldWriter::json_of(reply)); }

template Result<ConfigReply> read_reply(const json& body);
template Result<ConfigDifferences> read_reply(const json& body);
template Result<LearnedReply> read_reply(const json& body);
template Result<FitReply> read_reply(const json& body);

}  // namespace cgphase
