import CImgdl
import CSystem
import ImgdlCore

@_cdecl("imgdl_version") @implementation
public func imgdl_version() -> UInt32 { 1_001_000 }

@_cdecl("imgdl_version_string") @implementation
public func imgdl_version_string() -> UnsafePointer<CChar>? { staticText("1.1.0") }

@_cdecl("imgdl_error_name") @implementation
public func imgdl_error_name(_ code: imgdl_status) -> UnsafePointer<CChar>? {
    staticText(ErrorCode(rawValue: code)?.symbol ?? "IMGDL_ERROR_UNKNOWN")
}

@_cdecl("imgdl_error_message") @implementation
public func imgdl_error_message(_ code: imgdl_status) -> UnsafePointer<CChar>? {
    staticText(ErrorCode(rawValue: code)?.sentence ?? "an error that this version does not know")
}

@_cdecl("imgdl_last_error") @implementation
public func imgdl_last_error() -> UnsafePointer<CChar>? { system_thread_last_error() }

/// String literals live as long as the library, and end with NUL.
func staticText(_ text: StaticString) -> UnsafePointer<CChar>? {
    UnsafeRawPointer(text.utf8Start).assumingMemoryBound(to: CChar.self)
}

extension ErrorCode {
    /// As in imgdl.h.
    var symbol: StaticString {
        switch self {
        case .ok: "IMGDL_OK"
        case .invalidURL: "IMGDL_ERROR_INVALID_URL"
        case .badImageData: "IMGDL_ERROR_BAD_IMAGE_DATA"
        case .notModified: "IMGDL_ERROR_NOT_MODIFIED"
        case .blacklisted: "IMGDL_ERROR_BLACKLISTED"
        case .invalidOperation: "IMGDL_ERROR_INVALID_OPERATION"
        case .invalidStatus: "IMGDL_ERROR_INVALID_STATUS"
        case .cancelled: "IMGDL_ERROR_CANCELLED"
        case .invalidResponse: "IMGDL_ERROR_INVALID_RESPONSE"
        case .invalidContentType: "IMGDL_ERROR_INVALID_CONTENT_TYPE"
        case .invalidArgument: "IMGDL_ERROR_INVALID_ARGUMENT"
        case .invalidHandle: "IMGDL_ERROR_INVALID_HANDLE"
        case .unsupportedOption: "IMGDL_ERROR_UNSUPPORTED_OPTION"
        case .wouldDeadlock: "IMGDL_ERROR_WOULD_DEADLOCK"
        case .shutDown: "IMGDL_ERROR_SHUT_DOWN"
        case .forked: "IMGDL_ERROR_FORKED"
        case .outOfMemory: "IMGDL_ERROR_OUT_OF_MEMORY"
        case .waitTimeout: "IMGDL_ERROR_WAIT_TIMEOUT"
        case .notReady: "IMGDL_ERROR_NOT_READY"
        case .internal: "IMGDL_ERROR_INTERNAL"
        case .invalidHeader: "IMGDL_ERROR_INVALID_HEADER"
        case .unsupportedScheme: "IMGDL_ERROR_UNSUPPORTED_SCHEME"
        case .backgroundExpired: "IMGDL_ERROR_BACKGROUND_EXPIRED"
        case .resolveFailed: "IMGDL_ERROR_RESOLVE_FAILED"
        case .connectFailed: "IMGDL_ERROR_CONNECT_FAILED"
        case .connectionLost: "IMGDL_ERROR_CONNECTION_LOST"
        case .tlsFailed: "IMGDL_ERROR_TLS_FAILED"
        case .tlsCertificate: "IMGDL_ERROR_TLS_CERTIFICATE"
        case .protocolError: "IMGDL_ERROR_PROTOCOL"
        case .truncated: "IMGDL_ERROR_TRUNCATED"
        case .connectTimeout: "IMGDL_ERROR_CONNECT_TIMEOUT"
        case .idleTimeout: "IMGDL_ERROR_IDLE_TIMEOUT"
        case .totalTimeout: "IMGDL_ERROR_TOTAL_TIMEOUT"
        case .proxyFailed: "IMGDL_ERROR_PROXY_FAILED"
        case .tooManyRedirects: "IMGDL_ERROR_TOO_MANY_REDIRECTS"
        case .redirectRefused: "IMGDL_ERROR_REDIRECT_REFUSED"
        case .contentEncoding: "IMGDL_ERROR_CONTENT_ENCODING"
        case .addressRefused: "IMGDL_ERROR_ADDRESS_REFUSED"
        case .tlsPin: "IMGDL_ERROR_TLS_PIN"
        case .notCached: "IMGDL_ERROR_NOT_CACHED"
        case .bodyLimit: "IMGDL_ERROR_BODY_LIMIT"
        case .headerLimit: "IMGDL_ERROR_HEADER_LIMIT"
        case .pixelLimit: "IMGDL_ERROR_PIXEL_LIMIT"
        case .frameLimit: "IMGDL_ERROR_FRAME_LIMIT"
        case .scanLimit: "IMGDL_ERROR_SCAN_LIMIT"
        case .sizeLimit: "IMGDL_ERROR_SIZE_LIMIT"
        case .animationLimit: "IMGDL_ERROR_ANIMATION_LIMIT"
        case .metadataLimit: "IMGDL_ERROR_METADATA_LIMIT"
        case .memoryLimit: "IMGDL_ERROR_MEMORY_LIMIT"
        case .decodeTimeout: "IMGDL_ERROR_DECODE_TIMEOUT"
        case .flood: "IMGDL_ERROR_FLOOD"
        case .cacheBusy: "IMGDL_ERROR_CACHE_BUSY"
        case .diskFull: "IMGDL_ERROR_DISK_FULL"
        case .readOnly: "IMGDL_ERROR_READ_ONLY"
        case .diskFailed: "IMGDL_ERROR_DISK_FAILED"
        case .unsafeDirectory: "IMGDL_ERROR_UNSAFE_DIRECTORY"
        }
    }

