//! Compares this crate with imgdl.h, in both directions: what the one has and the other has not is an error, too.
//!
//! A C program, made from the header's own text, tells sizes, offsets and values; and every function, written in C
//! again as it is declared in Rust, must be one that the C compiler accepts beside the header; so must a pointer to
//! every field.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt::Write;
use std::fs;
use std::mem::{align_of, size_of, MaybeUninit};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::addr_of;

use imgdl_sys::*;

/// "struct imgdl_x" to "size align", "imgdl_x.field" to "offset size", "IMGDL_X" to its value.
type Facts = BTreeMap<String, String>;

fn include_directory() -> PathBuf {
    match env::var_os("IMGDL_INCLUDE_DIR") {
        Some(directory) => directory.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../include"),
    }
}

fn size_behind<T>(_: *const T) -> usize {
    size_of::<T>()
}

macro_rules! structs {
    ($facts:ident: $($name:ident { $($field:ident)* })*) => {
        $(
            let space = MaybeUninit::<$name>::uninit();
            let base = space.as_ptr();
            $facts.insert(
                format!("struct {}", stringify!($name)),
                format!("{} {}", size_of::<$name>(), align_of::<$name>()),
            );
            $({
                // SAFETY: an address inside `space`; nothing is read.
                let field = unsafe { addr_of!((*base).$field) };
                $facts.insert(
                    format!("{}.{}", stringify!($name), stringify!($field)),
                    format!("{} {}", field as usize - base as usize, size_behind(field)),
                );
            })*
        )*
    };
}

macro_rules! constants {
    ($facts:ident: $($name:ident)*) => { $( $facts.insert(stringify!($name).into(), format!("{}", $name)); )* };
}

macro_rules! functions {
    ($($name:ident)*) => { [$( (stringify!($name), $name as *const ()) ),*] };
}

