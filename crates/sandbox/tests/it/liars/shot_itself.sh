#!/bin/sh
# Breaks.
kill -SEGV $$
