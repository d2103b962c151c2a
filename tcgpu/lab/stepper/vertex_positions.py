"""Where the vertices of a scene are drawn: points in a box, in inches, none too near to another."""

import numpy as np

from tcgpu.lab import plots

BOX = 3.1, 4.0  # inches
SPACING = 0.33  # inches between two vertices without neighbours


def spring_points(graph):
    """Joined vertices near each other, the longer side upright; below them, in lines, those without neighbours."""
    points = np.zeros((graph.n, 2))
    joined, alone = np.flatnonzero(graph.degrees), np.flatnonzero(graph.degrees == 0)
    per_line = int(BOX[0] / SPACING)
    lines = -(-alone.size // per_line)
    line, k = np.divmod(np.arange(alone.size), per_line)
    points[alone] = np.stack([k * SPACING, (lines - 1 - line) * SPACING], axis=1)
    if joined.size:
        upright = plots.layout(graph)[joined]
        upright = upright - upright.mean(axis=0)
        upright = upright @ np.linalg.svd(upright, full_matrices=False)[2].T[:, ::-1]
        bottom = lines * (SPACING + 0.05)
        points[joined] = push_apart(upright, BOX[0], BOX[1] - bottom) + [0, bottom]
    return points


def push_apart(points, width, height, rounds=200):
    """The points stretched to fill a box, then pushed apart until each has some space; a line of points is centred."""
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    points = np.divide(points - low, size, out=np.full(points.shape, 0.5), where=size > 1e-6) * [width, height]
    space = min(0.55, 0.8 * np.sqrt(width * height / max(len(points), 1)))
    for _ in range(rounds):
        between = points[:, None] - points
        distance = np.hypot(between[..., 0], between[..., 1]) + np.eye(len(points))
        push = np.maximum(space - distance, 0) * (1 - np.eye(len(points)))
        if push.max(initial=0) < 1e-3:
            break
        points = points + 0.4 * (between / np.maximum(distance, 1e-9)[..., None] * push[..., None]).sum(axis=1)
        points = np.clip(points, 0, [width, height])
    return points
