#!/bin/sh
# Says again and again what it has no bounds for.
while :; do printf '{"Unprotected":"anything"}\n'; done
