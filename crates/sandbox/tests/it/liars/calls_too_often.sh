#!/bin/sh
# Makes more calls than it may.
read -r room; read -r job; printf '{"Import":{"specifier":"mcp-clients/tools"}}\n'; read -r hold; read -r go_on; read -r module; printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"echo","arguments":{}}}\n'; printf '{"Call":{"id":1,"module":"mcp-clients/tools","function":"echo","arguments":{}}}\n'; read -r a; read -r b; printf '{"Call":{"id":2,"module":"mcp-clients/tools","function":"echo","arguments":{}}}\n'; read -r c
