#!/bin/sh
# Begins a line that never ends.
x=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x; printf '{"Line":"'; while :; do printf '%s' $x; done
