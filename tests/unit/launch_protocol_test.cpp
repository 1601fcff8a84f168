#include "bench/core/case_json.hpp"
#include "bench/core/error.hpp"
#include "bench/core/strategy.hpp"
#include "bench/core/temporary_directory.hpp"
#include "bench/launch/worker_protocol.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

namespace bench {
namespace {

// Everything that was written to the read end of a pipe, which must hold it all (64 KiB).
std::string drain(int fd) {
  std::string text;
  std::array<char, 4096> buffer;
  for (ssize_t n = ::read(fd, buffer.data(), buffer.size()); n > 0;
       n = ::read(fd, buffer.data(), buffer.size())) {
    text.append(buffer.data(), static_cast<std::size_t>(n));
  }
  return text;
}

TEST(WorkerProtocol, MessagesRoundTrip) {
  WorkerMessage message;
  message.type = WorkerMessage::Type::report;
  message.job = 3;
  message.at_ns = 42;
  message.report.rank = 1;
  message.report.message = "two\nlines";
  const WorkerMessage back = decode_message(encode_message(message));
  EXPECT_EQ(back.job, 3);
  EXPECT_EQ(back.at_ns, 42);
  EXPECT_EQ(report_to_json(back.report), report_to_json(message.report));
  EXPECT_EQ(encode_message(message).find('\n'), std::string::npos);
}

TEST(WorkerProtocol, GarbageIsAnError) {
  EXPECT_THROW(decode_message("Segmentation fault"), UsageError);
  EXPECT_THROW(decode_message("{}"), UsageError);
  EXPECT_THROW(decode_message(R"({"type":"song"})"), UsageError);
  EXPECT_THROW(decode_message(R"({"type":"report","report":{"status":"tired"}})"), UsageError);
}

// What a channel writes while `use` has it.
std::vector<WorkerMessage> messages_of(const std::function<void(WorkerChannel&)>& use) {
  int ends[2];
  if (::pipe(ends) != 0) throw MachineError("no pipe");
  WorkerChannel channel(ends[1]);
  use(channel);
  ::close(ends[1]);
  std::istringstream text(drain(ends[0]));
  ::close(ends[0]);
  std::vector<WorkerMessage> messages;
  for (std::string line; std::getline(text, line);) messages.push_back(decode_message(line));
  return messages;
}

TEST(WorkerProtocol, ChannelWritesOneLinePerMessage) {
  const auto messages = messages_of([](WorkerChannel& channel) {
    channel.begin_job(2);
    channel.phase("forward");
    channel.report(RankReport{});
  });
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1].phase, "forward");
  EXPECT_EQ(messages[1].job, 2);
}

TEST(WorkerProtocol, HeartbeatsKeepTheirDistance) {
  const auto messages = messages_of([](WorkerChannel& channel) {
    channel.phase("forward");
    for (int i = 0; i < 50; ++i) channel.heartbeat();
  });
  ASSERT_GE(messages.size(), 1u);
  for (std::size_t i = 1; i < messages.size(); ++i)
    EXPECT_GE(messages[i].at_ns - messages[i - 1].at_ns, 100'000'000);
}

TEST(WorkerProtocol, JobFilesHoldOneJobOrSeveral) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("jobs.json");
  Job job;
  job.kind = JobKind::record;
  job.work.model.name = "mlp";
  write_job_file(path, {job, job});
  EXPECT_EQ(read_job_file(path).size(), 2u);
  std::FILE* file = std::fopen(path.c_str(), "w");
  std::fputs(job_to_json(job).c_str(), file);
  std::fclose(file);
  EXPECT_EQ(job_to_json(read_job_file(path).at(0)), job_to_json(job));
  EXPECT_THROW(read_job_file(path + ".missing"), UsageError);
}

TEST(WorkerProtocol, ShapeRecordingsNeedOneProcess) {
  Job job;
  job.work.strategy = Strategy::distributed;
  job.work.gpus = {0, 1, 2, 3};
  job.kind = JobKind::record;
  EXPECT_EQ(job_process_count(job), 1);
  job.kind = JobKind::verify;
  EXPECT_EQ(job_process_count(job), 4);
  job.work.execute = Execute::numeric;
  job.kind = JobKind::record;
  EXPECT_EQ(job_process_count(job), 4);
  job.kind = JobKind::reference;
  EXPECT_EQ(job_process_count(job), 1);
}

TEST(WorkerProtocol, RankComesFromTheLauncherThatIsThere) {
  // The tests may be started by a launcher themselves.
  const auto forget_all = [] {
    for (const char* name :
         {"RANK", "WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "OMPI_COMM_WORLD_RANK",
          "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE"})
      ::unsetenv(name);
  };
  forget_all();
  ::setenv("SLURM_PROCID", "3", 1);
  ::setenv("SLURM_NTASKS", "4", 1);
  EXPECT_EQ(rank_context_from_environment().rank, 3);
  ::setenv("RANK", "1", 1);
  ::setenv("WORLD_SIZE", "2", 1);
  EXPECT_EQ(rank_context_from_environment().rank, 1);
  EXPECT_EQ(rank_context_from_environment().world_size, 2);
  ::setenv("RANK", "2", 1);
  EXPECT_THROW(rank_context_from_environment(), UsageError);
  ::setenv("RANK", "one", 1);
  EXPECT_THROW(rank_context_from_environment(), UsageError);
  forget_all();
}

}  // namespace
}  // namespace bench
