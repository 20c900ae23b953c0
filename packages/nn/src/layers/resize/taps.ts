/** Which elements of an axis each element of another extent is made of, and their weights. */
import type { AxisTaps } from "@opt/core";

/** From an extent to `count` elements, `step` elements of the input apart. */
export interface AxisScale {
  readonly extent: number;
  readonly count: number;
  readonly step: number;
  readonly alignCorners: boolean;
}

/** PyTorch counts in float32 here, which decides between neighbours. In images it takes whole scales as whole, whatever was given. */
export function nearestTaps({ extent, count, step }: AxisScale, isImage: boolean): AxisTaps {
  const isWhole = isImage && (count === extent || count === 2 * extent);
  const scale = isWhole ? extent / count : Math.fround(step);
  const at = (i: number) => Math.floor(Math.fround(i * scale));
  const indices = Array.from({ length: count }, (_, i) => [Math.min(at(i), extent - 1)]);
  return { indices, weights: indices.map(() => [1]) };
}

export function linearTaps({ extent, count, step, alignCorners }: AxisScale): AxisTaps {
  const between = count > 1 ? (extent - 1) / (count - 1) : 0;
  const places = Array.from({ length: count }, (_, i) =>
    count === extent ? i : alignCorners ? i * between : Math.max((i + 0.5) * step - 0.5, 0),
  );
  const before = places.map((place) => Math.min(Math.floor(place), extent - 1));
  return {
    indices: before.map((at) => [at, Math.min(at + 1, extent - 1)]),
    weights: before.map((at, i) => {
      const share = Math.min(places[i]! - at, 1);
      return [1 - share, share];
    }),
  };
}

/** As nearest, of the element whose middle is nearest. */
export function nearestExactTaps({ extent, count, step }: AxisScale): AxisTaps {
  const scale = Math.fround(step);
  const at = (i: number) => Math.floor(Math.fround((i + 0.5) * scale));
  const indices = Array.from({ length: count }, (_, i) => [Math.min(at(i), extent - 1)]);
  return { indices, weights: indices.map(() => [1]) };
}

/** Keys' cubic of a distance (1981): 1 at 0, and 0 at the other whole ones. */
function cubic(distance: number, a: number): number {
  const x = Math.abs(distance);
  if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
  return x < 2 ? ((x - 5) * x + 8) * x * a - 4 * a : 0;
}

/** Four elements around each place; beyond the border the last one counts. */
export function cubicTaps({ extent, count, step, alignCorners }: AxisScale): AxisTaps {
  const between = count > 1 ? (extent - 1) / (count - 1) : 0;
  const places = Array.from({ length: count }, (_, i) => (alignCorners ? i * between : (i + 0.5) * step - 0.5));
  const around = [-1, 0, 1, 2];
  return {
    indices: places.map((place) => around.map((k) => Math.min(Math.max(Math.floor(place) + k, 0), extent - 1))),
    weights: places.map((place) => around.map((k) => cubic(place - Math.floor(place) - k, -0.75))),
  };
}

/** As many elements as an output covers where the result is smaller, weighted by a filter that is as wide: no aliases. */
export function filteredTaps({ extent, count, step, alignCorners }: AxisScale, kind: "linear" | "cubic"): AxisTaps {
  const scale = alignCorners ? (count > 1 ? (extent - 1) / (count - 1) : 0) : step;
  const widening = Math.max(scale, 1);
  const support = (kind === "linear" ? 1 : 2) * widening;
  const filter = (x: number) => (kind === "linear" ? Math.max(1 - Math.abs(x), 0) : cubic(x, -0.5));
  const rows = Array.from({ length: count }, (_, i) => {
    const center = scale * (i + 0.5);
    const from = Math.max(Math.trunc(center - support + 0.5), 0);
    const to = Math.min(Math.trunc(center + support + 0.5), extent);
    const factors = Array.from({ length: to - from }, (_, k) => filter((k + from - center + 0.5) / widening));
    const total = factors.reduce((a, b) => a + b, 0);
    return { from, factors: factors.map((factor) => (total === 0 ? factor : factor / total)) };
  });
  const most = Math.max(...rows.map(({ factors }) => factors.length));
  const each = Array.from({ length: most }, (_, k) => k);
  return {
    indices: rows.map(({ from, factors }) => each.map((k) => from + Math.min(k, factors.length - 1))),
    weights: rows.map(({ factors }) => each.map((k) => factors[k] ?? 0)),
  };
}
