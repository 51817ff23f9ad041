#include "lab/plot/variance_plot.h"

#include <doctest/doctest.h>

#include "tests/lab/plot/xml_check.h"
#include "tests/text.h"

using namespace cgphase;
using namespace cgphase::test;

namespace {

}  // namespace

TEST_CASE("within falls, between rises by as much, and the elbow is marked") {
  const std::string text = draw_variance({"t.csv", "made up", {10, 4, 1, 0}, 3});
  CHECK(xml_fault(text) == "");
  CHECK(has(text, ">elbow: k = 3</text>"));
  CHECK(has(text, "1: 10, 2: 4, 3: 1, 4: 0. The elbow is at 3.</desc>"));
  // 1 is 30 pixels, from the bottom of the panel at 414 to its top at 114.
  const char* const within[] = {"114", "294", "384", "414"};
  const char* const between[] = {"414", "234", "144", "114"};
  for (const char* height : within)
    CHECK(has(text, std::string(" cy=\"") + height + "\" r=\"3.5\" fill=\"#0072b2\""));
  for (const char* height : between)
    CHECK(has(text, std::string(" cy=\"") + height + "\" r=\"3.5\" fill=\"#d55e00\""));
}

TEST_CASE("points that are all equal make a picture") {
  CHECK(xml_fault(draw_variance({"t.csv", "made up", std::vector<double>(12, 0.0), 1})) == "");
}

TEST_CASE("an elbow at the right end has its text to the left") {
  const std::string text = draw_variance({"t.csv", "", {9, 8, 7, 1}, 4});
  CHECK(has(text, "text-anchor=\"end\" font-weight=\"bold\">elbow: k = 4</text>"));
}

TEST_CASE("hostile names are text") {
  const std::string text = draw_variance({"<a>.csv\x1b", "model \"&\xff", {1, 0}, 2});
  CHECK(xml_fault(text) == "");
  CHECK(has(text, "Clusters in &lt;a&gt;.csv\\x1b"));
}
