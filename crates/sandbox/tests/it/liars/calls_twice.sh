#!/bin/sh
# Makes the same call twice.
read -r job; printf '{"Import":{"specifier":"mcp-clients/tools"}}\n'; read -r module; printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"never","arguments":{}}}\n'; printf '{"Call":{"id":0,"module":"mcp-clients/tools","function":"never","arguments":{}}}\n'; read -r more
