// What a picture's file is called: by what the server or its address says, without trusting either.
#ifndef OUTPUT_NAMING_HPP
#define OUTPUT_NAMING_HPP

#include <optional>
#include <string>
#include <string_view>

#include "imgdl.hpp"

/// What the first bytes of a file say.
imgdl_format format_of(imgdl::Bytes bytes);
/// "jpeg", "png", …; "" for what is none of them.
std::string_view format_name(imgdl_format format);

/// The file name of a Content-Disposition (RFC 6266), filename* before filename; as it is.
std::optional<std::string> name_in_disposition(std::string_view value);
/// The last part of an address's path, decoded; as it is.
std::string name_in_address(std::string_view address);

/// A name of one file in one folder: no path, nothing hidden, no control characters, no characters that file systems
/// forbid, nothing that is not seen, valid UTF-8, at most 200 bytes. "picture" where nothing is left.
std::string safe_name(std::string_view name);
/// Whether a name that stands in a journal can be one of this program's: of those above and below, also of older versions, which
/// made longer ones. It leads nowhere else, and is of the characters that safe_name leaves; dots and blanks at its end, which that
/// takes away, are no harm.
bool is_safe_name(std::string_view name);
/// The same with the extension of the format: photo.png that is a JPEG becomes photo.jpg, view.php view.php.jpg. Like numbered(),
/// it cuts what would have more than 200 bytes with that, before the extension.
std::string with_extension(std::string name, imgdl_format format);
/// "jpeg" for photo.jpg; "" for a name that says nothing.
std::string_view format_named_by(std::string_view name);
/// photo.jpg, photo-1.jpg, photo-2.jpg …
std::string numbered(const std::string &name, unsigned number);

#endif
