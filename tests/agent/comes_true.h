// Waiting for another thread, which has its own pace.
#pragma once

#include <chrono>
#include <thread>

// Whether `condition` holds within ten seconds.
template <class Condition>
bool comes_true(const Condition& condition) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}
