#!/bin/sh
# Makes the same call twice.
read -r room; read -r job; printf '{"Import":{"specifier":"mcp-clients/tools"}}\n'; read -r hold; read -r go_on; read -r module; printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"echo","arguments":{}}}\n'; read -r answer; printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"echo","arguments":{}}}\n'; read -r more
