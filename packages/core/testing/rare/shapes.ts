/** Rare arguments of ops that move, cut and join: several axes, axes from the end, no and negative borders, uneven parts. */
import type { CallInput } from "@opt/testkit";
import * as F from "../../src/functions";
import { concat } from "../../src/ops";
import type { Tensor } from "../../src/tensor/tensor";
import { type Draw, list, type Row } from "../draw";

const of = (draw: Draw, shape: readonly number[], code: string, run: (x: Tensor) => Tensor | readonly Tensor[]) => ({
  inputs: [draw.numbers(shape)],
  code,
  run: (x: Tensor | undefined) => run(x!),
});

/** Both sides of some axes, the last first. */
const constantPad: Row = (draw) => {
  const shape = draw.sizes(1 + draw.int(4));
  const axes = 1 + draw.int(shape.length);
  const padding = Array.from({ length: axes }, (_, i) => {
    const extent = shape.at(-1 - i)!;
    const before = draw.int(4) - Math.min(1, extent - 1);
    return [before, draw.int(4) - Math.max(0, Math.min(1, extent - 2))];
  }).flat();
  const value = draw.random.pick([0, 1.5, -Infinity]);
  return of(draw, shape, `F.pad(a, (${padding}), value=${String(value).replace("Infinity", "inf")})`, (x) =>
    F.pad(x, padding, { value }),
  );
};

const edgePad =
  (mode: "reflect" | "replicate" | "circular"): Row =>
  (draw) => {
    const axes = 1 + draw.int(3);
    const extents = Array.from({ length: axes }, () => 2 + draw.int(4));
    const most = (extent: number) => (mode === "replicate" ? 4 : mode === "reflect" ? extent - 1 : extent);
    const padding = extents.toReversed().flatMap((extent) => [draw.int(most(extent) + 1), draw.int(most(extent) + 1)]);
    const shape = [...(draw.flip() ? [2] : []), 1 + draw.int(2), ...extents];
    return of(draw, shape, `F.pad(a, (${padding}), mode="${mode}")`, (x) => F.pad(x, padding, { mode }));
  };

const joined =
  (axisOf: (draw: Draw, shape: readonly number[]) => number): Row =>
  (draw) => {
    const shape = draw.sizes(1 + draw.int(3));
    const axis = axisOf(draw, shape);
    const count = 1 + draw.int(5);
    const inputs: CallInput[] = Array.from({ length: count }, () =>
      draw.numbers(shape.with(axis < 0 ? axis + shape.length : axis, draw.int(4))),
    );
    return {
      inputs,
      code: `torch.cat([${Array.from("abcdef").slice(0, count)}], ${axis})`,
      run: (...given) => concat(given, axis),
    };
  };

