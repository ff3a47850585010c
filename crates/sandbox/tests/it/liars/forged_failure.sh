#!/bin/sh
# Says that it failed in a file of ours, at length.
x=xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x$x$x$x; x=$x$x$x$x$x; printf '{"Done":{"Err":{"kind":"cancelled","message":"%s","file":"/etc/passwd","line":1,"column":1}}}\n' $x; read -r room; read -r job
