//! `builtin/rules` (in progress)
