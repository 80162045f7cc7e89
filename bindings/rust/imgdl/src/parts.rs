//! What an image is made of: its rows, and the frames of an animation.

use std::iter::FusedIterator;
use std::time::Duration;

use crate::format::Rectangle;
use crate::image::Image;

/// The rows of an image that are ready: see [`Image::rows`].
#[derive(Clone, Debug)]
pub struct Rows<'a> {
    image: &'a Image,
    ready: Rectangle,
    stride: usize,
    pixel: usize,
    next: u32,
}

impl<'a> Rows<'a> {
    pub(crate) fn new(image: &'a Image) -> Rows<'a> {
        let pixel = image.pixel_format().bytes_per_pixel();
        Rows { image, ready: image.ready(), stride: image.stride(), pixel, next: 0 }
    }
}

impl<'a> Iterator for Rows<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.next == self.ready.height {
            return None;
        }
        let row = self.ready.y as usize + self.next as usize;
        self.next += 1;
        let start = row * self.stride + self.ready.x as usize * self.pixel;
        // SAFETY: inside of `ready`: "Copy or upload this rectangle only".
        Some(unsafe { self.image.slice(start, self.ready.width as usize * self.pixel) })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = (self.ready.height - self.next) as usize;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Rows<'_> {}

/// One frame of an animation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Frame {
    /// As the viewer sees it.
    pub image: Image,
    /// How long it is shown.
    pub duration: Duration,
}

/// The frames of an image: see [`Image::frames`].
#[derive(Clone, Debug)]
pub struct Frames<'a> {
    image: &'a Image,
    next: u32,
    count: u32,
}

impl<'a> Frames<'a> {
    pub(crate) fn new(image: &'a Image) -> Frames<'a> {
        Frames { image, next: 0, count: image.frame_count() }
    }
}

impl Iterator for Frames<'_> {
    type Item = Frame;

    fn next(&mut self) -> Option<Frame> {
        if self.next == self.count {
            return None;
        }
        let index = self.next;
        match self.image.frame(index) {
            Ok(image) => {
                self.next += 1;
                Some(Frame { image, duration: self.image.frame_duration(index) })
            }
            // None after it was decoded either.
            Err(_) => {
                self.next = self.count;
                None
            }
        }
    }
}

impl FusedIterator for Frames<'_> {}
