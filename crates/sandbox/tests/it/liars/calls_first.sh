#!/bin/sh
# Calls what it has not imported.
printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"echo","arguments":{}}}\n'; read -r room; read -r job; read -r more
