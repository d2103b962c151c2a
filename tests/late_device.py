"""A simulated device that does all work as late as allowed, in random order, to detect missing waits."""

import random


class Device:
    """Streams whose work is done later, in a random order that their events allow."""

    def __init__(self, seed):
        self.chance, self.streams, self.inside = random.Random(seed), [], 0

    def stream(self):
        self.streams.append(LateStream(self))
        return self.streams[-1]

    def run(self, until):
        """Do work of randomly chosen streams while `until()` is true."""
        while until():
            able = [stream for stream in self.streams if stream.able()]
            assert able, "streams wait for each other"
            self.chance.choice(able).step()


class LateStream:
    def __init__(self, device):
        self.device, self.work, self.done = device, [], 0

    def able(self):
        return self.done < len(self.work) and self.work[self.done][0]()

    def step(self):
        self.done += 1
        self.work[self.done - 1][1]()

    def do(self, work, when=lambda: True):
        self.work.append((when, work))

    def event(self, timing=False):
        return LateEvent(self, len(self.work))

    def wait(self, event):
        self.do(lambda: None, lambda: event.stream.done >= event.place)

    def copy_in(self, array, at, source):
        self.do(lambda: array.__setitem__(slice(at, at + source.size), source))

    def copy_out(self, array, at, target):
        self.do(lambda: target.__setitem__(slice(None), array[at : at + target.size]))


class LateEvent:
    def __init__(self, stream, place):
        self.stream, self.place = stream, place

    def query(self):
        if self.stream.device.chance.random() < 0.5 and self.stream.able():
            self.stream.step()
        return self.stream.done >= self.place

    def synchronize(self):
        self.stream.device.run(lambda: self.stream.done < self.place)
