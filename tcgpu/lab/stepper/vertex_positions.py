"""Where a scene's vertices are drawn: points in a box of the picture, in inches, none too near to another one."""

import numpy as np

from tcgpu.lab import plots

BOX = 3.1, 4.0  # inches
BESIDE = 0.33  # from one vertex without neighbours to the next


def springs(graph):
    """Joined vertices near each other, the longer side upright; below them in lines those without neighbours."""
    points = np.zeros((graph.n, 2))
    joined, alone = np.flatnonzero(graph.degrees), np.flatnonzero(graph.degrees == 0)
    per_line = int(BOX[0] / BESIDE)
    lines = -(-alone.size // per_line)
    line, place = np.divmod(np.arange(alone.size), per_line)
    points[alone] = np.stack([place * BESIDE, (lines - 1 - line) * BESIDE], axis=1)
    if joined.size:
        upright = plots.layout(graph)[joined]
        upright = upright - upright.mean(axis=0)
        upright = upright @ np.linalg.svd(upright, full_matrices=False)[2].T[:, ::-1]
        low = lines * (BESIDE + 0.05)
        points[joined] = apart(filling(upright, BOX[0], BOX[1] - low), BOX[0], BOX[1] - low) + [0, low]
    return points


def filling(points, width, height):
    """The points stretched to fill a box; those in a line lie in its middle."""
    low, high = points.min(axis=0), points.max(axis=0)
    size = high - low
    inside = np.divide(points - low, size, out=np.full(points.shape, 0.5), where=size > 1e-6)
    return inside * [width, height]


def apart(points, width, height, rounds=200):
    """The points pushed apart until each has some room of its own, inside the box."""
    room = min(0.55, 0.8 * np.sqrt(width * height / max(len(points), 1)))
    for _ in range(rounds):
        between = points[:, None] - points
        distance = np.hypot(between[..., 0], between[..., 1]) + np.eye(len(points))
        push = np.maximum(room - distance, 0) * (1 - np.eye(len(points)))
        if push.max(initial=0) < 1e-3:
            break
        points = points + 0.4 * (between / np.maximum(distance, 1e-9)[..., None] * push[..., None]).sum(axis=1)
        points = np.clip(points, 0, [width, height])
    return points
