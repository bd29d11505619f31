"""Locating points in a rectilinear grid, and multilinear interpolation there.

Values are held in a padded array: every periodic axis has one ghost node behind its last, a copy of
its first, so that the 2^d corners of any cell lie at constant offsets from its lowest corner.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types, uint64
from numba.extending import intrinsic
from numpy.typing import NDArray

from optimist.arrays import FloatArray, IntArray


@njit(nogil=True, cache=True)
def locate(
    points: FloatArray,  # [n, d]
    nodes: FloatArray,  # the axes one after another, periodic ones with their ghost
    axis_starts: IntArray,  # [d + 1] into `nodes`
    periods: FloatArray,  # [d], 0 on axes that are not periodic
    inverse_spacings: FloatArray,  # [d], 0 on axes that are not uniform
    strides: IntArray,  # [d] of the padded array
    cells: NDArray[np.int32],  # out [n]: padded index of the lowest corner
    fractions: FloatArray,  # out [n, d] in [0, 1]
) -> int:
    """Cell and fractions of every point; points outside are clipped. Returns how many were."""
    n_clipped = 0
    there = np.empty(points.shape[1])
    for k in range(points.shape[0]):
        cell, clipped = _locate_one(points, k, nodes, axis_starts, periods, inverse_spacings, strides, there)
        cells[k] = cell
        for q in range(there.size):
            fractions[k, q] = there[q]
        n_clipped += clipped
    return n_clipped


@njit(nogil=True, cache=True)
def _locate_one(points, k, nodes, axis_starts, periods, inverse_spacings, strides, fractions):
    """The same for one point: its cell, and whether it was clipped.

    `points[k]` would be an array of its own: counting who refers to it takes longer than all of this.
    """
    cell = 0
    clipped = False
    for q in range(points.shape[1]):
        start = axis_starts[q]
        last_cell = axis_starts[q + 1] - start - 2
        first, last = nodes[start], nodes[start + last_cell + 1]
        x = points[k, q]
        if periods[q] > 0.0:
            x -= np.floor((x - first) / periods[q]) * periods[q]
        elif x < first or x > last:
            clipped = True
        x = min(max(x, first), last)
        if inverse_spacings[q] > 0.0:
            index = min(int((x - first) * inverse_spacings[q]), last_cell)
        else:
            index = 0
            above = last_cell + 1
            while above - index > 1:
                middle = (index + above) // 2
                if nodes[start + middle] <= x:
                    index = middle
                else:
                    above = middle
        left = nodes[start + index]
        fraction = (x - left) / (nodes[start + index + 1] - left)
        fractions[q] = min(max(fraction, 0.0), 1.0)
        cell += index * strides[q]
    return cell, clipped


# Multilinear interpolation of the padded array, as LLVM instructions on vectors of two: the entries
# `v[i]` and `v[i + 1]` are either two neighbours along the last axis (V form) or two actions of one node
# (Q form), and both go through the same operations. Numba does not vectorise this by itself; written out
# as scalar code it takes half as long again. The form a + f (b - a) reproduces constants exactly, and
# the number of axes, the length of the tuple of strides, is known when a kernel is compiled.

FAST = {"contract"}  # fused multiply-add and nothing else: NaN and infinity keep their meaning

_DOUBLE = ir.DoubleType()
_PAIR = ir.VectorType(_DOUBLE, 2)
_FLAGS = ("contract",)


def _lane(k):
    return ir.Constant(ir.IntType(32), k)


def _between(builder, low, high, fraction):
    """low + fraction (high - low)"""
    rise = builder.fmul(fraction, builder.fsub(high, low, flags=_FLAGS), flags=_FLAGS)
    return builder.fadd(low, rise, flags=_FLAGS)


def _fraction(context, builder, array_type, array, axis):
    kind = context.get_data_type(array_type.dtype)
    start = context.make_array(array_type)(context, builder, array).data
    place = builder.gep(start, [ir.Constant(ir.IntType(64), axis)], inbounds=True, source_etype=kind)
    loaded = builder.load(place, typ=kind)
    return loaded if kind == _DOUBLE else builder.fpext(loaded, _DOUBLE)


def _fractions_of_two(context, builder, array_type, array, row, action, n_axes):
    """The fractions of an action and the next one: per axis a vector, twice the first's, twice the second's.

    The array is [n, n_actions, n_axes], or [n, n_actions * n_axes] in the order of `fraction_spot`, with
    which less is left to do.
    """
    kind = context.get_data_type(array_type.dtype)
    struct = context.make_array(array_type)(context, builder, array)
    per_row = builder.extract_value(struct.shape, 1)
    axes = ir.Constant(ir.IntType(64), n_axes)
    interleaved = array_type.ndim == 2
    kind_size = 8 if kind == _DOUBLE else 4
    if interleaved:
        begin = builder.add(builder.mul(row, per_row), builder.mul(action, axes))
    else:
        begin = builder.mul(builder.add(builder.mul(row, per_row), action), axes)

    def loaded(first, count):
        together = ir.VectorType(kind, count)
        index = builder.add(begin, ir.Constant(ir.IntType(64), first))
        place = builder.gep(struct.data, [index], inbounds=True, source_etype=kind)
        found = builder.load(builder.bitcast(place, together.as_pointer()), align=kind_size, typ=together)
        return found if kind == _DOUBLE else builder.fpext(found, ir.VectorType(_DOUBLE, count))

    def spread(one, other, lanes):
        return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), 4), lanes))

    if not interleaved:
        rows = loaded(0, n_axes), loaded(n_axes, n_axes)
        return [spread(*rows, (axis, axis, n_axes + axis, n_axes + axis)) for axis in range(n_axes)]
    along = []
    for axis in range(0, n_axes - 1, 2):
        both = loaded(2 * axis, 4)
        along += [spread(both, both, (0, 0, 2, 2)), spread(both, both, (1, 1, 3, 3))]
    if n_axes % 2:
        both = loaded(2 * (n_axes - 1), 2)
        along.append(spread(both, both, (0, 0, 1, 1)))
    return along


@njit(nogil=True, cache=True)
def fraction_spot(action, axis, n_actions, n_axes):
    """Where in a row a fraction is, when those of every two actions are interleaved: a0 a1 b0 b1 a2 a3 b2 b3.

    A last axis without a partner gives a4 b4; a last action without one stays as it is.
    """
    if action == n_actions - 1 and action % 2 == 0:
        return action * n_axes + axis
    begin = (action - action % 2) * n_axes
    if axis == n_axes - 1 and axis % 2 == 0:
        return begin + 2 * axis + action % 2
    return begin + 2 * (axis - axis % 2) + 2 * (action % 2) + axis % 2


def _row(context, builder, signature, args, n_axes, count=2):
    """Entries i to i + `count` - 1 as a vector, interpolated over the first `n_axes` axes."""
    together = ir.VectorType(_DOUBLE, count)
    values_type, _, _, fractions_type = signature.args
    values, i, strides, fractions = args
    start = context.make_array(values_type)(context, builder, values).data
    spread = []
    for axis in range(n_axes):
        fraction = _fraction(context, builder, fractions_type, fractions, axis)
        along = ir.Constant(together, ir.Undefined)
        for k in range(count):
            along = builder.insert_element(along, fraction, _lane(k))
        spread.append(along)

    def corners_from(axis, index):
        if axis == n_axes:
            place = builder.gep(start, [index], inbounds=True, source_etype=_DOUBLE)
            return builder.load(place, align=8, typ=together)
        low = corners_from(axis + 1, index)
        high = corners_from(axis + 1, builder.add(index, builder.extract_value(strides, axis)))
        return _between(builder, low, high, spread[axis])

    found = corners_from(0, i)
    return [builder.extract_element(found, _lane(k)) for k in range(count)]


@intrinsic
def interpolate(typing_context, v, i, s, f):
    """`v` at cell `i` (uint64), strides `s` (a tuple of uint64, the last one 1), fractions `f`."""

    def generate(context, builder, signature, args):
        last = signature.args[2].count - 1
        low, high = _row(context, builder, signature, args, last)
        fraction = _fraction(context, builder, signature.args[3], args[3], last)
        return _between(builder, low, high, fraction)

    return types.float64(v, i, s, f), generate


@intrinsic
def interpolate_two(typing_context, v, i, s, f):
    """Entries `i` and `i + 1` of `v`, each interpolated over all axes."""

    def generate(context, builder, signature, args):
        pair = _row(context, builder, signature, args, signature.args[2].count)
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(types.float64, 2)(v, i, s, f), generate


@intrinsic
def interpolate_four(typing_context, v, i, s, f):
    """Entries `i` to `i + 3` of `v`, each interpolated over all axes."""

    def generate(context, builder, signature, args):
        four = _row(context, builder, signature, args, signature.args[2].count, 4)
        return context.make_tuple(builder, signature.return_type, four)

    return types.UniTuple(types.float64, 4)(v, i, s, f), generate


@intrinsic
def interpolate_both(typing_context, v, i, j, s, f, k, a):
    """`v` at cells `i` and `j`, the successors under actions `a` and `a + 1` in row `k` of all fractions `f`.

    Two of `interpolate`, side by side.
    """

    def generate(context, builder, signature, args):
        values_type, _, _, strides_type, fractions_type, _, _ = signature.args
        values, first, second, strides, fractions, row, action = args
        start = context.make_array(values_type)(context, builder, values).data
        n_axes = strides_type.count
        four = ir.Constant(ir.VectorType(ir.IntType(32), 4), (0, 1, 2, 3))

        def side_by_side(low, high):
            return builder.shuffle_vector(low, high, four)

        along = _fractions_of_two(context, builder, fractions_type, fractions, row, action, n_axes)
        steps = [builder.extract_value(strides, axis) for axis in range(n_axes)]

        def moved(pointer, index):
            return builder.gep(pointer, [index], inbounds=True, source_etype=_DOUBLE)

        # Pointers move along all axes but the first, cells along that one: few additions are left in the
        # loop that this ends up in, and few registers are needed.
        def corners_from(axis, pointer, cells):
            if axis == n_axes - 1:
                places = [moved(pointer, cell) for cell in cells]
                return side_by_side(*(builder.load(place, align=8, typ=_PAIR) for place in places))
            low = corners_from(axis + 1, pointer, cells)
            if axis == 0:
                cells = [builder.add(cell, steps[0]) for cell in cells]
            else:
                pointer = moved(pointer, steps[axis])
            return _between(builder, low, corners_from(axis + 1, pointer, cells), along[axis])

        found = corners_from(0, start, (first, second))
        upper = builder.shuffle_vector(found, found, ir.Constant(four.type, (1, 1, 3, 3)))
        found = _between(builder, found, upper, along[-1])
        pair = [builder.extract_element(found, _lane(k)) for k in (0, 2)]
        return context.make_tuple(builder, signature.return_type, pair)

    return types.UniTuple(types.float64, 2)(v, i, j, s, f, k, a), generate


@intrinsic
def prefetch(typing_context, v, i, s):
    """Have the corners of cell `i` brought into the cache: worth it when `v` is much larger than that."""

    def generate(context, builder, signature, args):
        start = context.make_array(signature.args[0])(context, builder, args[0]).data
        small = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [start.type, small, small, small])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [start.type], kind)

        def corners_from(axis, index):
            if axis == signature.args[2].count - 1:
                place = builder.gep(start, [index], inbounds=True, source_etype=_DOUBLE)
                builder.call(instruction, [place, _lane(0), _lane(2), _lane(1)])  # read, second level, data
                return
            corners_from(axis + 1, index)
            corners_from(axis + 1, builder.add(index, builder.extract_value(args[2], axis)))

        corners_from(0, args[1])
        return context.get_dummy_value()

    return types.void(v, i, s), generate


@njit(nogil=True, cache=True)
def interpolate_many(v, cells, fractions, strides, out):
    """out[k, a] = column a of `v` [n_padded, n_columns] at point k."""
    for k in range(cells.size):
        for a in range(out.shape[1]):
            out[k, a] = 0.0
        for corner in range(1 << len(strides)):
            weight = 1.0
            j = int(cells[k])
            for q in range(len(strides)):
                if corner >> q & 1:
                    weight *= fractions[k, q]
                    j += strides[q]
                else:
                    weight *= 1.0 - fractions[k, q]
            if weight != 0.0:
                for a in range(out.shape[1]):
                    out[k, a] += weight * v[j, a]


@njit(nogil=True, cache=True)
def follow(
    points,  # [n, d]
    lookup,  # of the grid, as `locate` takes it
    fields,  # [n_actions, n_padded * width]: displacement, uncertainty, up to an even width
    width,  # uint64
    strides,  # of `fields`, a tuple of uint64
    low,  # [d] of the box
    actions,  # first and last
    values,  # padded [n_padded], or None
    value_strides,  # of `values`, a tuple of uint64, the last one 1
    next_points,  # out [n, last - first, d], periodic axes brought into [low, low + period)
    uncertainty,  # out [n, last - first]
    futures,  # out [n, last - first]: the value of where it leads, if `values` are given
    costs,  # padded [n_padded], of being at a point; or [0]
    charged,  # out [n], those, if there are any
):
    """Where each point is led by each of some actions, everything interpolated."""
    first, last = actions
    nodes, axis_starts, periods, inverse_spacings, steps = lookup
    n_dims = points.shape[1]
    fractions, there = np.empty(n_dims), np.empty(n_dims)
    row = np.empty(width)
    every, size = fields.reshape(-1), uint64(fields.shape[1])
    reached = next_points.reshape(-1, n_dims)
    for k in range(points.shape[0]):
        cell, _ = _locate_one(points, k, nodes, axis_starts, periods, inverse_spacings, steps, fractions)
        if costs.size:
            charged[k] = interpolate(costs, uint64(cell), value_strides, fractions)
        for a in range(first, last):
            place, b = uint64(a) * size + uint64(cell) * width, uint64(0)
            while b + uint64(4) <= width:
                row[b], row[b + uint64(1)], row[b + uint64(2)], row[b + uint64(3)] = interpolate_four(
                    every, place + b, strides, fractions
                )
                b += uint64(4)
            if b < width:
                row[b], row[b + uint64(1)] = interpolate_two(every, place + b, strides, fractions)
            for q in range(n_dims):
                x = points[k, q] + row[q]
                if periods[q] > 0.0:
                    x -= np.floor((x - low[q]) / periods[q]) * periods[q]
                    if x >= low[q] + periods[q]:
                        x = low[q]
                next_points[k, a - first, q] = x
            uncertainty[k, a - first] = row[n_dims]
            if values is not None:
                one = k * (last - first) + a - first
                ahead, _ = _locate_one(
                    reached, one, nodes, axis_starts, periods, inverse_spacings, steps, there
                )
                futures[k, a - first] = interpolate(values, uint64(ahead), value_strides, there)
