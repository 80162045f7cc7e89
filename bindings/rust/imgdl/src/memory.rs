//! Pixels in memory of the caller's: an allocator, and `decode_into`.

use std::os::raw::c_void;
use std::ptr::{self, NonNull};
use std::sync::Mutex;

use imgdl_sys as sys;

use crate::decode::{decoded, DecodeOptions};
use crate::error::{Code, Error, Result};
use crate::format::{Format, PixelFormat};
use crate::guard::contained;
use crate::image::Image;

/// What a canvas has to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct CanvasSize {
    /// In pixels.
    pub width: u32,
    /// In pixels.
    pub height: u32,
    /// 3, 4 or 8.
    pub bytes_per_pixel: u32,
}

/// Gives memory for canvases, such as that of textures, so that no pixel is copied: see
/// [`DecodeOptions::allocator`](crate::DecodeOptions::allocator). It is called on threads of the library, for several
/// pictures at the same time; one that panics gives no memory.
///
/// # Safety
/// What [`allocate`](Allocator::allocate) gives has stride × height initialised bytes, is nobody else's, and stays until
/// [`deallocate`](Allocator::deallocate) gets it.
pub unsafe trait Allocator: Send + Sync + 'static {
    /// Memory for a canvas: of a picture, a frame, or partial images. `stride` is the bytes of a row, which may be made
    /// more. None: [`Code::OUT_OF_MEMORY`].
    fn allocate(&self, size: CanvasSize, stride: &mut usize) -> Option<NonNull<u8>>;

    /// The last image on that canvas is gone, or decoding failed.
    ///
    /// # Safety
    /// Of what `allocate` gave, once.
    unsafe fn deallocate(&self, pixels: NonNull<u8>);
}

/// An allocator as C knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AllocatorTicket {
    allocate: sys::imgdl_allocate,
    deallocate: sys::imgdl_deallocate,
    user_data: *mut c_void,
}

// SAFETY: it points to a static allocator, or to one that outlives the ticket, and these are Sync.
unsafe impl Send for AllocatorTicket {}
// SAFETY: as for Send.
unsafe impl Sync for AllocatorTicket {}

impl AllocatorTicket {
    pub(crate) fn new<A: Allocator>(allocator: &'static A) -> AllocatorTicket {
        // SAFETY: static.
        unsafe { AllocatorTicket::borrowing(allocator) }
    }

    /// # Safety
    /// The allocator lives as long as the ticket and what is decoded with it.
    unsafe fn borrowing<A: Canvases>(allocator: &A) -> AllocatorTicket {
        AllocatorTicket {
            allocate: Some(allocate::<A>),
            deallocate: Some(deallocate::<A>),
            user_data: allocator as *const A as *mut c_void,
        }
    }

    pub(crate) fn write(self, raw: &mut sys::imgdl_decode_options) {
        (raw.allocate, raw.deallocate) = (self.allocate, self.deallocate);
        raw.allocator_user_data = self.user_data;
    }
}

/// What `Allocator` is, without the promise that it is for ever.
trait Canvases: Sync {
    fn give(&self, size: CanvasSize, stride: &mut usize) -> Option<NonNull<u8>>;

    /// # Safety
    /// Of what `give` gave, once.
    unsafe fn take_back(&self, pixels: NonNull<u8>);
}

impl<A: Allocator> Canvases for A {
    fn give(&self, size: CanvasSize, stride: &mut usize) -> Option<NonNull<u8>> {
        self.allocate(size, stride)
    }

    unsafe fn take_back(&self, pixels: NonNull<u8>) {
        // SAFETY: as for this.
        unsafe { self.deallocate(pixels) }
    }
}

// SAFETY of both: called by the library as the header says, with what `AllocatorTicket` has written.

unsafe extern "C" fn allocate<A: Canvases>(
    width: u32,
    height: u32,
    bytes_per_pixel: u32,
    stride: *mut usize,
    user_data: *mut c_void,
) -> *mut c_void {
    let size = CanvasSize { width, height, bytes_per_pixel };
    // SAFETY: as above.
    let given = contained(|| unsafe { (*user_data.cast::<A>()).give(size, &mut *stride) });
    given.flatten().map_or(ptr::null_mut(), |pixels| pixels.as_ptr().cast())
}

unsafe extern "C" fn deallocate<A: Canvases>(pixels: *mut c_void, user_data: *mut c_void) {
    if let Some(pixels) = NonNull::new(pixels.cast()) {
        // SAFETY: as above.
        contained(|| unsafe { (*user_data.cast::<A>()).take_back(pixels) });
    }
}

/// A picture that [`decode_into`] has put where it was wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Placed {
    /// In pixels, orientation applied.
    pub width: u32,
    /// In pixels, orientation applied.
    pub height: u32,
    /// What the file is.
    pub format: Format,
    /// How its pixels lie in memory.
    pub pixel_format: PixelFormat,
    /// The EXIF orientation as stored in the file, 1 to 8.
    pub orientation: u32,
    /// Frames in the file; the pixels are the first's.
    pub frame_count: u32,
}

