/// Where the fields of structs that have grown since version 1 end, but for the last: a program may have declared a part of
/// them. A struct_size between two of these would cut a field in two.
enum FieldEnds {
    static let decodeOptions: [UInt16] = [28, 32, 40, 44, 48, 56, 60, 64, 72, 80, 88, 92, 96, 104, 112, 120, 124]
    static let request: [UInt16] = [
        128, 136, 140, 144, 148, 152, 156, 160, 168, 176, 184, 192, 200, 208, 216, 224, 232, 240, 248, 252, 256, 264,
    ]
    static let config: [UInt16] = [
        60, 64, 72, 80, 88, 96, 104, 112, 120, 128, 136, 144, 148, 152, 156, 160, 168, 176, 184, 192, 200, 208, 212,
        216, 224, 232, 240, 248,
    ]
    static let result: [UInt16] = [56, 64, 72]
}