fn rust_facts() -> Facts {
    let mut facts = Facts::new();
    structs! { facts:
        imgdl_rectangle { x y width height }
        imgdl_decode_options {
            struct_size pixel_format flags reserved max_pixels target_width target_height max_output_bytes
            max_frames format_hint coder max_side max_scans max_animation_pixels max_metadata_bytes
            max_memory_bytes max_decode_ms colour allocate deallocate allocator_user_data good_enough_scan reserved2
        }
        imgdl_image_info { struct_size format width height orientation frame_count has_alpha is_progressive }
        imgdl_header { name value }
        imgdl_hop { url status reserved }
        imgdl_response {
            struct_size status http_version redirect_count content_length url headers header_count hops
            content_type cache_outcome reserved
        }
        imgdl_event {
            struct_size kind token received expected response info image data code http_status message
            content_type preview preview_length metrics
        }
        imgdl_status_range { first last }
        imgdl_request {
            struct_size priority flags event_mask url method headers header_count body body_length
            max_body_bytes total_timeout_ms partial_interval_ms decode executor callback destructor
            user_data user password connect_timeout_ms idle_timeout_ms retry_count retry_base_ms
            retry_max_ms reserved accepted_statuses accepted_status_count accepted_types
            accepted_type_count ca_file client_certificate client_key client_key_password
            pinned_public_key hooks scale_factor cache_mode reserved2 partition
            max_stale_ms
        }
        imgdl_outgoing { struct_size reserved url method headers header_count body body_length }
        imgdl_hooks_table {
            struct_size reserved modify_request modify_response transform_body redirect authenticate
            user_data destructor
        }
        imgdl_config {
            struct_size max_concurrent order decode_threads connect_timeout_ms idle_timeout_ms
            max_redirects reserved user_agent ca_file executor flags max_per_host memory_budget proxy user
            password client_certificate client_key client_key_password pinned_public_key cookie_file hooks
            retry_count retry_base_ms retry_max_ms failure_ttl_ms accepted_statuses accepted_status_count
            accepted_types accepted_type_count progress_interval cache cache_mode reserved2 dns_servers
            crl_file nat64_prefixes partition max_stale_ms
        }
        imgdl_result {
            struct_size code http_status reserved message image data response content_type preview
            preview_length metrics
        }
        imgdl_batch_progress { struct_size is_finished finished failed cancelled total }
        imgdl_batch_options {
            struct_size max_concurrent executor progress destructor user_data keeps_priority reserved
        }
        imgdl_metrics {
            struct_size http_version queue_ns resolve_ns connect_ns tls_ns first_byte_ns body_ns
            transfer_ns decode_ns total_ns bytes_received bytes_sent body_bytes redirect_count retry_count
            is_connection_reused is_shared address
        }
        imgdl_observation { struct_size kind transfer url code http_status subscriber_count retry_count metrics }
        imgdl_histogram { count sum_us buckets }
        imgdl_stats {
            struct_size reserved submitted succeeded failed cancelled shared transfers retries redirects
            connections bytes_received bytes_sent pixels waiting running paused decoding memory
            memory_peak queue resolve connect tls first_byte transfer decode total
        }
        imgdl_coder_table {
            struct_size reserved can_decode create feed info partial finish destroy user_data destructor
        }
        imgdl_transport_table { struct_size reserved start cancel user_data destructor resume }
        imgdl_cache_event { struct_size kind message }
        imgdl_cache_config {
            struct_size reserved directory max_bytes max_memory_bytes max_image_bytes max_partial_bytes max_age_s
            callback destructor user_data
        }
        imgdl_cache_entry { struct_size status body_bytes stored_s used_s fresh_s is_complete reserved }
        imgdl_cache_stats {
            struct_size is_writable entries bytes partial_entries partial_bytes memory_entries memory_bytes
            image_entries image_bytes hits memory_hits image_hits validated stale misses resumed stored evicted damaged
            not_stored unflushed
        }
    }
    constants! { facts:
        IMGDL_OK IMGDL_ERROR_INVALID_URL IMGDL_ERROR_BAD_IMAGE_DATA IMGDL_ERROR_NOT_MODIFIED
        IMGDL_ERROR_BLACKLISTED IMGDL_ERROR_INVALID_OPERATION IMGDL_ERROR_INVALID_STATUS IMGDL_ERROR_CANCELLED
        IMGDL_ERROR_INVALID_RESPONSE IMGDL_ERROR_INVALID_CONTENT_TYPE IMGDL_ERROR_INVALID_ARGUMENT
        IMGDL_ERROR_INVALID_HANDLE IMGDL_ERROR_UNSUPPORTED_OPTION IMGDL_ERROR_WOULD_DEADLOCK
        IMGDL_ERROR_SHUT_DOWN IMGDL_ERROR_FORKED IMGDL_ERROR_OUT_OF_MEMORY IMGDL_ERROR_WAIT_TIMEOUT
        IMGDL_ERROR_NOT_READY IMGDL_ERROR_INTERNAL IMGDL_ERROR_INVALID_HEADER IMGDL_ERROR_UNSUPPORTED_SCHEME
        IMGDL_ERROR_BACKGROUND_EXPIRED IMGDL_ERROR_RESOLVE_FAILED IMGDL_ERROR_CONNECT_FAILED
        IMGDL_ERROR_CONNECTION_LOST IMGDL_ERROR_TLS_FAILED IMGDL_ERROR_TLS_CERTIFICATE IMGDL_ERROR_PROTOCOL
        IMGDL_ERROR_TRUNCATED IMGDL_ERROR_CONNECT_TIMEOUT IMGDL_ERROR_IDLE_TIMEOUT IMGDL_ERROR_TOTAL_TIMEOUT
        IMGDL_ERROR_PROXY_FAILED IMGDL_ERROR_TOO_MANY_REDIRECTS IMGDL_ERROR_REDIRECT_REFUSED
        IMGDL_ERROR_CONTENT_ENCODING IMGDL_ERROR_ADDRESS_REFUSED IMGDL_ERROR_TLS_PIN IMGDL_ERROR_NOT_CACHED
        IMGDL_ERROR_BODY_LIMIT
        IMGDL_ERROR_HEADER_LIMIT IMGDL_ERROR_PIXEL_LIMIT IMGDL_ERROR_FRAME_LIMIT
        IMGDL_ERROR_SCAN_LIMIT IMGDL_ERROR_SIZE_LIMIT IMGDL_ERROR_ANIMATION_LIMIT IMGDL_ERROR_METADATA_LIMIT
        IMGDL_ERROR_MEMORY_LIMIT IMGDL_ERROR_DECODE_TIMEOUT IMGDL_ERROR_FLOOD IMGDL_ERROR_CACHE_BUSY
        IMGDL_ERROR_DISK_FULL IMGDL_ERROR_READ_ONLY IMGDL_ERROR_DISK_FAILED IMGDL_ERROR_UNSAFE_DIRECTORY IMGDL_FORMAT_UNKNOWN
        IMGDL_FORMAT_JPEG IMGDL_FORMAT_PNG IMGDL_FORMAT_WEBP IMGDL_FORMAT_GIF IMGDL_FORMAT_OTHER
        IMGDL_PIXEL_FORMAT_DEFAULT IMGDL_PIXEL_FORMAT_RGBA8 IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED
        IMGDL_PIXEL_FORMAT_BGRA8 IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED IMGDL_PIXEL_FORMAT_RGB8
        IMGDL_PIXEL_FORMAT_RGBA16 IMGDL_IMAGE_INCOMPLETE_END IMGDL_COLOUR_NOTE_ICC IMGDL_COLOUR_NOTE_SRGB IMGDL_COLOUR_NOTE_GAMMA
        IMGDL_COLOUR_NOTE_CHROMATICITIES IMGDL_COLOUR_NOTE_CONVERTED IMGDL_COLOUR_NOTE_UNUSABLE_PROFILE
        IMGDL_COLOUR_NOTE_COSTLY_PROFILE
        IMGDL_COLOUR_AS_STORED IMGDL_COLOUR_SRGB IMGDL_DECODE_IGNORE_ORIENTATION
        IMGDL_DECODE_SALVAGE IMGDL_DECODE_ALL_FRAMES IMGDL_DECODE_REQUIRE_ANIMATION IMGDL_DECODE_STRETCH
        IMGDL_DECODE_SCALE_DOWN IMGDL_DECODE_THUMBNAIL_FIRST IMGDL_EVENT_STARTED IMGDL_EVENT_RESPONSE IMGDL_EVENT_HEADER
        IMGDL_EVENT_PROGRESS IMGDL_EVENT_PARTIAL IMGDL_EVENT_TERMINAL IMGDL_EVENT_ALL IMGDL_PRIORITY_LOW
        IMGDL_PRIORITY_NORMAL IMGDL_PRIORITY_HIGH IMGDL_REQUEST_BODY IMGDL_REQUEST_DECODE
        IMGDL_REQUEST_NO_REDIRECTS IMGDL_REQUEST_ALLOW_DOWNGRADE IMGDL_REQUEST_ANY_STATUS
        IMGDL_REQUEST_COOKIES IMGDL_REQUEST_ALLOW_INVALID_CERTIFICATES IMGDL_REQUEST_CONTINUE_IN_BACKGROUND
        IMGDL_REQUEST_RETRY_FAILED IMGDL_REQUEST_FULL_URLS IMGDL_REQUEST_IGNORE_CACHED
        IMGDL_REQUEST_BASIC_OVER_HTTP
        IMGDL_CACHE_OUTCOME_NETWORK IMGDL_CACHE_OUTCOME_HIT IMGDL_CACHE_OUTCOME_VALIDATED
        IMGDL_CACHE_OUTCOME_STALE IMGDL_CACHE_OUTCOME_RESUMED IMGDL_CACHE_DEFAULT IMGDL_CACHE_OFF IMGDL_CACHE_USE
        IMGDL_CACHE_RELOAD IMGDL_CACHE_ONLY IMGDL_CACHE_REFRESH IMGDL_CACHE_MOVED_ASIDE IMGDL_CACHE_UNWRITABLE
        IMGDL_CACHE_WRITABLE IMGDL_CACHE_NOT_STORED IMGDL_ORDER_FIFO IMGDL_ORDER_LIFO IMGDL_CONFIG_FINISH_NEARLY_DONE
        IMGDL_CONFIG_BASIC_OVER_HTTP IMGDL_CONFIG_REQUIRE_TLS_1_3
        IMGDL_CONFIG_DENY_PRIVATE_ADDRESSES IMGDL_CONFIG_ALLOW_FILE_URLS IMGDL_CONFIG_ALLOW_DATA_URLS
        IMGDL_SHUTDOWN_FINISH IMGDL_SHUTDOWN_CANCEL IMGDL_OBSERVED_STARTED IMGDL_OBSERVED_RESPONSE
        IMGDL_OBSERVED_STOPPED IMGDL_OBSERVED_FINISHED IMGDL_TRIM_UNUSED IMGDL_TRIM_CONNECTIONS IMGDL_TRIM_CACHES
        IMGDL_VERSION_MAJOR IMGDL_VERSION_MINOR
        IMGDL_VERSION_PATCH IMGDL_VERSION_NUMBER IMGDL_VERSION_STRING IMGDL_DEFAULT_MAX_PIXELS
        IMGDL_DEFAULT_MAX_FRAMES IMGDL_DEFAULT_MAX_SCANS IMGDL_DEFAULT_MAX_METADATA_BYTES IMGDL_DEFAULT_SCALE_DOWN_BYTES IMGDL_MAX_TARGET IMGDL_RETRY_NONE
        IMGDL_DEFAULT_MAX_MEMORY_BYTES IMGDL_DEFAULT_MAX_DECODE_MS IMGDL_NO_LIMIT IMGDL_NO_LIMIT_32 IMGDL_STALE_NEVER
        IMGDL_DEFAULT_RETRY_BASE_MS IMGDL_DEFAULT_RETRY_MAX_MS IMGDL_DEFAULT_MAX_BODY_BYTES
        IMGDL_DEFAULT_MAX_CONCURRENT IMGDL_MAX_CONCURRENT_LIMIT IMGDL_DEFAULT_MEMORY_BUDGET
        IMGDL_DEFAULT_BATCH_WIDTH IMGDL_DEFAULT_CACHE_BYTES IMGDL_DEFAULT_CACHE_MEMORY_BYTES
    }
    facts.insert("IMGDL_EXECUTOR_INLINE".into(), format!("{}", IMGDL_EXECUTOR_INLINE as usize));
    facts
}

