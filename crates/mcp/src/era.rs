//! The two eras: with a handshake, and without. A request belongs to one of them, whatever came before.

pub(crate) mod legacy;
pub(crate) mod modern;
