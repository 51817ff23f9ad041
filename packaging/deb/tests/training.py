"""A training job: steps of gradient descent that wait for their input, an evaluation that uses
24 MiB, and a checkpoint, some seconds each, forever.

It computes for a time and not for an amount. So even on slow machines it never uses as much as it
may, because then its limits would not be lowered.
"""
import mmap
import time

import numpy

numbers = numpy.random.default_rng(1)
inputs = numbers.standard_normal((64, 32))
targets = numpy.sin(inputs @ numbers.standard_normal((32, 1)))
hidden = numbers.standard_normal((32, 16)) / 8
output = numbers.standard_normal((16, 1)) / 4


def step():
    """One step of gradient descent on the mean square error; returns that error."""
    global hidden, output
    activity = numpy.tanh(inputs @ hidden)
    error = activity @ output - targets
    back = error @ output.T * (1 - activity**2)
    output = output - 0.01 * activity.T @ error / len(inputs)
    hidden = hidden - 0.01 * inputs.T @ back / len(inputs)
    return float((error**2).mean())


while True:
    for _ in range(16):
        until = time.process_time() + 0.05
        while time.process_time() < until:
            loss = step()
        time.sleep(0.25)
    # Not from malloc, which keeps such a block from the second time on.
    held = numpy.frombuffer(mmap.mmap(-1, 24 << 20))
    held[:] = 1
    time.sleep(4)
    del held
    numpy.savez("/hold/checkpoint", hidden=hidden, output=output, loss=loss)
    time.sleep(4)