// ---- The header, read

struct Header {
    structs: Vec<(String, Vec<String>)>,
    enumerators: BTreeSet<String>,
    defines: BTreeSet<String>,
    functions: BTreeSet<String>,
}

fn without_comments(text: &str) -> String {
    let mut rest = text;
    let mut plain = String::new();
    while let Some(start) = rest.find("/*") {
        plain.push_str(&rest[..start]);
        rest = rest[start..].find("*/").map_or("", |end| &rest[start + end + 2..]);
    }
    plain + rest
}

fn last_word(text: &str) -> String {
    let word = |c: char| c.is_alphanumeric() || c == '_';
    text.trim_end().rsplit(|c| !word(c)).next().unwrap_or("").to_string()
}

fn read_header(text: &str) -> Header {
    let plain = without_comments(text);
    let mut header = Header {
        structs: Vec::new(),
        enumerators: BTreeSet::new(),
        defines: BTreeSet::new(),
        functions: BTreeSet::new(),
    };
    for line in plain.lines().filter_map(|line| line.strip_prefix("#define IMGDL_")) {
        let (name, value) = line.split_once(' ').unwrap_or((line, ""));
        if !value.is_empty() && name != "API" && name != "CHECKED" {
            header.defines.insert(format!("IMGDL_{name}"));
        }
    }
    let code: String = plain.lines().filter(|line| !line.starts_with('#')).map(|line| format!("{line}\n")).collect();
    for part in code.split("enum {").skip(1) {
        let list = part.split('}').next().unwrap();
        header.enumerators.extend(
            list.split(',')
                .map(|item| item.split('=').next().unwrap().trim().to_string())
                .filter(|name| !name.is_empty() && !name.ends_with("FORCE32")),
        );
    }
    for part in code.split("struct ").skip(1) {
        if let Some((name, body)) = split_struct(part) {
            header.structs.push((name, body.split(';').flat_map(field_names).collect()));
        }
    }
    for part in code.split("IMGDL_API ").skip(1) {
        header.functions.insert(last_word(part.split('(').next().unwrap()));
    }
    header
}

