#!/bin/sh
# A line that is longer than a line can be.
x=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x; printf '{"Line":"%s"}\n{"Done":{"Ok":null}}\n' $x