export const SHAPES: Readonly<Record<string, Row>> = {
  "pad by a number": constantPad,
  "pad by reflect": edgePad("reflect"),
  "pad by replicate": edgePad("replicate"),
  "pad by circular": edgePad("circular"),
  "concat of parts": joined((draw, shape) => draw.axis(shape)),
  "stack at the end": (draw) => {
    const shape = draw.sizes(draw.int(3) + 1);
    const axis = draw.int(shape.length + 1) - (draw.flip() ? shape.length + 1 : 0);
    return {
      inputs: [draw.numbers(shape), draw.numbers(shape), draw.numbers(shape)],
      code: `torch.stack([a, b, c], ${axis})`,
      run: (...given) => F.stack(given, axis),
    };
  },
  "flip of axes": (draw) => {
    const shape = draw.sizes(3);
    const axes = draw.axes(shape);
    return of(draw, shape, `a.flip(${list(axes)})`, (x) => F.flip(x, axes));
  },
  "roll of axes": (draw) => {
    const shape = draw.sizes(3);
    const some = draw.axes(shape);
    const axes = some.length > 0 ? some : [-1];
    const shifts = axes.map(() => draw.int(13) - 6);
    return of(draw, shape, `a.roll(${list(shifts)}, ${list(axes)})`, (x) => F.roll(x, shifts, axes));
  },
  "squeeze of axes": (draw) => {
    const shape = Array.from({ length: 1 + draw.int(4) }, () => draw.random.pick([1, 1, 2, 3]));
    const axes = draw.axes(shape);
    const code = `a.squeeze((${axes.map((axis) => `${axis},`).join(" ")}))`;
    return of(draw, shape, code, (x) => F.squeeze(x, axes));
  },
  "unsqueeze at the end": (draw) => {
    const shape = draw.sizes(draw.int(3));
    const axis = draw.int(shape.length + 1) - (draw.flip() ? shape.length + 1 : 0);
    return of(draw, shape, `a.unsqueeze(${axis})`, (x) => F.unsqueeze(x, axis));
  },
  "flatten of axes": (draw) => {
    const shape = draw.sizes(4);
    const [first, last] = [draw.int(4), draw.int(4)].sort((a, b) => a - b) as [number, number];
    const [start, end] = [first - (draw.flip() ? 4 : 0), last - (draw.flip() ? 4 : 0)];
    return of(draw, shape, `a.flatten(${start}, ${end})`, (x) => F.flatten(x, start, end));
  },
  "reshape by -1": (draw) => {
    const shape = draw.sizes(3);
    const target = draw.random.pick([[-1], [1, -1], [shape[0]!, -1], [-1, shape[2]!], [shape[2]!, -1, shape[0]!]]);
    return of(draw, shape, `a.reshape(${target})`, (x) => x.reshape(target));
  },
  "expand of ones": (draw) => {
    const shape = Array.from({ length: 1 + draw.int(3) }, () => draw.random.pick([1, 1, 2, 3]));
    const grown = shape.map((extent) =>
      extent === 1 ? draw.random.pick([-1, 1, 4, 0]) : draw.random.pick([-1, extent]),
    );
    const target = [...Array.from({ length: draw.int(3) }, () => draw.int(3)), ...grown];
    return of(draw, shape, `a.expand(${target})`, (x) => x.expand(target));
  },
  "repeat of more axes": (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 40);
    const repeats = [...Array.from({ length: draw.int(3) }, () => draw.int(3)), ...shape.map(() => draw.int(4))];
    return of(draw, shape, `a.repeat(${list(repeats)})`, (x) => F.repeat(x, repeats));
  },
  "permute from the end": (draw) => {
    const order = draw.random.pick([
      [-1, 0, 1, 2],
      [3, -4, 2, 1],
      [0, -1, 1, -2],
      [-2, -1, 0, 1],
    ]);
    return of(draw, draw.sizes(4, 40), `a.permute(${order})`, (x) => x.permute(order));
  },
  "transpose of axes": (draw) => {
    const shape = draw.sizes(2 + draw.int(3), 70);
    const [first, second] = [draw.axis(shape), draw.axis(shape)];
    return of(draw, shape, `a.transpose(${first}, ${second})`, (x) => x.transpose(first, second));
  },
  "split into uneven parts": (draw) => {
    const shape = draw.sizes(1 + draw.int(3));
    const axis = draw.axis(shape);
    const extent = shape.at(axis)!;
    const first = draw.int(extent + 1);
    const sizes = [first, 0, extent - first];
    return of(draw, shape, `a.split(${list(sizes)}, ${axis})`, (x) => F.split(x, sizes, axis));
  },
  "split by a size": (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 20);
    const [axis, size] = [draw.axis(shape), 1 + draw.int(7)];
    return of(draw, shape, `a.split(${size}, ${axis})`, (x) => F.split(x, size, axis));
  },
  "chunk of chunks": (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 20);
    const [axis, chunks] = [draw.axis(shape), 1 + draw.int(7)];
    return of(draw, shape, `a.chunk(${chunks}, ${axis})`, (x) => F.chunk(x, chunks, axis));
  },
  "slice of an axis": (draw) => {
    const shape = draw.sizes(1 + draw.int(3), 40);
    const axis = draw.axis(shape);
    const extent = shape.at(axis)!;
    const [low, high] = [draw.int(extent + 1), draw.int(extent + 1)].sort((a, b) => a - b) as [number, number];
    const [start, end] = [low > 0 && draw.flip() && low < extent ? low - extent : low, high];
    const code = `a.narrow(${axis}, ${low}, ${high - low})`;
    return of(draw, shape, code, (x) => x.slice(start, end, axis));
  },
  "select of an axis": (draw) => {
    const shape = draw.sizes(1 + draw.int(3));
    const axis = draw.axis(shape);
    const extent = shape.at(axis)!;
    const place = draw.int(extent) - (draw.flip() ? extent : 0);
    return of(draw, shape, `a.select(${axis}, ${place})`, (x) => x.select(axis, place));
  },
  "tril of diagonals": (draw) => {
    const diagonal = draw.int(9) - 4;
    return of(draw, draw.sizes(2 + draw.int(2), 40), `a.tril(${diagonal})`, (x) => F.tril(x, diagonal));
  },
  "triu of diagonals": (draw) => {
    const diagonal = draw.int(9) - 4;
    return of(draw, draw.sizes(2 + draw.int(2), 40), `a.triu(${diagonal})`, (x) => F.triu(x, diagonal));
  },
};
