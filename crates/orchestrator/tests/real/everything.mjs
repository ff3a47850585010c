// The reference server over HTTP, on a free port of this machine only: on its own it listens to everybody, on one that
// was chosen before. It says `port`, and the number.
//
//     node everything.mjs node_modules/@modelcontextprotocol/server-everything/dist/index.js

import { Server } from "node:net";
import { pathToFileURL } from "node:url";

const listen = Server.prototype.listen;
Server.prototype.listen = function () {
  return listen.call(this, { host: "127.0.0.1", port: 0 }, function () {
    console.log(`port ${this.address().port}`);
  });
};

const [, , server] = process.argv;
process.argv = [process.argv[0], server, "streamableHttp"];
await import(pathToFileURL(server));
