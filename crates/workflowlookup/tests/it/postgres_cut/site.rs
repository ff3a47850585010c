//! A server whose sessions are at the other end of a line that can be cut.

use private_postgres::{Cut, Database};

use super::LONG;
use super::client::Client;
use crate::Place;
use crate::http_server::Listening;

pub(super) struct Site {
    pub(super) server: Listening,
    pub(super) client: Client,
    pub(super) cut: Cut,
    pub(super) database: Database,
    pub(super) place: Place,
}

impl Site {
    pub(super) fn new() -> Self {
        Self::serving(&[])
    }

    pub(super) fn serving(options: &[&str]) -> Self {
        let database = Database::create().unwrap();
        let cut = Cut::before(database.address().unwrap()).unwrap();
        let place = Place::storing(database.url_at(cut.address()));
        place.write("workflows/long-one.json", LONG);
        let serve = [&["serve", "--http", "127.0.0.1:0"], options].concat();
        let server = Listening::spawn(place.command(&serve));
        let client = Client::of(server.address);
        client.wait_until_ready();
        Self { server, client, cut, database, place }
    }

    /// How many sessions there are.
    pub(super) fn sessions(&self) -> usize {
        let listed = self.place.run(&["session", "list", "--limit", "1000", "--json"]).json();
        listed["sessions"].as_array().unwrap().len()
    }

    pub(super) fn verify(&self) {
        let verified = self.place.run(&["session", "verify"]);
        assert_eq!(verified.status, 0, "{}", verified.shown());
    }
}
