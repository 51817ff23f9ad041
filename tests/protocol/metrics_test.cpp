#include "protocol/metrics.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "base/file.h"
#include "tests/cli/reports.h"

using namespace cgphase;

namespace {

std::vector<std::string> lines_of_page(const std::string& page) {
  std::vector<std::string> lines;
  std::istringstream in(page);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string page_of(const StatusReport& status, const std::vector<ContainerReport>& containers,
                    MetricsForm form = MetricsForm::openmetrics) {
  return metrics_page(&status, containers, form);
}

std::string full_page(MetricsForm form) {
  return page_of(test::status(), {test::web()}, form);
}

std::vector<ContainerReport> many(std::size_t count) {
  std::vector<ContainerReport> reports(count, test::fresh());
  for (std::size_t i = 0; i < count; ++i) reports[i].container.id = {1, i + 1};
  return reports;
}

// The table of docs/metrics.md, made from the families.
std::string metrics_table() {
  std::string table = "| metric | type | labels | what it tells |\n|---|---|---|---|\n";
  for (const MetricFamily& family : metric_families())
    table += "| `" + family.name + "` | " + family.type + " | " + family.labels + " | " +
             family.help + " |\n";
  return table;
}

}  // namespace

TEST_CASE("the table in docs/metrics.md is the table of the program") {
  const auto text = read_file(CGPHASE_SOURCE_DIR "/docs/metrics.md", 1 << 20);
  REQUIRE(text);
  CHECK_MESSAGE(text->find(metrics_table()) != std::string::npos, metrics_table());
}

TEST_CASE("a full page has every family of the table once, and no other") {
  std::multiset<std::string> printed, listed;
  for (const std::string& line : lines_of_page(full_page(MetricsForm::prometheus)))
    if (line.starts_with("# TYPE ")) printed.insert(line.substr(7, line.rfind(' ') - 7));
  for (const MetricFamily& family : metric_families()) listed.insert(family.name);
  CHECK(printed == listed);
}

TEST_CASE("the page for scrapes ends as OpenMetrics does and has units") {
  const std::string page = full_page(MetricsForm::openmetrics);
  CHECK(page.ends_with("\n# EOF\n"));
  CHECK(page.find("# TYPE cgphase_container info\n") != std::string::npos);
  CHECK(page.find("# TYPE cgphase_writes counter\n") != std::string::npos);
  CHECK(page.find("# UNIT cgphase_container_memory_need_bytes bytes\n") != std::string::npos);
  CHECK(page.find("cgphase_build_info{version=\"0.1.0\",policy=\"phase\"} 1\n") !=
        std::string::npos);
}

TEST_CASE("the page for textfiles has only what the older format knows") {
  const std::string page = full_page(MetricsForm::prometheus);
  CHECK(page.find("# EOF") == std::string::npos);
  CHECK(page.find("# UNIT") == std::string::npos);
  CHECK(page.find(" info\n") == std::string::npos);
  CHECK(page.find("# TYPE cgphase_container_info gauge\n") != std::string::npos);
  CHECK(page.find("# TYPE cgphase_writes_total counter\n") != std::string::npos);
}

TEST_CASE("modes are numbers, and complaints are counted") {
  StatusReport degraded = test::status();
  degraded.degraded = {"a", "b"};
  const std::string page = page_of(degraded, {test::web()});
  CHECK(page.find("\ncgphase_mode 2\n") != std::string::npos);
  CHECK(page.find("\ncgphase_degraded 2\n") != std::string::npos);
  CHECK(page.find("\ncgphase_container_mode{container=\"41:1201\"} 2\n") != std::string::npos);
}

TEST_CASE("only a known phase has an index") {
  const auto printed = [](PhaseState state) {
    ContainerReport report = test::web();
    report.phase.state = state;
    return page_of(test::status(), {report}).find("\ncgphase_container_phase{") !=
           std::string::npos;
  };
  CHECK(printed(PhaseState::known));
  CHECK_FALSE(printed(PhaseState::unknown));
}

TEST_CASE("the most containers have series, and a page counts the others") {
  const auto series = [](std::size_t containers) {
    const auto lines = lines_of_page(page_of(test::status(), many(containers)));
    return std::ranges::count_if(lines, [](const std::string& line) {
      return line.starts_with("cgphase_container_info{");
    });
  };
  CHECK(series(kMostMetricContainers) == kMostMetricContainers);
  CHECK(series(kMostMetricContainers + 1) == kMostMetricContainers);
  CHECK(page_of(test::status(), many(kMostMetricContainers + 1))
            .find("\ncgphase_containers_left_out 1\n") != std::string::npos);
  CHECK(full_page(MetricsForm::openmetrics).find("\ncgphase_containers_left_out 0\n") !=
        std::string::npos);
}

TEST_CASE("a label keeps text up to its bound and is cut where a character begins") {
  const auto name_of = [](const std::string& name) {
    ContainerReport report = test::fresh();
    report.container.name = name;
    const std::string page = page_of(test::status(), {report});
    const std::size_t begin = page.find("name=\"") + 6;
    return page.substr(begin, page.find('"', begin) - begin);
  };
  const std::string most(kMostLabelBytes, 'a');
  CHECK(name_of(most) == most);
  CHECK(name_of(most + "b") == most);
  CHECK(name_of(most.substr(1) + "\u20ac") == most.substr(1));
}
