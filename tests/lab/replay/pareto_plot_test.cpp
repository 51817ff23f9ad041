#include "lab/replay/pareto_plot.h"

#include <doctest/doctest.h>

#include "tests/lab/plot/xml_check.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

ParetoPlot plot() {
  return {.resource = "CPU", .source = "t.csv", .subtitle = "made up", .oracle = 0.2,
          .controls = {{0.01, 0.5}, {0.1, 0.3}, {0.1, 0.9}},
          .curves = {{"phase", {{0, 0.4}, {0.01, 0.3}}, 1}, {"static", {{0, 1}}, 0}}};
}

}  // namespace

TEST_CASE("shipped settings are discs with letters, the others dots, and the oracle is a line") {
  const std::string text = draw_pareto(plot());
  CHECK(xml_fault(text) == "");
  CHECK(has(text, "r=\"8.5\" fill=\"#0072b2\""));
  CHECK(has(text, ">A phase</text>"));
  CHECK(has(text, ">B static</text>"));
  CHECK(has(text, "oracle-max"));
  CHECK(has(text, "phase: 30 % allocated, 1 % of samples over."));
}

TEST_CASE("points that are never over are left of the decades") {
  const std::string text = draw_pareto(plot());
  CHECK(has(text, ">never</text>"));
  CHECK(has(text, ">0.01 %</text>"));
  CHECK(has(text, ">10 %</text>"));
  CHECK_FALSE(has(text, ">100 %</text>"));
}

TEST_CASE("the axis grows if more than a tenth is over") {
  ParetoPlot wide = plot();
  wide.curves[0].marks.push_back({0.5, 0.1});
  CHECK(has(draw_pareto(wide), ">100 %</text>"));
}

TEST_CASE("a plot without controls, oracle or violations is complete") {
  const std::string text =
      draw_pareto({.resource = "Memory", .source = "<a>\x1b", .subtitle = "", .oracle = {},
                   .controls = {}, .curves = {{"\"&\xff", {{0, 0}}, {}}}});
  CHECK(xml_fault(text) == "");
  CHECK_FALSE(has(text, "reached without phases"));
}

TEST_CASE("the maximum of curves have one letter each") {
  ParetoPlot many = plot();
  many.curves.assign(kMostParetoCurves, {"x", {{0.01, 0.5}}, 0});
  const std::string text = draw_pareto(many);
  CHECK(xml_fault(text) == "");
  CHECK(has(text, ">R x</text>"));
}
