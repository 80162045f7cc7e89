// What a process has of descriptors, and how to get along with few.
#ifndef DESCRIPTORS_HPP
#define DESCRIPTORS_HPP

#include <cstdint>

/// How many transfers there may be at a time, with those descriptors that are left: one for each, and some for the files, the
/// list, name servers and connections that are about to close. At least 1.
std::uint32_t jobs_that_fit();

/// What has just failed may have done so because there was none.
bool is_without_descriptors();

/// Descriptors that are held back for a file and its folder: what has been downloaded must not be thrown away because the
/// last one went to a connection.
class SpareDescriptors {
  public:
    SpareDescriptors() { hold(); }
    SpareDescriptors(const SpareDescriptors &) = delete;
    SpareDescriptors &operator=(const SpareDescriptors &) = delete;
    ~SpareDescriptors() { give(); }

    /// Somebody may take them; hold() takes them back where there are any.
    void give();
    void hold();
    /// Waits a moment in which a connection may end; false after a second of such moments.
    bool awaits_another();

  private:
    int held_[2] = {-1, -1};
    unsigned waited_ = 0;
};

#endif
