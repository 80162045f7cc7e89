// Files that the command line names twice, where one of the two is written.
#ifndef FILE_CONFLICTS_HPP
#define FILE_CONFLICTS_HPP

#include "arguments.hpp"

/// Throws UsageError where a picture, a journal or standard output would be written over the journal or what is read: the same
/// file under whichever name, also where there is none yet. Nothing is opened or made.
void refuse_files_that_are_named_twice(const Arguments &arguments);

#endif
