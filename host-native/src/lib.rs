//! Sidetone on a box.
