//! Several servers that share a PostgreSQL are one server to their clients, as those are that share a file.

mod live;
mod stranger;
mod survival;
