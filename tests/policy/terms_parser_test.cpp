#include "policy/terms_parser.h"

#include <doctest/doctest.h>

using namespace cgphase;

TEST_CASE("a class has its own name, and names of jobs") {
  const auto class_of = [](std::string_view word) {
    Terms terms;
    REQUIRE_MESSAGE(set_term(terms, "class", word), word);
    return terms.service_class;
  };
  for (const char* word : {"critical", "inference"})
    CHECK(class_of(word) == ServiceClass::critical);
  for (const char* word : {"standard", "sidecar"}) CHECK(class_of(word) == ServiceClass::standard);
  for (const char* word : {"batch", "training"}) CHECK(class_of(word) == ServiceClass::batch);
}

TEST_CASE("terms are read from one line") {
  Terms terms;
  REQUIRE(set_terms(terms, "  class=batch cpu.min=0.5\tmemory.min=512M "));
  CHECK(terms == Terms{ServiceClass::batch, Cores{0.5}, Bytes{512 * kMiB}});
  REQUIRE(set_terms(terms, "cpu.max=8 memory.max=4G"));
  CHECK(terms.cpu_max == Cores{8});
  CHECK(terms.memory_max == Bytes{4 * kGiB});
  CHECK_FALSE(terms.sleep.has_value());
  REQUIRE(set_terms(terms, "sleep=on"));
  CHECK(terms.sleep == true);
  REQUIRE(set_terms(terms, "sleep=off"));
  CHECK(terms.sleep == false);
  CHECK(set_terms(terms, ""));
  REQUIRE(set_terms(terms, "freeze=30s"));
  CHECK(terms.freeze_longest == std::chrono::seconds(30));
  for (const auto& [text, seconds] : {std::pair("3s", 3), {"3500ms", 3}, {"10min", 600}}) {
    REQUIRE(set_term(terms, "freeze", text));
    CHECK(terms.freeze_longest == std::chrono::seconds(seconds));
  }
}

TEST_CASE("a wrong term is refused with what is allowed") {
  const auto refused = [](std::string_view text) {
    Terms terms;
    const Status status = set_terms(terms, text);
    CHECK(terms == Terms{});
    return status ? std::string() : status.error().text;
  };
  CHECK(refused("class=gold") ==
        "class=gold: must be critical, standard, batch, inference, sidecar or training");
  CHECK(refused("class=Batch").starts_with("class=Batch: must be"));
  for (const char* cores : {"", "0", "-1", "nan", "1e9", "2x"})
    CHECK(refused("cpu.min=" + std::string(cores)).ends_with("must be cores, such as 0.5"));
  for (const char* size : {"", "0", "-1", "max", "1Q", "99999999T"})
    CHECK(refused("memory.min=" + std::string(size)).ends_with("must be a size, such as 512M"));
  for (const char* time : {"", "0s", "2999ms", "-5s", "601s", "11min", "forever", "30"})
    CHECK(refused("freeze=" + std::string(time))
              .ends_with("must be a time from 3s to 10min, such as 30s"));
  CHECK(refused("batch") == "batch: must be TERM=VALUE");
  CHECK(refused("io.min=1") == "io.min: no term; there are class, cpu.min, cpu.max, memory.min, "
                               "memory.max, sleep and freeze");
  for (const std::string_view name : kTermNames) {
    CHECK(refused("io.min=1").contains(name));
    CHECK(refused(std::string(name) + "=?").contains(": must be "));
  }
  for (const char* word : {"", "yes", "On"})
    CHECK(refused("sleep=" + std::string(word)).ends_with("must be on or off"));
  CHECK(refused("class=\x1b[31m").find('\x1b') == std::string::npos);
}