/// Decodes a whole picture into memory of yours: its rows lie `stride` bytes apart, what is between them is not
/// touched, and the last one may end where its pixels do. A picture that has no room there, or whose rows are longer
/// than `stride`, is [`Code::INVALID_ARGUMENT`].
///
/// Without [an allocator](crate::DecodeOptions::allocator) in the options. Where they
/// [salvage](crate::DecodeOptions::salvage), what could be had of a broken picture may be in there when an error is
/// returned, and goes with it no more.
///
/// ```
/// # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/doc/offline.rs"));
/// use imgdl::{DecodeOptions, PixelFormat};
/// # fn main() -> Result<(), imgdl::Error> {
/// # let _folder = Folder::with(&["picture.jpg"]);
/// let mut texture = vec![0; 512 * 512 * 4];
/// let options = DecodeOptions::new().fit(512, 512).pixel_format(PixelFormat::Bgra8Premultiplied);
/// let placed = imgdl::decode_into(&std::fs::read("picture.jpg").unwrap(), &options, &mut texture, 4 * 512)?;
/// println!("{} × {}", placed.width, placed.height);
/// # Ok(())
/// # }
/// ```
pub fn decode_into(bytes: &[u8], options: &DecodeOptions, pixels: &mut [u8], stride: usize) -> Result<Placed> {
    let place = Place::new(pixels, stride);
    let mut raw = options.to_raw();
    if raw.allocate.is_some() {
        return Err(Error::new(Code::INVALID_ARGUMENT, "the options have an allocator".into()));
    }
    // SAFETY: every image on it is gone at the end of this function.
    unsafe { AllocatorTicket::borrowing(&place) }.write(&mut raw);
    let mut image = ptr::null_mut();
    // SAFETY: "length bytes, read before return".
    let status = unsafe { sys::imgdl_decode(bytes.as_ptr().cast(), bytes.len(), &raw, &mut image) };
    let result = decoded(status, image).map_err(|error| error.with_image(None));
    if let Some(refusal) = place.refusal() {
        return Err(refusal);
    }
    let image = result?;
    place.take(&image)?;
    Ok(Placed {
        width: image.width(),
        height: image.height(),
        format: image.format(),
        pixel_format: image.pixel_format(),
        orientation: image.orientation(),
        frame_count: image.frame_count(),
    })
}

/// A slice that is lent, and how rows lie in it.
struct Place {
    start: NonNull<u8>,
    length: usize,
    stride: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_used: bool,
    /// Canvases that the picture is not given on.
    others: Vec<Box<[u8]>>,
    refusal: Option<String>,
}

// SAFETY: the slice is not looked at by two at the same time: `State::is_used`.
unsafe impl Sync for Place {}

impl Place {
    /// The slice is the caller's until this is gone.
    fn new(pixels: &mut [u8], stride: usize) -> Place {
        let start = NonNull::from(&mut *pixels).cast();
        Place { start, length: pixels.len(), stride, state: Mutex::default() }
    }

    fn fits(&self, row: usize, height: usize) -> bool {
        let last = self.stride.checked_mul(height.saturating_sub(1));
        let end = last.and_then(|last| last.checked_add(row));
        row <= self.stride && end.map_or(false, |end| end <= self.length)
    }

    fn misfit(&self, row: usize, height: usize) -> String {
        let (length, stride) = (self.length, self.stride);
        format!("the picture has {height} rows of {row} bytes, and there are {length} with {stride} to a row")
    }

    fn refusal(&self) -> Option<Error> {
        let state = self.state.lock().unwrap();
        state.refusal.as_ref().map(|words| Error::new(Code::INVALID_ARGUMENT, words.clone()))
    }

    /// Copies the picture here unless it is here: of the canvases that were wanted the first need not be its.
    fn take(&self, image: &Image) -> Result<()> {
        if image.start() == self.start.as_ptr() {
            return Ok(());
        }
        let row = image.width() as usize * image.pixel_format().bytes_per_pixel();
        if !self.fits(row, image.height() as usize) {
            return Err(Error::new(Code::INVALID_ARGUMENT, self.misfit(row, image.height() as usize)));
        }
        for (index, from) in image.rows().enumerate() {
            // SAFETY: it fits, and no canvas of the library's is here: the picture's is elsewhere.
            unsafe { ptr::copy_nonoverlapping(from.as_ptr(), self.start.as_ptr().add(index * self.stride), row) };
        }
        Ok(())
    }
}

impl Canvases for Place {
    fn give(&self, size: CanvasSize, stride: &mut usize) -> Option<NonNull<u8>> {
        let (width, height) = (size.width as usize, size.height as usize);
        let pixel = size.bytes_per_pixel as usize;
        let mut state = self.state.lock().unwrap();
        if !state.is_used && self.fits(width * pixel, height) {
            state.is_used = true;
            *stride = self.stride;
            return Some(self.start);
        }
        // A picture that is turned in the end may want another canvas first.
        if !self.fits(width * pixel, height) && !self.fits(height * pixel, width) {
            state.refusal = Some(self.misfit(width * pixel, height));
            return None;
        }
        state.others.push(vec![0; width * height * pixel].into_boxed_slice());
        state.others.last_mut().map(|canvas| NonNull::from(&mut **canvas).cast())
    }

    unsafe fn take_back(&self, pixels: NonNull<u8>) {
        let mut state = self.state.lock().unwrap();
        if pixels == self.start {
            state.is_used = false;
        } else {
            state.others.retain(|canvas| canvas.as_ptr() != pixels.as_ptr());
        }
    }
}
