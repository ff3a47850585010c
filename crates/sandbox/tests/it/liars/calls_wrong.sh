#!/bin/sh
# Calls a function that its module does not have.
read -r room; read -r job; printf '{"Import":{"specifier":"mcp-clients/tools"}}\n'; read -r module; printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"steal","arguments":{}}}\n'; read -r more