/// Name and body of what follows "struct "; None if nothing is declared there.
fn split_struct(part: &str) -> Option<(String, &str)> {
    let (name, rest) = part.split_once(char::is_whitespace)?;
    let body = rest.trim_start().strip_prefix('{')?;
    Some((name.to_string(), body.split('}').next()?))
}

/// The fields of one declaration, such as "uint32_t x, y", "uint64_t buckets[40]" or "void (*cancel)(void *started)".
fn field_names(declaration: &str) -> Vec<String> {
    if let Some((_, rest)) = declaration.split_once("(*") {
        return vec![last_word(rest.split(')').next().unwrap())];
    }
    let names = declaration.split(',').map(|name| last_word(name.split('[').next().unwrap()));
    names.filter(|name| !name.is_empty()).collect()
}

// ---- This crate's declarations, written in C

fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("{} const *", c_type(target));
    }
    match rust {
        "c_void" => "void",
        "c_char" => "char",
        "usize" => "size_t",
        "u32" => "uint32_t",
        "i32" => "int32_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        "f64" => "double",
        other => other,
    }
    .to_string()
}

/// A pointer to such a value, with this name.
fn c_pointer(rust: &str, name: &str) -> String {
    let rust = rust.trim().trim_end_matches(',');
    if let Some(function) = rust.strip_prefix("Option<unsafe extern \"C\" fn(") {
        let (arguments, result) = function.trim_end_matches(['>', ',']).rsplit_once(')').unwrap();
        let result = result.trim().strip_prefix("->").map_or("void".to_string(), c_type);
        return format!("{result} (**{name})({})", c_arguments(arguments));
    }
    if let Some((item, count)) = rust.strip_prefix('[').and_then(|array| array.strip_suffix(']')?.split_once(';')) {
        return format!("{} (*{name})[{}]", c_type(item), count.trim());
    }
    format!("{} *{name}", c_type(rust))
}

