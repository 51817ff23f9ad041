// The definition of read_reply(). Only .cpp files of protocol/ include this. Each instantiates it
// for its replies, after their visit_fields().
#pragma once

#include "protocol/fields.h"
#include "protocol/report.h"

namespace cgphase {

template <class T>
Result<T> read_reply(const nlohmann::json& body) {
  T reply;
  if (!body.is_object())
    return failure(ErrorKind::invalid, "unknown reply: it is not an object");
  if (body.contains("error")) return failure(ErrorKind::invalid, "error reply");
  FieldReader reader(body);
  visit_fields(reader, reply);
  if (reader.fault().empty()) return reply;
  return failure(ErrorKind::invalid,
                 "unknown reply: '" + reader.fault() +
                     "' has an unknown value; are command and daemon of the same version?");
}

}  // namespace cgphase
