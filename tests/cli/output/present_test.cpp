#include "cli/output/present.h"

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/reports.h"

using namespace cgphase;
using namespace cgphase::test;
using nlohmann::json;

namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

const json kTwo = to_json(ListReply{{web(), fresh()}});

}  // namespace

TEST_CASE("json is the reply itself") {
  const auto text = present(kListForm, kTwo, Output::json, {});
  CHECK(json::parse(text.value()) == kTwo);
}

TEST_CASE("jsonl is one container per line") {
  const auto lines = lines_of(present(kListForm, kTwo, Output::jsonl, {}).value());
  REQUIRE(lines.size() == 2);
  CHECK(json::parse(lines[0])["name"] == "web-1");
  CHECK(json::parse(lines[1])["name"] == "fresh");
}

TEST_CASE("csv is in base units with a heading, absent values are empty") {
  const auto lines = lines_of(present(kListForm, kTwo, Output::csv, {}).value());
  REQUIRE(lines.size() == 3);
  CHECK(lines[0].starts_with("name,engine,engine_id,image,path,device,inode,mode,"));
  CHECK(lines[1].find(",0.25,943718400,1048576000,0.6,1288490188,2.0,2147483648,") !=
        std::string::npos);
  CHECK(lines[2].starts_with("fresh,cgroup,,,/fresh,0,0,observe,,false,not enough history,,"));
}

TEST_CASE("csv has the same number of fields in each row, even with hostile names") {
  ContainerReport odd = hostile();
  odd.container.name = "a,b";
  const json body = to_json(ListReply{{odd}});
  const auto lines = lines_of(present(kListForm, body, Output::csv, {}).value());
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].starts_with("\"a,b\",cgroup,\"\\x1b[31m"));
}

TEST_CASE("csv has no heading without a legend") {
  TextStyle bare;
  bare.legend = false;
  CHECK(lines_of(present(kListForm, kTwo, Output::csv, bare).value()).size() == 2);
}

TEST_CASE("a reply without rows has no csv") {
  const auto text = present(kStatusForm, to_json(status()), Output::csv, {});
  REQUIRE_FALSE(text);
  CHECK(text.error().kind == ErrorKind::unsupported);
}

TEST_CASE("an output that a verb does not have is refused with the available ones") {
  const auto refusal = [](const Form& form, Output output) {
    return present(form, json::object(), output, {}).error().text;
  };
  CHECK(refusal(kStatusForm, Output::csv) ==
        "-o csv: this verb has table, wide, json, jsonl, openmetrics");
  CHECK(refusal(kHistoryForm, Output::openmetrics) ==
        "-o openmetrics: this verb has table, wide, json, jsonl, csv");
  CHECK(refusal(kActionForm, Output::openmetrics) ==
        "-o openmetrics: this verb has table, wide, json, jsonl");
}

TEST_CASE("CPU waits are a histogram if they were counted") {
  const auto lines = lines_of(present(kListForm, kTwo, Output::openmetrics, {}).value());
  const std::string family = "cgphase_container_run_queue_wait_seconds";
  const auto has = [&](const std::string& line) { return std::ranges::count(lines, line) == 1; };
  CHECK(has("# TYPE " + family + " histogram"));
  CHECK(has(family + "_bucket{container=\"41:1201\",le=\"8e-06\"} 900"));
  CHECK(has(family + "_bucket{container=\"41:1201\",le=\"1.6e-05\"} 1199"));
  CHECK(has(family + "_bucket{container=\"41:1201\",le=\"0.131072\"} 1199"));
  CHECK(has(family + "_bucket{container=\"41:1201\",le=\"+Inf\"} 1200"));
  CHECK(has(family + "_count{container=\"41:1201\"} 1200"));
  CHECK(has(family + "_sum{container=\"41:1201\"} 2.5"));
  CHECK(std::ranges::count_if(lines, [&](const std::string& line) {
          return line.starts_with(family);
        }) == kRunQueueBuckets + 2);
}

