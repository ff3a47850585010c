#!/bin/sh
# Calls with something that is no object.
read -r room; read -r job; printf '{"Import":{"specifier":"mcp-clients/tools"}}\n'; read -r module; printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"echo","arguments":[]}}\n'; read -r more
