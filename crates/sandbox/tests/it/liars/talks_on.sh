#!/bin/sh
# Goes on after it has ended.
printf '{"Done":{"Ok":5}}\n'; while :; do printf '{"Line":"x"}\n'; done