fn c_arguments(rust: &str) -> String {
    let arguments = rust.split(',').filter_map(|argument| argument.split_once(':'));
    let arguments: Vec<String> = arguments.map(|(name, kind)| format!("{} {}", c_type(kind), name.trim())).collect();
    if arguments.is_empty() {
        "void".to_string()
    } else {
        arguments.join(", ")
    }
}

/// Struct, field and its type, of every struct.
fn fields(source: &str) -> Vec<(String, String, String)> {
    let mut found = Vec::new();
    let plain: String = source.split("\nextern \"C\" {").next().unwrap().lines().map(|line| line.trim()).collect();
    for part in plain.split("#[repr(C)]#[derive(Clone, Copy, Debug)]pub struct ").skip(1) {
        let (name, body) = part.split_once(" {").unwrap();
        for field in body.split('}').next().unwrap().split("pub ").skip(1) {
            let (field, kind) = field.split_once(':').unwrap();
            found.push((name.to_string(), field.to_string(), kind.to_string()));
        }
    }
    found
}

/// Name to prototype.
fn prototypes(source: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let externs = &source[source.find("extern \"C\" {\n").expect("the declarations")..];
    for part in externs.split("pub fn ").skip(1) {
        let declaration = part.split(';').next().unwrap();
        let (name, rest) = declaration.split_once('(').unwrap();
        let (arguments, result) = rest.rsplit_once(')').unwrap();
        let arguments = c_arguments(arguments);
        let result = result.trim().strip_prefix("->").map_or("void".to_string(), c_type);
        found.insert(name.to_string(), format!("{result} {name}({arguments});"));
    }
    found
}

