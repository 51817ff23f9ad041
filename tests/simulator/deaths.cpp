// Tries the daemon's death at this moment. cgphase-restore runs on a copy of the kernel and of the
// leases. The run itself continues.
#include <algorithm>
#include <fstream>

#include "control/lease/restore.h"
#include "tests/simulator/lanes.h"
#include "tests/simulator/world.h"

namespace cgphase::simulator {
namespace {

constexpr std::size_t kLeaseHeader = 4096, kLeaseRecord = 1024, kWord = 8;
constexpr int kTornDeaths = 2;

}  // namespace

// The process may end at every allocation of the tested code, as it does when memory runs out.
void World::allocated() {
  if (quiet_ || scenario_.allocation_one_in == 0) return;
  if (current_lane() != Lane::agent && !lanes().waiting()) return;
  if (++allocations_ % scenario_.allocation_one_in != 0) return;
  const SimulatorScope simulator;
  try_death();
}

std::string World::lease_bytes() const {
  std::string bytes(kLeaseHeader + kSimulatedRecords * kLeaseRecord, '\0');
  std::ifstream(surroundings_.config.runtime_dir + "/leases", std::ios::binary)
      .read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  return bytes;
}

void World::try_death() {
  if (laws_.violation().empty() && laws_.leases() != nullptr)
    die_with(lease_bytes(), "if the daemon had died here");
}

// Cuts the stores since the kernel's last change at a random place. Each record is stored word by
// word in ascending order, one record after the other.
void World::try_torn_deaths() {
  const std::string now = lease_bytes();
  if (leases_at_last_change_.size() != now.size()) return;
  for (int attempt = 0; attempt < kTornDeaths && laws_.violation().empty(); ++attempt) {
    std::string torn = leases_at_last_change_;
    for (std::size_t at = kLeaseHeader; at < now.size(); at += kLeaseRecord) {
      if (now.compare(at, kLeaseRecord, torn, at, kLeaseRecord) == 0) continue;
      const std::size_t words = random_.below(kLeaseRecord / kWord + 1);
      std::copy_n(now.begin() + static_cast<std::ptrdiff_t>(at), words * kWord,
                  torn.begin() + static_cast<std::ptrdiff_t>(at));
    }
    die_with(torn, "if the daemon had died in the middle of storing a lease");
  }
}

void World::die_with(const std::string& leases, const char* when) {
  ++crashes_;
  CgroupKernel copy = kernel_;
  const std::string runtime = directory_ + "/death";
  std::ofstream(runtime + "/leases", std::ios::binary) << leases;
  quiet_ = true;
  CgroupKernel* const real = exchange_kernel(&copy);
  {
    auto table = LeaseTable::open_existing({.runtime_dir = runtime, .boot_id = kSimulatedBoot});
    if (!table)
      laws_.violate("the leases cannot be read: " + table.error().text);
    else
      (void)restore_leases(**table, std::string(kSimulatedRoot));
  }
  exchange_kernel(real);
  quiet_ = false;
  laws_.judge_restored(copy, when);
}

}  // namespace cgphase::simulator
