#include "cli/present.h"

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

const json kTwo = list_reply(std::vector{web(), fresh()});

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

TEST_CASE("csv has as many fields in each row, also with hostile names") {
  ContainerReport odd = hostile();
  odd.container.name = "a,b";
  const json body = list_reply(std::vector{odd});
  const auto lines = lines_of(present(kListForm, body, Output::csv, {}).value());
  REQUIRE(lines.size() == 2);
  CHECK(lines[1].starts_with("\"a,b\",cgroup,\"\\x1b[31m"));
}

TEST_CASE("without a legend csv has no heading") {
  TextStyle bare;
  bare.legend = false;
  CHECK(lines_of(present(kListForm, kTwo, Output::csv, bare).value()).size() == 2);
}

TEST_CASE("a reply without rows has no csv") {
  const auto text = present(kStatusForm, to_json(status()), Output::csv, {});
  REQUIRE_FALSE(text);
  CHECK(text.error().kind == ErrorKind::invalid);
}

TEST_CASE("every csv column of a container exists in a full report") {
  const json row = to_json(web());
  for (const CsvColumn& column : kListForm.columns)
    CHECK_MESSAGE(row.contains(json::json_pointer(column.path)), column.path);
}
