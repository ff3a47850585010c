#!/bin/sh
# Has a result that is larger than it may be.
x=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x$x; printf '{"Done":{"Ok":"%s"}}\n' $x; read -r room; read -r job
