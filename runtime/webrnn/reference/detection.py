"""Ops of object detection: NonMaxSuppression and RoiAlign."""

from __future__ import annotations

import math

import numpy as np

from webrnn.errors import ShapeError, UnsupportedOp

from .arrays import Array, require_rank, require_shape, single, whole_numbers
from .gather_scatter import checked_indices
from .registry import op
from .sizes import check_size


@op("NonMaxSuppression")
def non_max_suppression(
    boxes: Array,
    scores: Array,
    max_output_boxes_per_class: Array | None = None,
    iou_threshold: Array | None = None,
    score_threshold: Array | None = None,
    *,
    center_point_box: int = 0,
) -> Array:
    """boxes is (batch, boxes, 4), scores (batch, classes, boxes); the result rows of (batch, class, box)."""
    require_rank(boxes, 3, "boxes")
    require_rank(scores, 3, "scores")
    if boxes.shape[2] != 4 or scores.shape[0] != boxes.shape[0] or scores.shape[2] != boxes.shape[1]:
        raise ShapeError(f"boxes {list(boxes.shape)} and scores {list(scores.shape)} do not fit")
    limit = 0 if max_output_boxes_per_class is None else single(max_output_boxes_per_class, "the limit")
    overlap = 0.0 if iou_threshold is None else single(iou_threshold, "iou_threshold")
    least = -math.inf if score_threshold is None else single(score_threshold, "score_threshold")
    selected: list[tuple[int, int, int]] = []
    for batch in range(boxes.shape[0]):
        corners = _corners(boxes[batch], center_point_box)
        for category in range(scores.shape[1]):
            kept = _keep_best(corners, scores[batch, category], limit, overlap, least)
            selected.extend((batch, category, box) for box in kept)
    return np.array(selected, np.int64).reshape(-1, 3)


def _corners(boxes: Array, center_point_box: int) -> Array:
    """Boxes as (low, low, high, high)."""
    if center_point_box:
        centre, half = boxes[:, :2], boxes[:, 2:] / 2
        return np.concatenate([centre - half, centre + half], axis=1)
    first, second = boxes[:, :2], boxes[:, 2:]
    return np.concatenate([np.minimum(first, second), np.maximum(first, second)], axis=1)


def _keep_best(corners: Array, scores: Array, limit: int, overlap: float, least: float) -> list[int]:
    kept: list[int] = []
    for box in np.argsort(-scores, kind="stable"):
        if len(kept) >= limit or not scores[box] > least:
            break
        if not np.any(_intersection_over_union(corners[box], corners[kept]) > overlap):
            kept.append(int(box))
    return kept


def _intersection_over_union(box: Array, others: Array) -> Array:
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    shared = np.prod(np.maximum(high - low, 0), axis=1)
    areas = np.prod(box[2:] - box[:2]) + np.prod(others[:, 2:] - others[:, :2], axis=1)
    union = areas - shared
    return np.where(union > 0, shared / np.where(union > 0, union, 1), 0)


@op("RoiAlign")
def roi_align(
    x: Array,
    rois: Array,
    batch_indices: Array,
    *,
    coordinate_transformation_mode: str = "half_pixel",
    mode: str = "avg",
    output_height: int = 1,
    output_width: int = 1,
    sampling_ratio: int = 0,
    spatial_scale: float = 1.0,
) -> Array:
    """rois is (regions, 4) of (x1, y1, x2, y2). In mode max the weighted corners compete, as ONNX defines it."""
    require_rank(x, 4, "X")
    require_rank(rois, 2, "rois")
    require_shape(batch_indices, rois.shape[:1], "batch_indices")
    if coordinate_transformation_mode not in ("half_pixel", "output_half_pixel"):
        raise UnsupportedOp(
            f"{coordinate_transformation_mode!r} is not supported", attribute="coordinate_transformation_mode"
        )
    if mode not in ("avg", "max"):
        raise UnsupportedOp(f"{mode!r} is neither avg nor max", attribute="mode")
    half_pixel = coordinate_transformation_mode == "half_pixel"
    images = checked_indices(batch_indices, x.shape[0], "batch_indices")
    shape = check_size((len(rois), x.shape[1], output_height, output_width), x.dtype)
    y = np.empty(shape, x.dtype)
    for i, (image, roi) in enumerate(zip(images, rois.astype(np.float64), strict=True)):
        left, top, right, bottom = roi * spatial_scale - (0.5 if half_pixel else 0)
        rows = _bin_samples(top, bottom, output_height, sampling_ratio, half_pixel)
        columns = _bin_samples(left, right, output_width, sampling_ratio, half_pixel)
        y[i] = _pool_region(x[image].astype(np.float64), rows, columns, mode)
    return y


def _bin_samples(start: float, end: float, bins: int, sampling_ratio: int, half_pixel: bool) -> Array:
    """The sampling positions of each bin on one axis, as (bins, samples)."""
    length = end - start if half_pixel else max(end - start, 1.0)
    size = length / bins
    count = sampling_ratio if sampling_ratio > 0 else math.ceil(size) if size > 0 else 0
    check_size((bins, count), np.float64)
    return start + (np.arange(bins)[:, None] + (np.arange(count) + 0.5) / max(count, 1)) * size


def _pool_region(image: Array, rows: Array, columns: Array, mode: str) -> Array:
    row_taps, row_weights = _linear_taps(rows, image.shape[1])
    column_taps, column_weights = _linear_taps(columns, image.shape[2])
    # (channels, row bins, row samples, row corner, column bins, column samples, column corner)
    check_size((image.shape[0], row_taps.size, column_taps.size), np.float64)
    values = image[:, row_taps[..., None, None, None], column_taps]
    weighted = values * row_weights[..., None, None, None] * column_weights
    if mode == "max":
        return weighted.max(axis=(2, 3, 5, 6), initial=-np.inf if weighted.size else 0)
    return weighted.sum(axis=(2, 3, 5, 6)) / max(rows.shape[1] * columns.shape[1], 1)


def _linear_taps(position: Array, length: int) -> tuple[Array, Array]:
    """The two neighbours of each position and their weights; 0 for what is more than a pixel outside."""
    outside = (position < -1) | (position > length)
    low = whole_numbers(np.floor(np.clip(position, 0, None))).clip(0, None)
    at_end = low >= length - 1
    low = np.where(at_end, length - 1, low)
    fraction = np.where(at_end, 0, np.clip(position, 0, None) - low)
    taps = np.stack([low, np.minimum(low + 1, length - 1)], axis=-1)
    return taps, np.stack([1 - fraction, fraction], axis=-1) * ~outside[..., None]
