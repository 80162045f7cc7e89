import CCodecs
import ImgdlCore

/// How a stored picture has to be turned, as EXIF numbers it: 1 is upright, 2 to 4 are mirrored or upside down, 5 to 8
/// lie on their side.
enum Orientation: Int {
    case upright = 1
    case mirrored, upsideDown, flipped, transposed, turnedRight, transversed, turnedLeft

    var swapsAxes: Bool { rawValue >= 5 }
}

/// Where the pixels of a stored picture, scaled to the size that is decoded, lie on the canvas that the caller sees.
struct CanvasLayout {
    let storedWidth: Int
    let storedHeight: Int
    let orientation: Orientation

    init(storedWidth: Int, storedHeight: Int, orientation: Orientation) {
        self.storedWidth = storedWidth
        self.storedHeight = storedHeight
        self.orientation = orientation
    }

    /// For a picture of that size in the file, made smaller as the options say. Their box is one for the turned picture.
    init(width: Int, height: Int, orientation: Orientation, frames: Int = 1, _ options: DecodeOptions) {
        let swaps = orientation.swapsAxes
        let shown = OutputSize(width: swaps ? height : width, height: swaps ? width : height, frames: frames, options)
        self.init(
            storedWidth: swaps ? shown.height : shown.width, storedHeight: swaps ? shown.width : shown.height,
            orientation: orientation)
    }

    /// Whether a picture of that size in the file becomes smaller.
    func isScaled(width: Int, height: Int) -> Bool { width != storedWidth || height != storedHeight }

    var width: Int { orientation.swapsAxes ? storedHeight : storedWidth }
    var height: Int { orientation.swapsAxes ? storedWidth : storedHeight }

    func placement(
        on canvas: PixelBuffer, _ conversion: ColourConversion?, _ clock: DecodeClock?
    ) -> codec_placement {
        let pixel = canvas.format.bytesPerPixel
        let row = canvas.stride
        let right = (canvas.width - 1) * pixel
        let bottom = (canvas.height - 1) * row
        let (offset, stepX, stepY) =
            switch orientation {
            case .upright: (0, pixel, row)
            case .mirrored: (right, -pixel, row)
            case .upsideDown: (right + bottom, -pixel, -row)
            case .flipped: (bottom, pixel, -row)
            case .transposed: (0, row, pixel)
            case .turnedRight: (right, row, -pixel)
            case .transversed: (right + bottom, -row, -pixel)
            case .turnedLeft: (bottom, -row, pixel)
            }
        let origin = canvas.bytes.advanced(by: offset).assumingMemoryBound(to: UInt8.self)
        return codec_placement(
            origin: origin, step_x: stepX, step_y: stepY, pixel: canvas.format.codecPixel, colour: conversion?.session,
            stop: clock?.session)
    }

    /// The part of the canvas that the first rows of the stored picture cover.
    func rectangle(ofRows rows: Int) -> PixelRectangle {
        switch orientation {
        case .upright, .mirrored: PixelRectangle(x: 0, y: 0, width: width, height: rows)
        case .upsideDown, .flipped: PixelRectangle(x: 0, y: height - rows, width: width, height: rows)
        case .transposed, .turnedLeft: PixelRectangle(x: 0, y: 0, width: rows, height: height)
        case .turnedRight, .transversed: PixelRectangle(x: width - rows, y: 0, width: rows, height: height)
        }
    }
}
