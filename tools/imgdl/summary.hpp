// How a run went: counts, and what failed by what it was.
#ifndef SUMMARY_HPP
#define SUMMARY_HPP

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "imgdl.h"

enum class ExitCode { ok = 0, some_failed = 1, usage = 2, machine = 3, network = 4, server = 5, picture = 6 };

/// The kind of failure that a code is. has_body: all of the body had come.
ExitCode kind_of(imgdl_status code, bool has_body = false);

class Summary {
  public:
    void count_done(std::int64_t bytes) { done_++, bytes_ += bytes; }
    void count_skipped() { skipped_++; }
    /// Given up by the user: it has not failed.
    void count_cancelled() { cancelled_++; }
    /// class_name such as "IMGDL_ERROR_INVALID_STATUS 404".
    void count_failed(const std::string &class_name, ExitCode kind);

    std::uint64_t failed() const { return failed_; }
    std::uint64_t ended() const { return done_ + skipped_ + cancelled_ + failed_; }
    std::int64_t bytes() const { return bytes_; }
    /// "3 done (1.2 MiB), 1 failed".
    std::string counts() const;
    /// The counts, and a line for each class, the largest first.
    std::vector<std::string> lines() const;
    /// machine where anything failed here; a kind that all failures have; else some_failed.
    ExitCode exit_code() const;

  private:
    std::uint64_t done_ = 0, skipped_ = 0, cancelled_ = 0, failed_ = 0;
    std::int64_t bytes_ = 0;
    std::map<std::string, std::uint64_t> classes_;
    std::map<ExitCode, std::uint64_t> kinds_;
};

#endif
