#!/bin/sh
# Has a result that is nested deeper than it may be.
x='[[[[[[[[['; x=$x$x$x$x$x$x$x$x$x$x$x$x; y=']]]]]]]]]'; y=$y$y$y$y$y$y$y$y$y$y$y$y; printf '{"Done":{"Ok":%s%s}}\n' "$x" "$y"; read -r room; read -r job
