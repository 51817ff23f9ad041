// Prints all metrics of made-up reports, with hostile names, for other programs:
// print_metrics openmetrics|prometheus
#include <cstdio>
#include <string_view>
#include <vector>

#include "protocol/metrics.h"
#include "tests/cli/reports.h"

using namespace cgphase;

int main(int argc, char** argv) {
  const std::string_view form = argc == 2 ? argv[1] : "";
  if (form != "openmetrics" && form != "prometheus") return 2;
  const StatusReport status = test::status();
  const std::vector containers = {test::web(), test::hostile()};
  const std::string page =
      metrics_page(&status, containers,
                   form == "openmetrics" ? MetricsForm::openmetrics : MetricsForm::prometheus);
  return std::fputs(page.c_str(), stdout) < 0 ? 1 : 0;
}
