//! Other servers, through ours: what an agent finds, what it may call, and what it hears of them. The others are real: a
//! server over HTTP in this process, which says what it saw, our own program over standard input and output, and a script.

mod asking;
mod calling;
mod code;
mod confirming;
mod finding;
mod following;
mod hosting;
mod house;
mod parties;
mod registry;
mod upstream;

pub(super) use house::place;
pub(super) use upstream::Upstream;
