//! Compares this crate with imgdl.h, in both directions: what the one has and the other has not is an error, too.
//!
//! A C program, made from the header's own text, tells sizes, offsets and values; and every function, written in C again
//! as it is declared in Rust, must be one that the C compiler accepts beside the header.

use std::collections::{BTreeMap, BTreeSet};
use std::env;
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
        imgdl_decode_options { struct_size pixel_format flags reserved max_pixels }
        imgdl_image_info { struct_size format width height orientation frame_count has_alpha is_progressive }
        imgdl_header { name value }
        imgdl_response {
            struct_size status http_version redirect_count content_length url headers header_count
        }
        imgdl_event {
            struct_size kind token received expected response info image data code http_status message
        }
        imgdl_request {
            struct_size priority flags event_mask url method headers header_count body body_length max_body_bytes
            total_timeout_ms partial_interval_ms decode executor callback destructor user_data
        }
        imgdl_config {
            struct_size max_concurrent order decode_threads connect_timeout_ms idle_timeout_ms max_redirects reserved
            user_agent ca_file executor
        }
        imgdl_result { struct_size code http_status reserved message image data response }
    }
    constants! { facts:
        IMGDL_VERSION_MAJOR IMGDL_VERSION_MINOR IMGDL_VERSION_PATCH IMGDL_VERSION_NUMBER IMGDL_VERSION_STRING
        IMGDL_OK IMGDL_ERROR_INVALID_URL IMGDL_ERROR_BAD_IMAGE_DATA IMGDL_ERROR_NOT_MODIFIED
        IMGDL_ERROR_INVALID_OPERATION IMGDL_ERROR_INVALID_STATUS IMGDL_ERROR_CANCELLED
        IMGDL_ERROR_INVALID_RESPONSE IMGDL_ERROR_INVALID_CONTENT_TYPE IMGDL_ERROR_INVALID_ARGUMENT
        IMGDL_ERROR_INVALID_HANDLE IMGDL_ERROR_UNSUPPORTED_OPTION IMGDL_ERROR_WOULD_DEADLOCK
        IMGDL_ERROR_SHUT_DOWN IMGDL_ERROR_FORKED IMGDL_ERROR_OUT_OF_MEMORY IMGDL_ERROR_WAIT_TIMEOUT
        IMGDL_ERROR_NOT_READY IMGDL_ERROR_INTERNAL IMGDL_ERROR_INVALID_HEADER IMGDL_ERROR_UNSUPPORTED_SCHEME
        IMGDL_ERROR_RESOLVE_FAILED IMGDL_ERROR_CONNECT_FAILED IMGDL_ERROR_CONNECTION_LOST
        IMGDL_ERROR_TLS_FAILED IMGDL_ERROR_TLS_CERTIFICATE IMGDL_ERROR_PROTOCOL IMGDL_ERROR_TRUNCATED
        IMGDL_ERROR_CONNECT_TIMEOUT IMGDL_ERROR_IDLE_TIMEOUT IMGDL_ERROR_TOTAL_TIMEOUT
        IMGDL_ERROR_PROXY_FAILED IMGDL_ERROR_TOO_MANY_REDIRECTS IMGDL_ERROR_REDIRECT_REFUSED
        IMGDL_ERROR_CONTENT_ENCODING IMGDL_ERROR_BODY_LIMIT IMGDL_ERROR_HEADER_LIMIT IMGDL_ERROR_PIXEL_LIMIT
        IMGDL_FORMAT_UNKNOWN IMGDL_FORMAT_JPEG IMGDL_FORMAT_PNG IMGDL_FORMAT_WEBP IMGDL_FORMAT_GIF
        IMGDL_PIXEL_FORMAT_DEFAULT IMGDL_PIXEL_FORMAT_RGBA8 IMGDL_PIXEL_FORMAT_RGBA8_PREMULTIPLIED
        IMGDL_PIXEL_FORMAT_BGRA8 IMGDL_PIXEL_FORMAT_BGRA8_PREMULTIPLIED IMGDL_DECODE_IGNORE_ORIENTATION
        IMGDL_DECODE_SALVAGE IMGDL_EVENT_STARTED IMGDL_EVENT_RESPONSE IMGDL_EVENT_HEADER IMGDL_EVENT_PROGRESS
        IMGDL_EVENT_PARTIAL IMGDL_EVENT_TERMINAL IMGDL_EVENT_ALL IMGDL_PRIORITY_LOW IMGDL_PRIORITY_NORMAL
        IMGDL_PRIORITY_HIGH IMGDL_REQUEST_BODY IMGDL_REQUEST_DECODE IMGDL_REQUEST_NO_REDIRECTS
        IMGDL_REQUEST_ALLOW_DOWNGRADE IMGDL_REQUEST_ANY_STATUS IMGDL_ORDER_FIFO IMGDL_ORDER_LIFO
        IMGDL_SHUTDOWN_FINISH IMGDL_SHUTDOWN_CANCEL
        IMGDL_DEFAULT_MAX_PIXELS IMGDL_DEFAULT_MAX_BODY_BYTES IMGDL_DEFAULT_MAX_CONCURRENT IMGDL_MAX_CONCURRENT_LIMIT
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
        if !value.is_empty() && name != "API" {
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
    for part in code.split("typedef struct ").skip(1) {
        let (name, body) = split_struct(part);
        if let Some(body) = body {
            let fields = body.split(';').flat_map(|group| group.split(',').map(last_word)).filter(|f| !f.is_empty());
            header.structs.push((name, fields.collect()));
        }
    }
    for part in code.split("IMGDL_API ").skip(1) {
        header.functions.insert(last_word(part.split('(').next().unwrap()));
    }
    header
}

/// Name and body of what follows "typedef struct "; no body for opaque ones.
fn split_struct(part: &str) -> (String, Option<String>) {
    let name = part.split_whitespace().next().unwrap().to_string();
    let declaration = part.split(';').next().unwrap();
    let body = declaration.contains('{').then(|| {
        let start = part.find('{').unwrap();
        part[start + 1..part.find('}').unwrap()].to_string()
    });
    (name, body)
}

// ---- This crate's declarations, written in C

fn c_type(rust: &str) -> String {
    let rust = rust.trim();
    if let Some(target) = rust.strip_prefix("*mut ") {
        return format!("{} *", c_type(target));
    }
    if let Some(target) = rust.strip_prefix("*const ") {
        return format!("const {} *", c_type(target));
    }
    match rust {
        "c_void" => "void",
        "c_char" => "char",
        "usize" => "size_t",
        "u32" => "uint32_t",
        "i32" => "int32_t",
        "u64" => "uint64_t",
        "i64" => "int64_t",
        other => other,
    }
    .to_string()
}

/// Name to prototype.
fn prototypes(source: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let externs = &source[source.find("extern \"C\" {\n").expect("the declarations")..];
    for part in externs.split("pub fn ").skip(1) {
        let declaration = part.split(';').next().unwrap();
        let (name, rest) = declaration.split_once('(').unwrap();
        let (arguments, result) = rest.rsplit_once(')').unwrap();
        let arguments: Vec<String> = arguments
            .split(',')
            .filter_map(|argument| argument.split_once(':'))
            .map(|(name, kind)| format!("{} {}", c_type(kind), name.trim()))
            .collect();
        let arguments = if arguments.is_empty() { "void".to_string() } else { arguments.join(", ") };
        let result = result.trim().strip_prefix("->").map_or("void".to_string(), c_type);
        found.insert(name.to_string(), format!("{result} {name}({arguments});"));
    }
    found
}

fn c_program(header: &Header, prototypes: &BTreeMap<String, String>) -> String {
    let mut program = String::from("#include <imgdl.h>\n#include <stdio.h>\n\n");
    for prototype in prototypes.values() {
        program += &format!("{prototype}\n");
    }
    program += "\nint main(void)\n{\n";
    for (name, fields) in &header.structs {
        program +=
            &format!("    printf(\"struct {name}=%zu %zu\\n\", sizeof(struct {name}), _Alignof(struct {name}));\n");
        for field in fields {
            program += &format!(
                "    printf(\"{name}.{field}=%zu %zu\\n\", offsetof(struct {name}, {field}), \
                 sizeof(((struct {name} *)0)->{field}));\n"
            );
        }
    }
    for name in header.enumerators.iter().chain(&header.defines) {
        let (format, value) = match name.as_str() {
            "IMGDL_VERSION_STRING" => ("%s", name.clone()),
            "IMGDL_EXECUTOR_INLINE" => ("%zu", format!("(size_t){name}")),
            _ => ("%lld", format!("(long long){name}")),
        };
        program += &format!("    printf(\"{name}={format}\\n\", {value});\n");
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
    let prototypes = prototypes(include_str!("../src/lib.rs"));
    let c = run_c(&c_program(&header, &prototypes));
    let rust = rust_facts();
    assert!(c.len() > 150, "the header was read badly: {} facts", c.len());
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
        imgdl_image_pixels imgdl_image_frame_count imgdl_image_orientation imgdl_image_is_complete
        imgdl_image_pass imgdl_image_ready imgdl_image_retain imgdl_image_release imgdl_data_bytes
        imgdl_data_length imgdl_data_retain imgdl_data_release imgdl_decode_options_init imgdl_image_info_init
        imgdl_decode imgdl_decoder_create imgdl_decoder_feed imgdl_decoder_info imgdl_decoder_partial
        imgdl_decoder_finish imgdl_decoder_destroy imgdl_executor_create_pumped imgdl_executor_fd
        imgdl_executor_dispatch imgdl_executor_retain imgdl_executor_release imgdl_request_init
        imgdl_config_init imgdl_downloader_create imgdl_downloader_shared imgdl_downloader_retain
        imgdl_downloader_release imgdl_downloader_set_header imgdl_downloader_set_max_concurrent
        imgdl_downloader_set_order imgdl_downloader_set_suspended imgdl_downloader_cancel_all
        imgdl_downloader_current_count imgdl_downloader_wait_idle imgdl_downloader_shutdown
        imgdl_downloader_destroy imgdl_download imgdl_token_cancel imgdl_token_set_priority imgdl_token_wait
        imgdl_result_init imgdl_token_result imgdl_token_id imgdl_token_retain imgdl_token_release
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
