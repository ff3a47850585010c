#!/bin/sh
# Never says anything, and never stops.
while :; do :; done
