#!/usr/bin/python3
"""Runs a program on a terminal of 24 rows, types keys once it has drawn, and prints what it drew;
whether the terminal is as it was goes to standard error. in_terminal.py KEYS PROGRAM WORD..."""

import fcntl
import os
import pty
import struct
import sys
import termios


def main():
    keys, program = sys.argv[1], sys.argv[2:]
    child, terminal = pty.fork()
    if child == 0:
        os.execvpe(program[0], program, {**os.environ, "TERM": "xterm"})
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(terminal)
    drawn = b""
    while True:
        try:
            drawn += os.read(terminal, 65536)
        except OSError:  # it has ended
            break
        if keys and b"\x1b[?7h" in drawn:
            os.write(terminal, keys.encode())
            keys = ""
    status = os.waitpid(child, 0)[1]
    print(drawn.decode(), end="")
    same = termios.tcgetattr(terminal) == before
    print("the terminal is", "as it was" if same else "another", file=sys.stderr)
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