    /// What it means in general.
    var sentence: StaticString {
        switch self {
        case .ok: "success"
        case .invalidURL: "the URL is empty or malformed"
        case .badImageData: "the data is not a picture, or a broken one"
        case .notModified: "the caller's copy is still good"
        case .blacklisted: "it failed for good a short while ago"
        case .invalidOperation: "this cannot be done here"
        case .invalidStatus: "the server answered with an error status"
        case .cancelled: "cancelled"
        case .invalidResponse: "the response was refused"
        case .invalidContentType: "the response is of a type that was not asked for"
        case .invalidArgument: "an argument is NULL or out of range"
        case .invalidHandle: "the handle is NULL, released, or of another type"
        case .unsupportedOption: "an option is set that this version does not know, or struct_size is too small"
        case .wouldDeadlock: "no wait on this thread: it is the library's, or runs what would be waited for"
        case .shutDown: "the downloader is shut down"
        case .forked: "the handle belongs to the parent process"
        case .outOfMemory: "out of memory, threads or descriptors, or of what certificates and keys may take"
        case .waitTimeout: "the time given to wait is over"
        case .notReady: "not yet: there is nothing to give, or no room to take"
        case .internal: "a defect of the library"
        case .invalidHeader: "a header, method or credential has bytes that may not be sent"
        case .unsupportedScheme: "the URL's scheme is neither http nor https, nor one that was allowed or registered"
        case .backgroundExpired: "the time for work in the background is over"
        case .resolveFailed: "the host's name could not be resolved"
        case .connectFailed: "no connection to the server"
        case .connectionLost: "the connection was lost before the answer was complete"
        case .tlsFailed: "no TLS session could be made"
        case .tlsCertificate: "the server's certificate cannot be trusted"
        case .protocolError: "the server's answer is not HTTP"
        case .truncated: "the body or the picture ends too early"
        case .connectTimeout: "no connection in time"
        case .idleTimeout: "the server sent nothing of the answer for too long"
        case .totalTimeout: "not complete within the request's own time"
        case .proxyFailed: "the proxy refused or could not be reached"
        case .tooManyRedirects: "too many redirects, or a redirect loop"
        case .redirectRefused: "a redirect that is not followed"
        case .contentEncoding:
            "the compressed body is broken, in a coding that is not known, or takes too much work to undo"
        case .addressRefused: "the address is private, and such addresses are refused"
        case .tlsPin: "the server's public key is not the pinned one"
        case .notCached: "only what is stored was asked for, and nothing that is stored fits"
        case .bodyLimit: "the body is larger than allowed"
        case .headerLimit: "the response header is larger than allowed"
        case .pixelLimit: "the picture has more pixels than allowed"
        case .frameLimit: "the picture has more frames than allowed"
        case .scanLimit: "the picture has more scans than allowed"
        case .sizeLimit: "the picture is wider or higher than allowed"
        case .animationLimit: "the frames have more pixels together than allowed"
        case .metadataLimit: "the picture has more metadata than allowed"
        case .memoryLimit: "decoding the picture takes more memory than allowed"
        case .decodeTimeout: "decoding the picture takes more time than allowed"
        case .flood: "the server sends a flood of what belongs to no request"
        case .cacheBusy: "another program writes to the cache for too long"
        case .diskFull: "the cache's disk has no room"
        case .readOnly: "the cache's directory cannot be written to"
        case .diskFailed: "the cache's disk does not work"
        case .unsafeDirectory: "the cache's directory belongs to somebody else, or others may write to it"
        }
    }
}
