// A run: addresses are taken as places become free, callbacks come here, on the only thread.
#ifndef SESSION_HPP
#define SESSION_HPP

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <unordered_map>
#include <vector>

#include "address-list.hpp"
#include "arguments.hpp"
#include "download.hpp"
#include "imgdl.hpp"
#include "journal.hpp"
#include "output.hpp"
#include "progress.hpp"
#include "summary.hpp"
#include "viewer.hpp"

class Session {
  public:
    /// Opens everything that the arguments name. Throws std::exception, UsageError where the arguments are at fault.
    explicit Session(const Arguments &arguments);
    /// Gives the exit status.
    int run();

  private:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds redraw_interval{100};
    using Downloads = std::map<std::uint64_t, std::unique_ptr<Download>>;

    void limit_jobs();
    imgdl::Config config();
    imgdl::Request request_for(const Download &download) const;
    void take_addresses();
    void begin(Address address);
    Wanted wanted(const Download &download) const;
    bool is_done(Download &download);
    bool is_done(Download &download, const Wanted &wanted);
    bool is_for_another(Download &download);
    void start(Download &download);
    void wait_for_news();
    void stop();

    void on_event(Download &download, const imgdl::Event &event);
    void on_terminal(Download &download, const imgdl::Event &event);
    void save(Download &download, const imgdl::Event &event);
    void fail(Download &download, const std::string &class_name, ExitCode kind, const std::string &message);
    void fail_here(Download &download, const std::system_error &error);
    void fail_to_start(Download &download, const imgdl::Error &error);
    void cancel(Download &download);
    void end(Download &download);
    void end_with(const Download &first, const std::vector<std::uint64_t> &others);

    void report(const Download &download);
    void draw_pictures();
    void draw_bars();
    void write_line(const std::string &line);

    const Arguments &arguments_;
    std::uint32_t jobs_; // at a time
    AddressList list_;
    Output output_;
    std::optional<Journal> journal_;
    std::optional<Viewer> viewer_;
    imgdl::DecodeOptions decode_;
    Progress progress_;
    Summary summary_;

    std::unordered_map<std::string, std::vector<std::uint64_t>> waiting_; // for the end of the same address, with a journal
    Downloads downloads_; // that have not been reported, by their numbers
    std::uint64_t taken_ = 0;
    std::uint64_t running_ = 0;
    bool is_stopping_ = false;
    bool is_output_over_ = false; // its reader has left, or a signal cut it short
    std::string problem_; // of this machine, which ended the run
    Clock::time_point began_ = Clock::now(), drawn_ = {};
    bool has_news_ = true;

    std::mutex cache_lock_;
    std::string cache_problem_;
    imgdl::Executor executor_ = imgdl::Executor::pumped();
    imgdl::Downloader downloader_;
};

#endif
