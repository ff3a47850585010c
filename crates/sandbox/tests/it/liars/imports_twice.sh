#!/bin/sh
# Asks for a module before it has heard of the one before.
read -r room; read -r job; printf '{"Import":{"specifier":"mcp-clients/late"}}\n{"Import":{"specifier":"mcp-clients/other"}}\n'; read -r a; read -r b; read -r c
