// Standard input, output and error, which may be closed when this program begins.
#ifndef STANDARD_DESCRIPTORS_HPP
#define STANDARD_DESCRIPTORS_HPP

/// A file that is opened must not become standard output because that was closed. Called before anything is opened.
void hold_standard_descriptors();
/// It was there when this program began.
bool has_standard_input();

#endif
