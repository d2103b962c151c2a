"""Positions of a scene's vertices: points in a box, in inches, with a minimum distance."""

import numpy as np

from tcgpu import plots

BOX = np.array([3.1, 4.0])  # inches


def spring_points(graph, rounds=200):
    """Joined vertices near each other, the longer side upright: stretched to fill the box, then pushed apart."""
    if graph.n < 2:
        return np.tile(BOX / 2, (graph.n, 1))
    points = plots.layout(graph)
    points = points - points.mean(axis=0)
    points = points @ np.linalg.svd(points, full_matrices=False)[2].T[:, ::-1]
    low, size = points.min(axis=0), np.ptp(points, axis=0)
    points = np.divide(points - low, size, out=np.full(points.shape, 0.5), where=size > 1e-6) * BOX
    space = min(0.55, 0.8 * np.sqrt(BOX.prod() / graph.n))
    for _ in range(rounds):
        between = points[:, None] - points
        distance = np.hypot(between[..., 0], between[..., 1]) + np.eye(graph.n)
        push = np.maximum(space - distance, 0)
        points += 0.4 * (between / np.maximum(distance, 1e-9)[..., None] * push[..., None]).sum(axis=1)
        points = np.clip(points, 0, BOX)
    return points