fn c_program(header: &Header, source: &str) -> String {
    let mut program = String::from("#include <imgdl.h>\n#include <stdio.h>\n\n");
    for prototype in prototypes(source).values() {
        writeln!(program, "{prototype}").unwrap();
    }
    for (index, (name, field, kind)) in fields(source).iter().enumerate() {
        let pointer = c_pointer(kind, "field");
        writeln!(program, "void field{index}({name} *all) {{ {pointer} = &all->{field}; (void)field; }}").unwrap();
    }
    program += "\nint main(void)\n{\n";
    for (name, fields) in &header.structs {
        writeln!(program, "    printf(\"struct {name}=%zu %zu\\n\", sizeof(struct {name}), _Alignof(struct {name}));")
            .unwrap();
        for field in fields {
            writeln!(
                program,
                "    printf(\"{name}.{field}=%zu %zu\\n\", offsetof(struct {name}, {field}), \
                 sizeof(((struct {name} *)0)->{field}));"
            )
            .unwrap();
        }
    }
    for name in header.enumerators.iter().chain(&header.defines) {
        let (format, value) = match name.as_str() {
            "IMGDL_VERSION_STRING" => ("%s", name.clone()),
            "IMGDL_NO_LIMIT" | "IMGDL_STALE_NEVER" => ("%llu", format!("(unsigned long long){name}")),
            "IMGDL_EXECUTOR_INLINE" => ("%zu", format!("(size_t){name}")),
            _ => ("%lld", format!("(long long){name}")),
        };
        writeln!(program, "    printf(\"{name}={format}\\n\", {value});").unwrap();
    }
    program + "    return 0;\n}\n"
}

fn run_c(program: &str) -> Facts {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let (source, binary) = (directory.join("layout.c"), directory.join("layout"));
    fs::write(&source, program).unwrap();
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let compiled = Command::new(compiler)
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(include_directory())
        .arg("-o")
        .args([&binary, &source])
        .output()
        .expect("a C compiler");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    let output = Command::new(&binary).output().unwrap();
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .collect()
}

#[test]
fn everything_is_as_the_c_compiler_sees_it() {
    let header = read_header(&fs::read_to_string(include_directory().join("imgdl.h")).unwrap());
    let c = run_c(&c_program(&header, include_str!("../src/lib.rs")));
    let rust = rust_facts();
    assert!(c.len() > 350, "the header was read badly: {} facts", c.len());
    for (name, value) in &c {
        assert_eq!(rust.get(name), Some(value), "{name}: Rust (left) and imgdl.h (right)");
    }
    for name in rust.keys() {
        assert!(c.contains_key(name), "{name} is not in imgdl.h");
    }
}

