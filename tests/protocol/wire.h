// Requests as a test writes and reads them: a verb and its arguments in JSON.
#pragma once

#include <doctest/doctest.h>

#include <nlohmann/json.hpp>

#include "protocol/requests.h"

namespace cgphase::test {

inline Request request_of(Verb verb, const nlohmann::json& args = nlohmann::json::object()) {
  const auto request =
      parse_request(nlohmann::json{{"verb", to_string(verb)}, {"args", args}}.dump());
  REQUIRE_MESSAGE(request, request.error().text);
  return *request;
}

inline nlohmann::json arguments_of(const Request& request) {
  return nlohmann::json::parse(encode_arguments(request));
}

}  // namespace cgphase::test
