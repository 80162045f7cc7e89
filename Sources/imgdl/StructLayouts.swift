import CImgdl

// Which fields of each struct came with its first version, and which since. A field that is added to the header is added to the
// end of `laterEnds`; what was there stays, so that programs for every version are taken.

extension imgdl_decode_options: SizedStruct {
    static var firstSize: Int { size(through: \.max_pixels) }
    static var laterEnds: [UInt16] {
        [
            end(\.target_width), end(\.target_height), end(\.max_output_bytes), end(\.max_frames), end(\.format_hint),
            end(\.coder), end(\.max_side), end(\.max_scans), end(\.max_animation_pixels), end(\.max_metadata_bytes),
            end(\.max_memory_bytes), end(\.max_decode_ms), end(\.colour), end(\.allocate), end(\.deallocate),
            end(\.allocator_user_data), end(\.good_enough_scan), end(\.reserved2),
        ]
    }
}

extension imgdl_image_info: SizedStruct {
    static var firstSize: Int { size(through: \.is_progressive) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_request: SizedStruct {
    static var firstSize: Int { size(through: \.user_data) }
    static var laterEnds: [UInt16] {
        [
            end(\.user), end(\.password), end(\.connect_timeout_ms), end(\.idle_timeout_ms), end(\.retry_count),
            end(\.retry_base_ms), end(\.retry_max_ms), end(\.reserved), end(\.accepted_statuses),
            end(\.accepted_status_count), end(\.accepted_types), end(\.accepted_type_count), end(\.ca_file),
            end(\.client_certificate), end(\.client_key), end(\.client_key_password), end(\.pinned_public_key),
            end(\.hooks), end(\.scale_factor), end(\.cache_mode), end(\.reserved2), end(\.partition),
            end(\.max_stale_ms),
        ]
    }
}

extension imgdl_outgoing: SizedStruct {
    static var firstSize: Int { size(through: \.body_length) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_hooks_table: SizedStruct {
    static var hasInitializer: Bool { false }
    static var firstSize: Int { size(through: \.destructor) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_config: SizedStruct {
    static var firstSize: Int { size(through: \.executor) }
    static var laterEnds: [UInt16] {
        [
            end(\.flags), end(\.max_per_host), end(\.memory_budget), end(\.proxy), end(\.user), end(\.password),
            end(\.client_certificate), end(\.client_key), end(\.client_key_password), end(\.pinned_public_key),
            end(\.cookie_file), end(\.hooks), end(\.retry_count), end(\.retry_base_ms), end(\.retry_max_ms),
            end(\.failure_ttl_ms), end(\.accepted_statuses), end(\.accepted_status_count), end(\.accepted_types),
            end(\.accepted_type_count), end(\.progress_interval), end(\.cache), end(\.cache_mode), end(\.reserved2),
            end(\.dns_servers), end(\.crl_file), end(\.nat64_prefixes), end(\.partition), end(\.max_stale_ms),
        ]
    }
}

extension imgdl_result: SizedStruct {
    static var firstSize: Int { size(through: \.response) }
    static var laterEnds: [UInt16] { [end(\.content_type), end(\.preview), end(\.preview_length), end(\.metrics)] }
}

extension imgdl_batch_progress: SizedStruct {
    static var hasInitializer: Bool { false }
    static var firstSize: Int { size(through: \.total) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_batch_options: SizedStruct {
    static var firstSize: Int { size(through: \.reserved) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_metrics: SizedStruct {
    static var firstSize: Int { size(through: \.address) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_stats: SizedStruct {
    static var firstSize: Int { size(through: \.total) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_coder_table: SizedStruct {
    static var hasInitializer: Bool { false }
    static var firstSize: Int { size(through: \.destructor) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_transport_table: SizedStruct {
    static var hasInitializer: Bool { false }
    /// Without `resume`, which the tables of the first programs do not have.
    static var firstSize: Int { size(through: \.destructor) }
    static var laterEnds: [UInt16] { [end(\.resume)] }
}

extension imgdl_cache_config: SizedStruct {
    static var firstSize: Int { size(through: \.user_data) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_cache_entry: SizedStruct {
    static var firstSize: Int { size(through: \.reserved) }
    static var laterEnds: [UInt16] { [] }
}

extension imgdl_cache_stats: SizedStruct {
    static var firstSize: Int { size(through: \.unflushed) }
    static var laterEnds: [UInt16] { [] }
}
