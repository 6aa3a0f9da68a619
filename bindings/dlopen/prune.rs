//! Prunes with SparseKit through extern "C":
//! rustc --edition 2021 prune.rs && ./prune [libsparsekit.so]
//!
//! SPDX-License-Identifier: Apache-2.0
use std::env;
use std::ffi::{CStr, CString};
use std::mem::{size_of, transmute_copy};
use std::os::raw::{c_char, c_int, c_void};
use std::ptr::{null, null_mut};

const F32: i32 = 0x220;
const LAYOUT_VIEW: i32 = 0;
/// Rows of 8 floats, 10 apart, after one of padding.
const ROWS: usize = 4;
const COLUMNS: usize = 8;
const PITCH: usize = 10;
const OFFSET: usize = 1;

#[repr(C)]
struct Buffer {
    data: *mut c_void,
    numel: i64,
    dtype: i32,
    layout: i32,
    view: *const c_void,
}

#[repr(C)]
#[derive(Default)]
struct Report {
    struct_size: usize,
    total: i64,
    requested: i64,
    achieved: i64,
    ties: i64,
    not_converged: i64,
}

extern "C" {
    fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    fn dlerror() -> *const c_char;
}
const RTLD_NOW: c_int = 2;

/// Handles of the library are plain addresses here.
type Handle = *mut c_void;
type Buffers = *const Buffer;

/// The functions of the library that this program calls, found by name.
struct SparseKit {
    status_string: unsafe extern "C" fn(i32) -> *const c_char,
    last_error_copy: unsafe extern "C" fn(*mut c_char, usize, *mut usize) -> i32,
    live_handles: unsafe extern "C" fn() -> i64,
    view_create: unsafe extern "C" fn(i32, i32, *const i64, *const i64, i64, *mut Handle) -> i32,
    view_release: unsafe extern "C" fn(Handle),
    block_create:
        unsafe extern "C" fn(Handle, i32, *const i64, *const c_char, *mut Handle) -> i32,
    block_release: unsafe extern "C" fn(Handle),
    prune_nm: unsafe extern "C" fn(
        Handle, Handle, Buffers, Buffers, i32, i64, i64, *mut Report,
    ) -> i32,
    soft_threshold: unsafe extern "C" fn(
        Handle, Handle, Buffers, Buffers, i32, Buffers, *const c_void, *mut Report,
    ) -> i32,
}

fn text(pointer: *const c_char) -> String {
    unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned()
}

/// The function of this name. F must be its type.
unsafe fn find<F>(library: *mut c_void, name: &str) -> Result<F, String> {
    let name = CString::new(name).unwrap();
    let symbol = dlsym(library, name.as_ptr());
    if symbol.is_null() {
        return Err(text(dlerror()));
    }
    Ok(transmute_copy(&symbol))
}

impl SparseKit {
    fn open(path: &str) -> Result<SparseKit, String> {
        let path = CString::new(path).map_err(|error| error.to_string())?;
        unsafe {
            let library = dlopen(path.as_ptr(), RTLD_NOW);
            if library.is_null() {
                return Err(text(dlerror()));
            }
            Ok(SparseKit {
                status_string: find(library, "spk_status_string")?,
                last_error_copy: find(library, "spk_last_error_copy")?,
                live_handles: find(library, "spk_live_handles")?,
                view_create: find(library, "spk_view_create")?,
                view_release: find(library, "spk_view_release")?,
                block_create: find(library, "spk_block_create")?,
                block_release: find(library, "spk_block_release")?,
                prune_nm: find(library, "spk_prune_nm")?,
                soft_threshold: find(library, "spk_block_soft_threshold")?,
            })
        }
    }

    /// What a failing call says, as an error.
    fn check(&self, status: i32) -> Result<(), String> {
        if status == 0 {
            return Ok(());
        }
        let mut message = [0 as c_char; 512];
        unsafe { (self.last_error_copy)(message.as_mut_ptr(), message.len(), null_mut()) };
        let name = text(unsafe { (self.status_string)(status) });
        Err(format!("{name}: {}", text(message.as_ptr())))
    }
}

/// A view of floats; released when it is dropped. Blocks may outlive it.
struct View<'a> {
    kit: &'a SparseKit,
    handle: Handle,
}

impl<'a> View<'a> {
    fn new(
        kit: &'a SparseKit, shape: &[i64; 2], stride: &[i64; 2], offset: usize,
    ) -> Result<Self, String> {
        let mut handle = null_mut();
        kit.check(unsafe {
            (kit.view_create)(F32, 2, shape.as_ptr(), stride.as_ptr(), offset as i64, &mut handle)
        })?;
        Ok(View { kit, handle })
    }

    /// Prunes to n:m along the rows, in place.
    fn prune_nm(&self, weights: &mut [f32], n: i64, m: i64) -> Result<Report, String> {
        let mut report = new_report();
        let leaf = buffer(weights);
        self.kit.check(unsafe {
            (self.kit.prune_nm)(null_mut(), self.handle, &leaf, null(), 1, n, m, &mut report)
        })?;
        Ok(report)
    }
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        unsafe { (self.kit.view_release)(self.handle) }
    }
}

