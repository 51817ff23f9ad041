#!/usr/bin/python3
"""Runs a program on a terminal of 24 rows and prints what it draws. After the first drawing it ends
the program by keys or by a signal (TERM). Standard error says whether keys were read as they were
pressed, and whether the terminal was restored. in_terminal.py KEYS PROGRAM WORD..."""

import fcntl
import os
import pty
import signal
import struct
import sys
import termios


def start(program, terminal):
    child = os.fork()
    if child == 0:
        os.setsid()
        fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
        for stream in (0, 1, 2):
            os.dup2(terminal, stream)
        os.execvpe(program[0], program, {**os.environ, "TERM": "xterm"})
    return child


def main():
    end, program = sys.argv[1], sys.argv[2:]
    signal.alarm(60)
    screen, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    before = termios.tcgetattr(terminal)
    child = start(program, terminal)
    drawn, status, ended = b"", None, False
    os.set_blocking(screen, False)
    while status is None:
        pid, code = os.waitpid(child, os.WNOHANG)
        status = code if pid else None
        try:
            drawn += os.read(screen, 65536)
        except BlockingIOError:
            signal.sigtimedwait([], 0.01)
        if not ended and b"\x1b[?7h" in drawn:
            ended = True
            raw = not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON)
            print("keys", "as they are pressed" if raw else "line by line", file=sys.stderr)
            if end == "TERM":
                os.kill(child, signal.SIGTERM)
            else:
                os.write(screen, end.encode())
    print(drawn.decode(), end="")
    same = termios.tcgetattr(terminal) == before
    print("the terminal is", "as it was" if same else "another", file=sys.stderr)
    sys.exit(128 + os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status))


if __name__ == "__main__":
    main()
