#include "agent/observers/gpu_looks.h"

#include <fcntl.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/fd.h"
#include "base/thread.h"
#include "cgroupfs/cgroup_directory.h"

namespace cgphase {

GpuAnswer look_for_gpu(const std::string& cgroup_root, const std::string& proc_root,
                       const GpuQuestion& question) {
  if (!question.container) return {read_host_devices(proc_root), GpuUse::unknown};
  const Result<Fd> directory =
      open_path(cgroup_root + question.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  if (!directory || identify(directory->get()) != *question.container)
    return {question.host, GpuUse::unknown};
  return {question.host, find_gpu(directory->get(), proc_root, question.host).use};
}

GpuLookThread::GpuLookThread(Look look) {
  Result<std::thread> thread =
      start_thread("cgphase-gpu", [shared = shared_, look = std::move(look)] {
        leave_descriptors();
        run(*shared, look);
      });
  if (thread) thread_ = std::move(*thread);
  else failed_ = thread.error().text;
}

GpuLookThread::~GpuLookThread() {
  if (!thread_.joinable()) return;
  std::unique_lock lock(shared_->mutex);
  shared_->stopping = true;
  shared_->questions.clear();
  const bool looking = shared_->looking;
  lock.unlock();
  shared_->wake.notify_one();
  if (looking) thread_.detach();
  else thread_.join();
}

void GpuLookThread::run(Shared& shared, const Look& look) {
  std::unique_lock lock(shared.mutex);
  for (;;) {
    shared.wake.wait(lock, [&] { return shared.stopping || !shared.questions.empty(); });
    if (shared.stopping) return;
    const GpuQuestion question = std::move(shared.questions.front());
    shared.questions.pop_front();
    shared.looking = true;
    lock.unlock();
    GpuAnswer answer = look(question);
    lock.lock();
    shared.looking = false;
    shared.answers.push_back(std::move(answer));
  }
}

void GpuLookThread::ask(std::vector<GpuQuestion> questions) {
  const std::lock_guard lock(shared_->mutex);
  std::ranges::move(questions, std::back_inserter(shared_->questions));
  shared_->wake.notify_one();
}

std::vector<GpuAnswer> GpuLookThread::take_answers() {
  const std::lock_guard lock(shared_->mutex);
  return std::exchange(shared_->answers, {});
}

}  // namespace cgphase