#[test]
fn every_function_is_declared_and_linked() {
    let header = read_header(&fs::read_to_string(include_directory().join("imgdl.h")).unwrap());
    let declared: BTreeSet<String> = prototypes(include_str!("../src/lib.rs")).into_keys().collect();
    assert_eq!(declared, header.functions);
    let linked = functions! {
        imgdl_version imgdl_version_string imgdl_error_name imgdl_error_message imgdl_last_error
        imgdl_image_width imgdl_image_height imgdl_image_stride imgdl_image_format imgdl_image_pixel_format
        imgdl_image_pixels imgdl_image_frame_count imgdl_image_frame imgdl_image_frame_duration_ms
        imgdl_image_loop_count imgdl_image_scale_factor imgdl_image_orientation imgdl_image_is_complete
        imgdl_image_is_good_enough imgdl_image_notes imgdl_image_colour_notes imgdl_image_icc_profile
        imgdl_image_pass imgdl_image_ready imgdl_image_create imgdl_image_retain imgdl_image_release
        imgdl_data_bytes imgdl_data_length imgdl_data_retain imgdl_data_release imgdl_decode_options_init
        imgdl_image_info_init imgdl_decode imgdl_decoder_create imgdl_decoder_feed imgdl_decoder_info
        imgdl_decoder_partial imgdl_decoder_finish imgdl_decoder_destroy imgdl_executor_create_pumped
        imgdl_executor_fd imgdl_executor_dispatch imgdl_executor_retain imgdl_executor_release
        imgdl_request_init imgdl_outgoing_init imgdl_hooks_create imgdl_hooks_retain imgdl_hooks_release
        imgdl_continue_unchanged imgdl_continue_with_request imgdl_continue_with_response
        imgdl_continue_with_data imgdl_continue_with_credentials imgdl_continue_refused imgdl_config_init
        imgdl_downloader_create imgdl_downloader_shared imgdl_downloader_retain imgdl_downloader_release
        imgdl_downloader_set_header imgdl_downloader_get_header imgdl_downloader_set_max_concurrent
        imgdl_downloader_set_max_per_host imgdl_downloader_max_concurrent imgdl_downloader_is_suspended
        imgdl_downloader_set_order imgdl_downloader_set_suspended imgdl_downloader_enter_background
        imgdl_downloader_enter_foreground imgdl_downloader_network_changed imgdl_downloader_invalidate
        imgdl_downloader_reconfigure
        imgdl_downloader_cancel_all imgdl_downloader_current_count imgdl_downloader_wait_idle
        imgdl_downloader_shutdown imgdl_downloader_destroy imgdl_download imgdl_token_cancel
        imgdl_token_set_priority imgdl_token_wait imgdl_result_init imgdl_token_result imgdl_token_id
        imgdl_token_retain imgdl_token_release imgdl_batch_options_init imgdl_downloader_prefetch
        imgdl_batch_cancel imgdl_batch_set_paused imgdl_batch_set_priority imgdl_batch_progress_get
        imgdl_batch_retain imgdl_batch_release imgdl_metrics_init imgdl_token_metrics
        imgdl_downloader_set_observer imgdl_histogram_quantile imgdl_stats_init imgdl_downloader_stats imgdl_trim
        imgdl_coder_register imgdl_coder_release imgdl_transport_register imgdl_transfer_response
        imgdl_transfer_body imgdl_transfer_end imgdl_transfer_release imgdl_cache_config_init imgdl_cache_open
        imgdl_cache_retain imgdl_cache_release imgdl_cache_entry_init imgdl_cache_query imgdl_cache_remove
        imgdl_cache_remove_older imgdl_cache_clear imgdl_cache_flush imgdl_cache_stats_init imgdl_cache_statistics
    };
    assert!(linked.iter().all(|(_, address)| !address.is_null()));
    let linked: BTreeSet<String> = linked.iter().map(|(name, _)| name.to_string()).collect();
    assert_eq!(linked, header.functions);
}

#[test]
fn the_library_that_is_loaded_is_the_one_that_is_declared() {
    // SAFETY: takes nothing.
    assert_eq!(unsafe { imgdl_version() }, IMGDL_VERSION_NUMBER);
    assert_eq!(env!("CARGO_PKG_VERSION"), IMGDL_VERSION_STRING);
}
