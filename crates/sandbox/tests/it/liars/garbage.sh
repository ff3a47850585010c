#!/bin/sh
# Says what is no message.
read -r job; printf 'hello\n'; read -r more
