#!/bin/sh
# Writes more lines than it may.
while :; do printf '{"Line":"x"}\n'; done
