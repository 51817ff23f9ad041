#include <doctest/doctest.h>

#include "base/text.h"
#include "protocol/report.h"

using namespace cgphase;

namespace {

ContainerReport container(const char* name, const char* engine_id, const char* path) {
  ContainerReport report;
  report.container.name = name;
  report.container.engine_id = engine_id;
  report.container.path = path;
  return report;
}

const std::vector<ContainerReport> kReports = {
    container("web-1", "4f2a9bc01d22", "/docker/4f2a9bc01d22"),
    container("train", "4f2a77aa0011", "/docker/4f2a77aa0011"),
    container("\x1b[31mred", "beef00112233", "/docker/beef00112233"),
    container("twin", "aaaa1", "/a/1"),
    container("twin", "bbbb2", "/a/2"),
    container("4f2a", "cccc3", "/a/3"),
};

Result<std::size_t> find(std::string_view text) {
  return find_container(std::span<const ContainerReport>(kReports), text);
}

}  // namespace

TEST_CASE("a container is found by name, path, id and id prefix") {
  CHECK(find("web-1").value() == 0);
  CHECK(find("/docker/4f2a77aa0011").value() == 1);
  CHECK(find("beef00112233").value() == 2);
  CHECK(find("4f2a9").value() == 0);
}

TEST_CASE("a container is found by its name as it is printed and as it is") {
  CHECK(find(escape_name(kReports[2].container.name)).value() == 2);
  CHECK(find(kReports[2].container.name).value() == 2);
}

TEST_CASE("a name goes before the prefix of an id") { CHECK(find("4f2a").value() == 5); }

TEST_CASE("an id prefix shorter than four characters names nothing") {
  CHECK(find("beef").value() == 2);
  REQUIRE_FALSE(find("bee"));
  CHECK(find("bee").error().kind == ErrorKind::not_found);
}

TEST_CASE("two containers of one name are told apart by the user") {
  const auto found = find("twin");
  REQUIRE_FALSE(found);
  CHECK(found.error().kind == ErrorKind::invalid);
  CHECK(found.error().text ==
        "'twin' names 2 containers: twin (aaaa1), twin (bbbb2); give more of the id, or the path");
}

TEST_CASE("an unknown container offers the nearest name") {
  const auto found = find("web-2");
  REQUIRE_FALSE(found);
  CHECK(found.error().kind == ErrorKind::not_found);
  CHECK(found.error().text == "no container 'web-2'; did you mean 'web-1'?");
}

TEST_CASE("an unknown container far from all points to list") {
  CHECK(find("something-else").error().text ==
        "no container 'something-else'; 'cgphase list' shows those there are");
}

TEST_CASE("what a hint is looked for among is bounded") {
  const std::string wanted(128, 'x');
  std::vector<ContainerReport> reports(16, container(std::string(128, 'y').c_str(), "", ""));
  reports.back().container.name.assign(127, 'x');
  const auto hint = [&] { return find_container(reports, wanted).error().text; };
  CHECK(hint().find("did you mean") != std::string::npos);  // 2^18 pairs of letters, but for a few
  reports.insert(reports.begin(), reports.front());
  CHECK(hint().find("did you mean") == std::string::npos);
}

TEST_CASE("empty text names nothing, and nothing is found among none") {
  CHECK_FALSE(find(""));
  CHECK_FALSE(find_container(std::span<const ContainerReport>(), "x"));
}

TEST_CASE("hostile text is shown escaped") {
  CHECK(find("\x1b]0;evil\x07zzzzzzzz").error().text.find('\x1b') == std::string::npos);
}
