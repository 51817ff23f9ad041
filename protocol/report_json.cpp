// The JSON of protocol/report.h: the members of each struct, each key once.
#include "protocol/fields.h"
#include "protocol/protocol.h"
#include "protocol/read_reply.h"
#include "protocol/report.h"
#include "protocol/sentence.h"

namespace cgphase {

using nlohmann::json;

// --- nouns ---

void visit_fields(auto& field, Is<CgroupId> auto& id) {
  field("device", id.device);
  field("inode", id.inode);
}

void visit_fields(auto& field, Is<CpuMax> auto& limit) {
  field("quota_usec", limit.quota);
  field("period_usec", limit.period);
}

void visit_fields(auto& field, Is<Limits> auto& limits) {
  field.derived("cpu_cores", limits.cpu_cores());
  field.derived("memory_bytes", limits.memory_bytes());
  field.if_present("cpu_max", limits.cpu_max);
  field.if_present("cpu_max_burst_usec", limits.cpu_max_burst);
  field.if_present("cpu_weight", limits.cpu_weight);
  field.if_present("memory_max_bytes", limits.memory_max);
  field.if_present("memory_high_bytes", limits.memory_high);
  field.if_present("memory_low_bytes", limits.memory_low);
  field.if_present("memory_min_bytes", limits.memory_min);
  field.if_present("frozen", limits.frozen);
}

void visit_fields(auto& field, Is<Phase> auto& phase) {
  field("state", phase.state);
  field("index", Index{phase.index});
  field.derived("letter", phase_letter(phase));
  field("distance", phase.distance);
  field("margin", phase.margin);
  field.derived("confidence", phase_confidence(phase));
}

void visit_fields(auto& field, Is<ContainerInfo> auto& container) {
  field("id", container.id);
  field("path", Name{container.path});
  field("engine", container.engine);
  field("engine_id", Name{container.engine_id});
  field("name", Name{container.name});
  field("image", Name{container.image});
  field("hands_off", container.hands_off);
  field.if_present("labels_unknown", container.labels_unknown);
}

void visit_fields(auto& field, Is<Evidence> auto& evidence) {
  for (std::size_t i = 0; i < kFactCount; ++i)
    field(to_string(static_cast<Fact>(i)), evidence.facts[i]);
}

void visit_fields(auto& field, Is<JournalDecision> auto& entry) {
  auto& decision = entry.decision;
  field("decision_id", decision.decision_id);
  field("time", entry.time);
  field("container", decision.container);
  field("resource", decision.resource);
  field("direction", decision.direction);
  field("old_limits", decision.old_limits);
  field("new_limits", decision.new_limits);
  field("reason", decision.reason);
  field("verdict", decision.verdict);
  field("phase", decision.phase);
  field("usage", decision.usage);
  field("statistic", decision.statistic);
  field("sample_count", decision.sample_count);
  field("facts", decision.evidence);
}

void visit_fields(auto& field, Is<JournalOutcome> auto& entry) {
  field("decision_id", entry.outcome.decision_id);
  field("time", entry.time);
  field("container", entry.outcome.container);
  field("kind", entry.outcome.kind);
  field("detail", entry.outcome.detail);
}

// --- a container ---

void visit_fields(auto& field, Is<Saving> auto& saving) {
  field("cpu_cores", saving.cpu_cores);
  field("memory_bytes", saving.memory_bytes);
}

void visit_fields(auto& field, Is<Terms> auto& terms) {
  field("class", terms.service_class);
  field("cpu_min_cores", terms.cpu_min);
  field("memory_min_bytes", terms.memory_min);
  field("cpu_max_cores", terms.cpu_max);
  field("memory_max_bytes", terms.memory_max);
  field("sleep", terms.sleep);
  field("freeze_seconds", terms.freeze_longest);
}

void visit_fields(auto& field, Is<Pin> auto& pin) {
  field("cpu_cores", pin.cpu);
  field("memory_bytes", pin.memory);
}

void visit_fields(auto& field, Is<NextPhase> auto& next) {
  field("phase", next.phase);
  field.derived("letter", phase_letter(next.phase));
  field("probability", next.probability);
  field("in_seconds", next.in_seconds);
}

void visit_fields(auto& field, Is<PhaseSeen> auto& seen) {
  field("phase", seen.phase);
  field.derived("letter", phase_letter(seen.phase));
  field("steps", seen.steps);
}

void visit_fields(auto& field, Is<GpuStat> auto& use) {
  field("utilisation_ratio", use.utilisation_ratio);
  field("memory_utilisation_ratio", use.memory_utilisation_ratio);
  field("memory_bytes", use.memory_bytes);
}

void visit_fields(auto& field, Is<NetworkStat> auto& stat) {
  field("receive_bytes", stat.receive_bytes);
  field("receive_packets", stat.receive_packets);
  field("transmit_bytes", stat.transmit_bytes);
  field("transmit_packets", stat.transmit_packets);
  field("tcp_retransmits", stat.tcp_retransmits);
}

void visit_fields(auto& field, Is<BlockStat> auto& stat) {
  field("bytes", stat.bytes);
  field("requests", stat.requests);
  field("latency_usec", stat.latency_usec);
}

void visit_fields(auto& field, Is<WakeReport> auto& wake) {
  field("time", wake.time);
  field("asleep_bytes", wake.asleep_bytes);
  field("waited_usec", wake.waited_usec);
}

void visit_fields(auto& field, Is<ContainerReport> auto& report) {
  visit_fields(field, report.container);
  field("mode", report.mode);
  field("terms", report.terms);
  field("paused", report.paused);
  field("phase", report.phase);
  field("seconds_in_phase", report.seconds_in_phase);
  field.object("usage", [&](auto& usage) {
    usage("cpu_cores", report.cpu_cores);
    usage("memory_need_bytes", report.memory_need_bytes);
    usage("memory_current_bytes", report.memory_current_bytes);
  });
  field("limits", report.limits);
  field("original", report.original);
  field("saving", report.saving);
  field("recommendation", report.recommendation);
  field("pinned", report.pinned);
  field("recommended_saving", report.recommended_saving);
  field("next", report.next);
  field.object("blocked_by", [&](auto& blocked_by) {
    blocked_by("cpu", report.cpu_blocked_by);
    blocked_by("memory", report.memory_blocked_by);
  });
  field("throttled_usec", report.throttled_usec);
  field("oom_kills", report.oom_kills);
  field("memory_delay_usec", report.memory_delay_usec);
  field.if_present("asleep_bytes", report.asleep_bytes);
  field.if_present("last_wake", report.last_wake);
  field("phases_seen", report.phases_seen);
  field.object("run_queue", [&](auto& queue) {
    queue("wait_usec", report.run_queue.wait_usec);
    queue("waits", report.run_queue.waits);
    queue("longest_wait_usec", report.run_queue.longest_wait_usec);
    queue("voluntary_switches", report.run_queue.voluntary_switches);
    queue("involuntary_switches", report.run_queue.involuntary_switches);
    queue("histogram", report.run_queue_histogram);
  });
  field("network", report.network);
  field("block", report.block);
  field.object("gpu", [&](auto& gpu) {
    visit_fields(gpu, report.gpu);
    gpu("ids", NameList{report.gpu_ids});
  });
}

void visit_fields(auto& field, Is<ListReply> auto& reply) {
  field("containers", reply.containers);
}

// --- the daemon ---

void visit_fields(auto& field, Is<SourceReport> auto& source) {
  field("name", source.name);
  field("present", source.present);
  field("detail", source.detail);
}

void visit_fields(auto& field, Is<GpuReport> auto& gpu) {
  field("id", Name{gpu.id});
  field("name", Name{gpu.name});
  visit_fields(field, gpu.use);
  field("memory_total_bytes", gpu.memory_total_bytes);
}

void visit_fields(auto& field, Is<StatusReport> auto& report) {
  field("version", report.version);
  field("mode", report.mode);
  field("policy", report.policy);
  field("uptime_seconds", report.uptime_seconds);
  field("started", report.started);
  field("cpu_seconds", report.cpu_seconds);
  field("overhead_cpu_cores", report.overhead_cpu_cores);
  field("rss_bytes", report.rss_bytes);
  field("sources", report.sources);
  field("gpus", report.gpus);
  field.object("model", [&](auto& model) {
    model("path", Name{report.model.path});
    model("provenance", report.model.provenance);
    model("origin", report.model.origin);
    model("phases", report.model.phases);
    model("features", report.model.features);
    model("step_seconds", report.model.step_seconds);
  });
  field.object("store", [&](auto& store) {
    store("size_bytes", report.store.size_bytes);
    store("cap_bytes", report.store.cap_bytes);
    store("state", report.store.state);
    store("dropped_samples", report.store.dropped_samples);
    store("dropped_entries", report.store.dropped_entries);
    store("left_out", report.store.left_out);
    store("damaged", report.store.damaged);
    store("quarantined", OptionalName{report.store.quarantined});
  });
  field.object("containers", [&](auto& containers) {
    containers("observe", report.containers_observe);
    containers("advise", report.containers_advise);
    containers("enforce", report.containers_enforce);
    containers("hands_off", report.containers_hands_off);
  });
  field("saved_now", report.saved_now);
  field("saved_core_seconds", report.saved_core_seconds);
  field("saved_byte_seconds", report.saved_byte_seconds);
  field.object("writes", [&](auto& writes) {
    writes("up", report.writes_up);
    writes("down", report.writes_down);
  });
  field("trials_reverted", report.trials_reverted);
  field("impossible_samples", report.impossible_samples);
  field("changed_anything", report.changed_anything);
  field("last_written_before", report.last_written_before);
  field("kill_switch", report.kill_switch);
  field("standing_down", report.standing_down);
  field("companion_needed", report.companion_needed);
  field("companion_alive", report.companion_alive);
  field("degraded", report.degraded);
}

// --- explain and actions ---

const char* behind_name(const Decision& decision) {
  return decision.reason == Reason::budget ? "givers" : "writer";
}

void visit_fields(auto& field, Is<ExplainedDecision> auto& one) {
  field("decision", one.entry.decision);
  field("written", one.entry.written);
  field("outcome", one.entry.end);
  field(behind_name(one.entry.decision.decision), OptionalText{one.entry.decision.writer});
  field("sentence", one.sentence);
}

void visit_fields(auto& field, Is<ExplainReply> auto& reply) {
  field("sentence", reply.sentence);
  field("at", reply.at);
  field("gone", reply.gone);
  field("container", reply.container);
  field("decisions", reply.decisions);
}

void visit_fields(auto& field, Is<ActionReport> auto& report) {
  field("done", report.done);
  field("undo", report.undo);
  field("changes", report.changes);
  field("failures", report.failures);
}

// --- journal and history ---

void visit_fields(auto& field, Is<EventReport> auto& event) {
  field("time", event.time);
  field("name", Name{event.name});
  field("sentence", event.sentence);
}

void visit_fields(auto& field, Is<EventsReply> auto& reply) {
  field("events", reply.events);
  field("earlier", OptionalText{reply.earlier});
}

void visit_fields(auto& field, Is<HistoryRow> auto& row) {
  field("time", row.time);
  field("phase", row.phase);
  field("cpu_cores", row.cpu_cores);
  field("memory_need_bytes", row.memory_need_bytes);
  field("memory_current_bytes", row.memory_current_bytes);
  field("limits", row.limits);
}

void visit_fields(auto& field, Is<HistoryReply> auto& reply) {
  field("container", reply.container);
  field.if_present("record", reply.record);
  field.if_present("first_seen", reply.first_seen);
  field.if_present("points", reply.points);
  field.if_present("gone", reply.gone);
  field.if_present("earlier", reply.earlier);
}

namespace {

// Schema set: a whole reply.
template <class T>
json reply_of(const T& value) { return ok_reply(FieldWriter::json_of(value)); }

}  // namespace

json to_json(const CgroupId& id) { return FieldWriter::json_of(id); }
json to_json(const Limits& limits) { return FieldWriter::json_of(limits); }
json to_json(const Phase& phase) { return FieldWriter::json_of(phase); }
json to_json(const ContainerInfo& container) { return FieldWriter::json_of(container); }
json to_json(const Decision& decision, WallTime time) {
  return FieldWriter::json_of(JournalDecision{time, decision});
}
json to_json(const Outcome& outcome, WallTime time) {
  return FieldWriter::json_of(JournalOutcome{time, outcome});
}
json to_json(const ExplainedDecision& decision) { return FieldWriter::json_of(decision); }
json to_json(const ContainerReport& report) { return FieldWriter::json_of(report); }

json to_json(const EventReport& report) {
  EventReport event = report;
  if (report.decision)
    event.sentence = explain_sentence(report.name, *report.decision, nullptr, report.writer);
  if (report.outcome) event.sentence = outcome_sentence(report.name, *report.outcome);
  FieldWriter field;
  visit_fields(field, event);
  if (report.decision) {
    field("event", "decision");
    field("decision", JournalDecision{report.time, *report.decision});
    field(behind_name(*report.decision), OptionalText{report.writer});
  }
  if (report.outcome) {
    field("event", "outcome");
    field("outcome", JournalOutcome{report.time, *report.outcome});
  }
  return std::move(field.out);
}

json to_json(const EventsReply& reply) { return reply_of(reply); }
json to_json(const HistoryReply& reply) { return reply_of(reply); }
json to_json(const ListReply& reply) { return reply_of(reply); }
json to_json(const StatusReport& report) { return reply_of(report); }
json to_json(const ExplainReply& reply) { return reply_of(reply); }
json to_json(const ExplainReport& report) { return reply_of(explain_reply(report)); }
json to_json(const ActionReport& report) { return reply_of(report); }

template Result<ContainerReport> read_reply(const json& body);
template Result<ListReply> read_reply(const json& body);
template Result<StatusReport> read_reply(const json& body);
template Result<ExplainReply> read_reply(const json& body);
template Result<ActionReport> read_reply(const json& body);
template Result<EventReport> read_reply(const json& body);
template Result<EventsReply> read_reply(const json& body);
template Result<HistoryReply> read_reply(const json& body);

}  // namespace cgphase