TEST_CASE("openmetrics reports each source as present or absent") {
  const json body = to_json(status());
  const auto lines = lines_of(present(kStatusForm, body, Output::openmetrics, {}).value());
  const auto has = [&](const std::string& line) { return std::ranges::count(lines, line) == 1; };
  CHECK(has("cgphase_source_present{source=\"cgroup v2\"} 1"));
  CHECK(has("cgphase_source_present{source=\"eBPF\"} 0"));
}

TEST_CASE("openmetrics has a family per measure, a series per container and an end") {
  const auto lines = lines_of(present(kListForm, kTwo, Output::openmetrics, {}).value());
  const auto count = [&](const std::string& begin) {
    return std::ranges::count_if(lines, [&](const std::string& line) {
      return line.starts_with(begin);
    });
  };
  CHECK(lines.back() == "# EOF");
  CHECK(count("# EOF") == 1);
  CHECK(count("cgphase_container_info{container=\"") == 2);
  CHECK(count("# TYPE cgphase_container_cpu_cores gauge") == 1);
  CHECK(count("# HELP cgphase_container_cpu_cores ") == 1);
  CHECK(count("cgphase_container_cpu_cores{container=\"") == 1);  // the other was not measured
  CHECK(count("cgphase_container_oom_kills_total{") > 0);
  CHECK(count("cgphase_container_switches_total{container=\"41:1201\",kind=\"") == 2);
  CHECK(count("cgphase_container_network_bytes_total{container=\"41:1201\",direction=\"") == 2);
  CHECK(count("cgphase_container_tcp_retransmits_total{container=\"41:1201\"} 7") == 1);
  CHECK(count("cgphase_container_block_latency_seconds_total{container=\"41:1201\"} 0.512") == 1);
  CHECK(count("cgphase_container_gpu_utilisation_ratio{") == 1);
  CHECK(count("cgphase_container_gpu_memory_bytes{") == 1);
  CHECK(count("cgphase_container_gpu_info{container=\"41:1201\",gpu=\"GPU-8f1e9a3c-") == 1);
  CHECK(count("cgphase_container_gpu_info{container=\"41:1201\",gpu=\"0000:03:00.0\"} 1") == 1);
  const std::string both = "gpu=\"GPU-8f1e9a3c-0b52-4c1e-a7d3-5d2f6e9b1c04,0000:03:00.0\"} 1";
  CHECK(std::ranges::count_if(lines, [&](const std::string& line) {
          return line.starts_with("cgphase_container_info{") && line.ends_with(both);
        }) == 1);
  for (const std::string& line : lines)
    if (!line.starts_with("#") && !line.starts_with("cgphase_container_info"))
      CHECK_MESSAGE(line.find("web-1") == std::string::npos, line);
  const auto own =
      lines_of(present(kStatusForm, to_json(status()), Output::openmetrics, {}).value());
  CHECK(std::ranges::count(own, "# TYPE cgphase_writes counter") == 1);
  CHECK(std::ranges::count_if(own, [](const std::string& line) {
          return line.starts_with("cgphase_containers{mode=\"");
        }) == 3);
}

TEST_CASE("openmetrics escapes quotes and line feeds of names again") {
  ContainerReport odd = hostile();
  odd.container.name = "a\"} 1\n\\b";
  const std::string text =
      present(kListForm, to_json(ListReply{{odd}}), Output::openmetrics, {}).value();
  CHECK_MESSAGE(text.find("name=\"a\\\"} 1\\\\x0a\\\\\\\\b\"") != std::string::npos, text);
}

TEST_CASE("every csv column of a container exists in a full report") {
  const json row = to_json(web());
  for (const CsvColumn& column : kListForm.columns)
    CHECK_MESSAGE(row.contains(json::json_pointer(column.path)), column.path);
}