struct Block<'a> {
    kit: &'a SparseKit,
    handle: Handle,
}

impl<'a> Block<'a> {
    fn new(view: &View<'a>, shape: &[i64; 2], name: &str) -> Result<Self, String> {
        let mut handle = null_mut();
        let name = CString::new(name).map_err(|error| error.to_string())?;
        view.kit.check(unsafe {
            (view.kit.block_create)(view.handle, 2, shape.as_ptr(), name.as_ptr(), &mut handle)
        })?;
        Ok(Block { kit: view.kit, handle })
    }

    /// Group soft thresholding in place, a threshold per block.
    fn soft_threshold(
        &self, weights: &mut [f32], thresholds: &mut [f32],
    ) -> Result<Report, String> {
        let mut report = new_report();
        let leaf = buffer(weights);
        let limits = buffer(thresholds);
        self.kit.check(unsafe {
            (self.kit.soft_threshold)(
                null_mut(), self.handle, &leaf, null(), 1, &limits, null(), &mut report,
            )
        })?;
        Ok(report)
    }
}

impl Drop for Block<'_> {
    fn drop(&mut self) {
        unsafe { (self.kit.block_release)(self.handle) }
    }
}

fn new_report() -> Report {
    Report { struct_size: size_of::<Report>(), ..Default::default() }
}

/// Borrows the slice's memory for the length of a call.
fn buffer(values: &mut [f32]) -> Buffer {
    Buffer {
        data: values.as_mut_ptr().cast(),
        numel: values.len() as i64,
        dtype: F32,
        layout: LAYOUT_VIEW,
        view: null(),
    }
}

/// Of every four in a row the two of largest magnitude; of equal ones the first.
fn expected_2_4(weights: &[f32]) -> Vec<f32> {
    let mut result = weights.to_vec();
    for row in 0..ROWS {
        for column in (0..COLUMNS).step_by(4) {
            let start = OFFSET + row * PITCH + column;
            let mut group: Vec<usize> = (start..start + 4).collect();
            group.sort_by(|&i, &j| weights[j].abs().total_cmp(&weights[i].abs()));
            for &i in &group[2..] {
                result[i] = 0.0;
            }
        }
    }
    result
}

/// Each row w becomes w max(0, 1 - t / ||w||).
fn expected_soft(weights: &[f32], thresholds: &[f32]) -> Vec<f32> {
    let mut result = weights.to_vec();
    for (row, &threshold) in thresholds.iter().enumerate() {
        let elements = &mut result[OFFSET + row * PITCH..][..COLUMNS];
        let norm = elements.iter().map(|&w| f64::from(w).powi(2)).sum::<f64>().sqrt();
        let factor = (1.0 - f64::from(threshold) / norm).max(0.0);
        for w in elements {
            *w = (f64::from(*w) * factor) as f32;
        }
    }
    result
}

fn require_close(got: &[f32], expected: &[f32], what: &str) {
    assert_eq!(got.len(), expected.len());
    for (g, e) in got.iter().zip(expected) {
        assert!((g - e).abs() <= 1e-6 * e.abs(), "{what}: {g} is not {e}");
    }
}

fn main() -> Result<(), String> {
    let path = env::args().nth(1).unwrap_or("libsparsekit.so.0".to_string());
    let kit = SparseKit::open(&path)?;

    // A strided 4 x 8 matrix; the padding around it must stay as it is.
    let mut weights: Vec<f32> =
        (0..ROWS * PITCH).map(|i| ((37 * i % 41) as f32 - 20.0) / 4.0).collect();
    let view = View::new(&kit, &[ROWS as i64, COLUMNS as i64], &[PITCH as i64, 1], OFFSET)?;

    let expected = expected_2_4(&weights);
    let report = view.prune_nm(&mut weights, 2, 4)?;
    assert_eq!(weights, expected);
    println!("2:4: kept {} of {} elements", report.achieved, report.total);

    // Each row is a block with a threshold of its own; the third row dies.
    let mut thresholds = [0.5, 1.0, 100.0, 2.0];
    let expected = expected_soft(&weights, &thresholds);
    let block = Block::new(&view, &[1, COLUMNS as i64], "rows")?;
    let report = block.soft_threshold(&mut weights, &mut thresholds)?;
    require_close(&weights, &expected, "soft threshold");
    assert_eq!((report.total, report.achieved), (ROWS as i64, ROWS as i64 - 1));
    println!("soft threshold: kept {} of {} rows", report.achieved, report.total);

    // Blocks of three columns do not divide rows of eight.
    let error = Block::new(&view, &[1, 3], "odd").err().expect("an error");
    assert!(error.starts_with("SPK_SHAPE_MISMATCH: "), "{error}");
    println!("as it should be: {error}");

    drop(block);
    drop(view);
    assert_eq!(unsafe { (kit.live_handles)() }, 0, "handles are still alive");
    Ok(())
}
