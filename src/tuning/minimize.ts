/** A smooth convex function. Returns its value at a point, and writes its gradient there into `gradient`. */
export type Objective = (point: Float64Array, gradient: Float64Array) => number;

/** The pairs of steps that estimate the curvature. */
const MEMORY = 6;
const STEPS_MAX = 100;
/** The end: the gradient has shrunk to this part of its first length. */
const GRADIENT_SHRINK = 1e-3;
/** The other end: two steps one after the other gain less than this part of the value. One alone may have been unlucky. */
const GAIN_MIN = 1e-5;
const SMALL_GAINS_MAX = 2;
/** The part of the gain by the slope that a step must reach (Armijo). */
const SUFFICIENT = 1e-4;
const HALVINGS_MAX = 30;

interface Curvature {
  readonly step: Float64Array;
  readonly change: Float64Array;
  readonly scale: number;
}

/**
 * Returns the minimum of a smooth convex function, from `start` on, by L-BFGS. The same input gives the same
 * point.
 */
export function minimize(objective: Objective, start: Float64Array): Float64Array {
  let point = start.slice();
  let gradient = new Float64Array(start.length);
  let value = objective(point, gradient);
  const gradient_at_start = Math.sqrt(dot(gradient, gradient));
  const memory: Curvature[] = [];
  let small_gains = 0;
  for (let count = 0; count < STEPS_MAX; count += 1) {
    if (Math.sqrt(dot(gradient, gradient)) <= GRADIENT_SHRINK * gradient_at_start) break;
    const direction = descent(gradient, memory);
    const slope = dot(gradient, direction);
    if (!(slope < 0)) break;
    const next = new Float64Array(point.length);
    const next_gradient = new Float64Array(point.length);
    let length = memory.length === 0 ? Math.min(1, 1 / gradient_at_start) : 1;
    let next_value = Number.POSITIVE_INFINITY;
    for (let halvings = 0; halvings < HALVINGS_MAX; halvings += 1, length /= 2) {
      for (let at = 0; at < next.length; at += 1) next[at] = (point[at] ?? 0) + length * (direction[at] ?? 0);
      next_value = objective(next, next_gradient);
      if (next_value <= value + SUFFICIENT * length * slope) break;
    }
    if (!(next_value < value)) break;
    remember(memory, difference(next, point), difference(next_gradient, gradient));
    const gain = value - next_value;
    [point, gradient, value] = [next, next_gradient, next_value];
    small_gains = gain <= GAIN_MIN * Math.abs(value) ? small_gains + 1 : 0;
    if (small_gains === SMALL_GAINS_MAX) break;
  }
  return point;
}

function remember(memory: Curvature[], step: Float64Array, change: Float64Array): void {
  const product = dot(step, change);
  if (!(product > 0)) return;
  memory.push({ step, change, scale: 1 / product });
  if (memory.length > MEMORY) memory.shift();
}

/**
 * Returns the direction of descent by Nocedal's two loops: the negative gradient times the inverse curvature
 * of the last steps.
 */
function descent(gradient: Float64Array, memory: readonly Curvature[]): Float64Array {
  const direction = gradient.map((value) => -value);
  const weights: number[] = [];
  for (const { step, change, scale } of memory.toReversed()) {
    const weight = scale * dot(step, direction);
    weights.push(weight);
    add(direction, -weight, change);
  }
  const last = memory.at(-1);
  if (last !== undefined) {
    const scale = 1 / (last.scale * dot(last.change, last.change));
    for (let at = 0; at < direction.length; at += 1) direction[at] = (direction[at] ?? 0) * scale;
  }
  for (const { step, change, scale } of memory) {
    add(direction, (weights.pop() ?? 0) - scale * dot(change, direction), step);
  }
  return direction;
}

function dot(one: Float64Array, other: Float64Array): number {
  let sum = 0;
  for (let at = 0; at < one.length; at += 1) sum += (one[at] ?? 0) * (other[at] ?? 0);
  return sum;
}

function add(to: Float64Array, times: number, values: Float64Array): void {
  for (let at = 0; at < to.length; at += 1) to[at] = (to[at] ?? 0) + times * (values[at] ?? 0);
}

function difference(one: Float64Array, other: Float64Array): Float64Array {
  return one.map((value, at) => value - (other[at] ?? 0));
}
