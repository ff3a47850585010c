//! The server that the official conformance suite drives: everything that it calls, on our own protocol and transport.
//! Nothing here is of any use to anybody else. `--port 3000` or an address says where to listen; without either, the
//! system chooses.

mod fixture;
mod prompts;
mod resources;
mod samples;
mod state;
mod tools;

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};

use tokio::net::TcpListener;
use transport::{Feed, Options, Service};

use fixture::Fixture;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "whoever starts it has to learn the address")]
async fn main() -> Result<(), Box<dyn Error>> {
    let listener = TcpListener::bind(address(std::env::args().skip(1))?).await?;
    let mut key = [0; 32];
    getrandom::fill(&mut key)?;
    let feed = Feed::default();
    let fixture = Fixture::new(key, feed.clone());
    let service = Service::new(fixture, Options { key, ..Options::default() }, feed)?;
    println!("listening on http://{}/mcp", listener.local_addr()?);
    transport::serve(service, listener, std::future::pending()).await;
    Ok(())
}

fn address(mut arguments: impl Iterator<Item = String>) -> Result<SocketAddr, Box<dyn Error>> {
    let local = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    match (arguments.next(), arguments.next()) {
        (None, _) => Ok(local(0)),
        (Some(name), Some(port)) if name == "--port" => Ok(local(port.parse()?)),
        (Some(address), None) => Ok(address.parse()?),
        _ => Err("usage: conformance [--port PORT | ADDRESS]".into()),
    }
}
