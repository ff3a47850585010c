#!/bin/sh
# Says what is no message.
read -r room; read -r job; printf 'hello\n'; read -r more
