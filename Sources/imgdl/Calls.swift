import CImgdl
import CSystem
import ImgdlCore

/// The frame of every exported function but the getters that Tests/packaging/test_exports.py names. Nobody cancels the thread
/// meanwhile, which would leave locks taken, and fork() on another thread waits until the call is done, or rests.
@discardableResult
func inLibrary<Result>(_ body: () -> Result) -> Result {
    let before = system_thread_hold_cancellation()
    let wasWorking = system_thread_enter(1)
    defer {
        system_thread_restore(wasWorking)
        system_thread_restore_cancellation(before)
    }
    return body()
}

/// The same for a function that can fail: one status out, the sentence kept for imgdl_last_error.
func call(_ body: () throws(Failure) -> Void) -> Int32 {
    inLibrary {
        do throws(Failure) {
            try body()
            return ErrorCode.ok.rawValue
        } catch {
            system_thread_set_last_error(PrintableText.escaped(error.message))
            return error.code.rawValue
        }
    }
}

/// The object behind a handle. Throws `invalidHandle`, and `forked` for what belongs to the parent process.
func object<Object: AnyObject>(_ handle: OpaquePointer?, _ kind: HandleKind, as type: Object.Type = Object.self)
    throws(Failure) -> Object
{
    let (found, isForeign) = HandleTable.shared.look(up: handle, kind)
    guard let found else {
        throw Failure(
            .invalidHandle, "the handle is of no \(kind.words) that there is: it was released, or is another object's")
    }
    if isForeign {
        throw Failure(.forked, "this \(kind.words) belongs to the parent process: make a new one after fork")
    }
    // What is of this kind is of this type.
    return unsafeDowncast(found, to: Object.self)
}

/// The executor that a request or a config names: nil for NULL.
func executor(_ handle: OpaquePointer?) throws(Failure) -> (any Executor)? {
    guard let handle else { return nil }
    if UInt(bitPattern: handle) == 1 { return InlineExecutor.shared }
    return try object(handle, .executor, as: PumpedExecutor.self)
}

/// Calls the destructor: nothing is called with the user data any more.
func dispose(_ destructor: imgdl_destructor?, _ userData: UnsafeMutableRawPointer?) {
    if let destructor { HostCode.run { destructor(userData) } }
}

func retain(_ handle: OpaquePointer?, _ kind: HandleKind) -> OpaquePointer? {
    HandleTable.shared.retain(handle, kind) ? handle : nil
}

/// size_t arrives signed.
func checkedCount(_ count: Int, _ start: UnsafeRawPointer?, _ name: String) throws(Failure) -> UnsafeRawBufferPointer {
    guard count >= 0 else { throw Failure(.invalidArgument, "the length of \(name) is out of range") }
    guard count == 0 || start != nil else { throw Failure(.invalidArgument, "\(name) is NULL") }
    return UnsafeRawBufferPointer(start: start, count: count)
}

/// Text from C: NULL and bytes that are not UTF-8 give nil.
func string(_ text: UnsafePointer<CChar>?) -> String? {
    text.flatMap { String(validatingCString: $0) }
}
